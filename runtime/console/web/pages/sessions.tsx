/**
 * Sessions: connected users and clients. Operators can end any session; other users can end only their own sessions.
 */
import { useState } from 'preact/hooks'
import type { Me, ListPage, ListedSession } from '../../api.ts'
import { ApiError, get, queryOf, send } from '../data/client.ts'
import { useReloadOn } from '../data/live.ts'
import { useList } from '../data/use-resource.ts'
import { Pager } from '../parts/filters.tsx'
import { ago, count } from '../parts/format.ts'
import { Empty, Failure, Loaded } from '../parts/notices.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { CallerName, Foreign, Time } from '../parts/text.tsx'
import { may } from '../shell/permissions.ts'
import { pathPart } from '../shell/router.ts'
import { texts } from '../texts.ts'

export function SessionsPage({ me }: { readonly me: Me }) {
  const [trail, setTrail] = useState<readonly string[]>([])
  const path = `sessions${queryOf({ cursor: trail.at(-1), limit: '100' })}`
  const resource = useList(path, (signal) => get<ListPage<ListedSession>>(path, signal))
  const { reload } = resource
  useReloadOn('sessions', reload)
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>{may(me, 'sessions.all') ? texts.pages.sessions : texts.sessions.own}</h1>
      </div>
      <p class="soft">{texts.sessions.what}</p>
      <Loaded resource={resource}>
        {({ items, next }) => (
          <>
            {items.length === 0 ? (
              <Empty
                text={texts.sessions.none}
                command={`gatehouse client add claude-code --server ${me.server}`}
              />
            ) : (
              <Table
                label={texts.pages.sessions}
                columns={columnsOf(me, reload)}
                rows={items}
                keyOf={({ hash }) => hash}
              />
            )}
            <Pager next={next} trail={trail} setTrail={setTrail} />
          </>
        )}
      </Loaded>
    </>
  )
}

function columnsOf(me: Me, reload: () => void): readonly Column<ListedSession>[] {
  return [
    {
      key: 'hash',
      label: texts.sessions.session,
      head: true,
      cell: ({ hash, mine }) => (
        <>
          <code>
            <Foreign text={hash} most={40} />
          </code>
          {mine ? <span class="soft"> {texts.sessions.mine}</span> : undefined}
        </>
      ),
    },
    {
      key: 'caller',
      label: texts.calls.caller,
      cell: ({ caller }) => <CallerName caller={caller} />,
    },
    {
      key: 'client',
      label: texts.calls.client,
      wide: true,
      cell: ({ client }) => (client === undefined ? '–' : <Foreign text={client} most={80} />),
    },
    { key: 'era', label: texts.calls.era, cell: ({ era }) => <Foreign text={era} most={40} /> },
    { key: 'opened', label: texts.sessions.opened, cell: ({ openedAt }) => <Time at={openedAt} /> },
    {
      key: 'idle',
      label: texts.sessions.idle,
      number: true,
      cell: ({ lastUsedAt }) => <span title={lastUsedAt}>{ago(lastUsedAt)}</span>,
    },
    { key: 'streams', label: texts.sessions.streams, number: true, cell: ({ streams }) => count(streams) },
    {
      key: 'end',
      label: texts.sessions.action,
      cell: (session) =>
        session.mine || may(me, 'sessions.end') ? <End session={session} reload={reload} /> : '–',
    },
  ]
}

/** Asks for confirmation, because the client loses its work. */
function End({ session, reload }: { readonly session: ListedSession; readonly reload: () => void }) {
  const [state, setState] = useState<'idle' | 'asking' | 'busy' | ApiError>('idle')
  const { hash } = session
  const end = async (): Promise<void> => {
    setState('busy')
    try {
      await send('DELETE', `sessions/${pathPart(hash)}`)
      reload()
    } catch (error) {
      setState(error instanceof ApiError ? error : new ApiError(0, 'page', String(error)))
    }
  }
  if (state === 'idle')
    return (
      <button type="button" aria-label={texts.sessions.endOf(hash)} onClick={() => setState('asking')}>
        {texts.sessions.end}
      </button>
    )
  return (
    <span class="buttons">
      {state instanceof ApiError ? <Failure error={state} /> : undefined}
      <button
        type="button"
        class="main"
        disabled={state === 'busy'}
        ref={(button) => {
          if (state === 'asking') button?.focus()
        }}
        onClick={() => void end()}
      >
        {texts.sessions.really}
      </button>
      <button type="button" onClick={() => setState('idle')}>
        {texts.sessions.keep}
      </button>
    </span>
  )
}
