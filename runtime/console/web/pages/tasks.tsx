/**
 * Tasks: calls that continue after the response. Operators can cancel any task; other users can cancel only their own
 * tasks.
 */
import { useEffect, useState } from 'preact/hooks'
import type { Me, ListPage, ListedTask } from '../../api.ts'
import { ApiError, get, queryOf, send } from '../data/client.ts'
import { useList } from '../data/use-resource.ts'
import { Pager } from '../parts/filters.tsx'
import { ago } from '../parts/format.ts'
import { Failure, Loaded } from '../parts/notices.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { CallerName, Foreign, Time } from '../parts/text.tsx'
import { may } from '../shell/permissions.ts'
import { pathPart } from '../shell/router.ts'
import { texts } from '../texts.ts'

/** No event reports changes of tasks. */
const reloadMs = 5_000

export function TasksPage({ me }: { readonly me: Me }) {
  const [trail, setTrail] = useState<readonly string[]>([])
  const path = `tasks${queryOf({ cursor: trail.at(-1), limit: '100' })}`
  const resource = useList(path, (signal) => get<ListPage<ListedTask>>(path, signal))
  const { reload } = resource
  useEffect(() => {
    const timer = setInterval(reload, reloadMs)
    return () => clearInterval(timer)
  }, [path])
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>{may(me, 'sessions.all') ? texts.pages.tasks : texts.tasks.yours}</h1>
      </div>
      <p class="soft">{texts.tasks.what}</p>
      <Loaded resource={resource}>
        {({ items, next }) => (
          <>
            {items.length === 0 ? (
              <p>{texts.tasks.none}</p>
            ) : (
              <Table
                label={texts.pages.tasks}
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

function columnsOf(me: Me, reload: () => void): readonly Column<ListedTask>[] {
  return [
    {
      key: 'tool',
      label: texts.calls.tool,
      head: true,
      cell: ({ tool, mine }) => (
        <>
          <Foreign text={tool} most={80} />
          {mine ? <span class="soft"> {texts.tasks.mine}</span> : undefined}
        </>
      ),
    },
    {
      key: 'backend',
      label: texts.backend,
      cell: ({ backend }) => (backend === undefined ? texts.tasks.own : <Foreign text={backend} most={80} />),
    },
    { key: 'state', label: texts.tasks.state, cell: ({ state }) => texts.tasks.states[state] },
    { key: 'caller', label: texts.calls.caller, cell: ({ caller }) => <CallerName caller={caller} /> },
    {
      key: 'age',
      label: texts.tasks.age,
      number: true,
      cell: ({ startedAt }) => <span title={startedAt}>{ago(startedAt)}</span>,
    },
    {
      key: 'expires',
      label: texts.tasks.expires,
      wide: true,
      cell: ({ expiresAt }) => <Time at={expiresAt} />,
    },
    {
      key: 'cancel',
      label: texts.tasks.action,
      cell: (task) =>
        task.mine || may(me, 'sessions.end') ? <CancelTask task={task} reload={reload} /> : '–',
    },
  ]
}

/** Asks for confirmation, because the work of the task is lost. */
function CancelTask({ task, reload }: { readonly task: ListedTask; readonly reload: () => void }) {
  const [state, setState] = useState<'idle' | 'asking' | 'busy' | ApiError>('idle')
  const cancel = async (): Promise<void> => {
    setState('busy')
    try {
      await send('DELETE', `tasks/${pathPart(task.hash)}`)
      reload()
    } catch (error) {
      setState(error instanceof ApiError ? error : new ApiError(0, 'page', String(error)))
    }
  }
  if (state === 'idle')
    return (
      <button type="button" aria-label={texts.tasks.cancelOf(task.tool)} onClick={() => setState('asking')}>
        {texts.tasks.cancel}
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
        onClick={() => void cancel()}
      >
        {texts.tasks.really}
      </button>
      <button type="button" onClick={() => setState('idle')}>
        {texts.tasks.keep}
      </button>
    </span>
  )
}
