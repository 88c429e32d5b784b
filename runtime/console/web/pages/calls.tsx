/**
 * Calls: newest first, with filters. New calls are shown only after the user presses a button, unless the list follows
 * new calls.
 */
import { useEffect, useRef, useState } from 'preact/hooks'
import { type CallView, type Me, outcomes, type ListPage } from '../../api.ts'
import type { CallFilter } from '../../calls/filter.ts'
import { type CallList, withEvents, withWaiting } from '../data/call-list.ts'
import { get, queryOf } from '../data/client.ts'
import { onEvents } from '../data/live.ts'
import { useList, useResource } from '../data/use-resource.ts'
import { BackendFilter, ChoiceFilter, Filters, Pager, TextFilter, useTrail } from '../parts/filters.tsx'
import { duration } from '../parts/format.ts'
import { OutcomeMark } from '../parts/marks.tsx'
import { Empty, Loaded, Notice } from '../parts/notices.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { CallerName, Foreign, Time } from '../parts/text.tsx'
import { may } from '../shell/permissions.ts'
import { pathPart, route, setQuery } from '../shell/router.ts'
import { texts } from '../texts.ts'
import { CallDetails } from './call-details.tsx'

const pageRows = 100
export function CallsPage({ me }: { readonly me: Me }) {
  const { query } = route.value
  const filter: CallFilter = {
    caller: query.get('caller') ?? '',
    backend: query.get('backend') ?? '',
    tool: query.get('tool') ?? '',
    outcome: query.get('outcome') ?? '',
    text: query.get('text') ?? '',
    messages: query.get('messages') === 'all' ? 'all' : 'calls',
  }
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>{may(me, 'calls.all') ? texts.pages.calls : texts.calls.own}</h1>
      </div>
      <Filters>
        {may(me, 'calls.all') ? <TextFilter name="caller" label={texts.calls.caller} /> : undefined}
        <BackendFilter me={me} />
        <TextFilter name="tool" label={texts.calls.tool} />
        <ChoiceFilter
          name="outcome"
          label={texts.calls.outcome}
          options={outcomes.map((one) => [one, texts.outcome[one]] as const)}
        />
        <TextFilter name="text" label={texts.filters.text} />
      </Filters>
      <label class="check">
        <input
          type="checkbox"
          checked={filter.messages === 'all'}
          onChange={({ currentTarget }) => setQuery({ messages: currentTarget.checked ? 'all' : undefined })}
        />
        {texts.calls.protocol}
      </label>
      <List me={me} filter={filter} />
    </>
  )
}

function List({ me, filter }: { readonly me: Me; readonly filter: CallFilter }) {
  const [trail, setTrail] = useTrail(JSON.stringify(filter))
  const cursor = trail.at(-1)
  const path = `calls${queryOf({ ...filter, cursor, limit: String(pageRows) })}`
  const resource = useList(path, (signal) => get<ListPage<CallView>>(path, signal))
  const [changed, setChanged] = useState<{ readonly of: ListPage<CallView>; readonly list: CallList }>()
  const [follow, setFollow] = useState(false)
  // Uses a ref, because an event may arrive before the next effect.
  const following = useRef(follow)
  const { data, reload } = resource
  // Applies changes from the stream to one page of the list.
  const listOf = (last: typeof changed): CallList =>
    last !== undefined && last.of === data ? last.list : { rows: data?.items ?? [], waiting: [] }
  const list = listOf(changed)
  const setList = (change: (list: CallList) => CallList): void =>
    setChanged((last) => (data === undefined ? last : { of: data, list: change(listOf(last)) }))
  useEffect(() => {
    if (cursor !== undefined) return undefined
    return onEvents((events) => {
      if (events.some(({ type }) => type === 'gap')) reload()
      else
        setList((list) => {
          const next = withEvents(list, events, filter)
          return following.current ? withWaiting(next) : next
        })
    })
  }, [path, reload, data])
  const choose = (chosen: boolean): void => {
    following.current = chosen
    setFollow(chosen)
    if (chosen) setList(withWaiting)
  }
  const waiting = list.waiting.length
  return (
    <>
      <div class="buttons above-list">
        {cursor === undefined ? (
          <>
            <button
              type="button"
              class={waiting > 0 ? 'main' : undefined}
              disabled={waiting === 0}
              onClick={() => setList(withWaiting)}
            >
              {texts.calls.showNew(waiting)}
            </button>
            <label class="check">
              <input
                type="checkbox"
                checked={follow}
                onChange={({ currentTarget }) => choose(currentTarget.checked)}
              />
              {texts.calls.follow}
            </label>
          </>
        ) : undefined}
        {data?.oldest === undefined ? undefined : (
          <span class="soft">
            {texts.calls.oldest} <Time at={data.oldest} exact />
          </span>
        )}
      </div>
      <Loaded resource={resource}>
        {({ next, gap }) => (
          <>
            {gap ? (
              <Notice tone="warn">
                <p>{texts.calls.gap}</p>
              </Notice>
            ) : undefined}
            <Rows me={me} rows={list.rows} />
            <Pager next={next} trail={trail} setTrail={setTrail} />
          </>
        )}
      </Loaded>
    </>
  )
}

function Rows({ me, rows }: { readonly me: Me; readonly rows: readonly CallView[] }) {
  const open = route.value.query.get('open') ?? ''
  const toggle = (id: string): void => setQuery({ open: open === id ? undefined : id })
  const columns = columnsOf(open, toggle)
  return (
    <>
      {open !== '' && !rows.some(({ id }) => id === open) ? <Elsewhere me={me} id={open} /> : undefined}
      {rows.length === 0 ? (
        <Empty text={texts.calls.none} command={`gatehouse tools list ${me.server}`} />
      ) : (
        <Table
          label={texts.pages.calls}
          columns={columns}
          rows={rows}
          keyOf={({ id }) => id}
          below={(call) => (call.id === open ? <CallDetails me={me} call={call} /> : undefined)}
        />
      )}
    </>
  )
}

/** Shows a linked call that is not in the list. */
function Elsewhere({ me, id }: { readonly me: Me; readonly id: string }) {
  const path = `calls/${pathPart(id)}`
  const resource = useResource(path, (signal) => get<CallView>(path, signal))
  return (
    <section class="panel" aria-label={texts.calls.one}>
      <Loaded resource={resource}>{(call) => <CallDetails me={me} call={call} />}</Loaded>
      <button type="button" onClick={() => setQuery({ open: undefined })}>
        {texts.close}
      </button>
    </section>
  )
}

function columnsOf(open: string, toggle: (id: string) => void): readonly Column<CallView>[] {
  return [
    {
      key: 'at',
      phone: 'first',
      label: texts.calls.time,
      head: true,
      cell: ({ id, at }) => (
        <button type="button" class="row" aria-expanded={open === id} onClick={() => toggle(id)}>
          <Time at={at} exact />
        </button>
      ),
    },
    {
      key: 'outcome',
      phone: 'first',
      label: texts.calls.outcome,
      cell: (call) => <CallOutcome call={call} />,
    },
    {
      key: 'what',
      phone: 'second',
      label: texts.calls.what,
      wide: true,
      cell: ({ name, method }) => <Foreign text={name ?? method} most={100} />,
    },
    {
      key: 'caller',
      label: texts.calls.caller,
      cell: ({ caller }) => <CallerName caller={caller} />,
    },
    {
      key: 'client',
      label: texts.calls.client,
      cell: ({ caller }) => (caller?.client === undefined ? '–' : <Foreign text={caller.client} most={60} />),
    },
    {
      key: 'backend',
      label: texts.backend,
      cell: ({ backend }) => (backend ? <Foreign text={backend} most={60} /> : '–'),
    },
    { key: 'ms', label: texts.calls.took, number: true, cell: ({ ms }) => duration(ms) },
  ]
}

function CallOutcome({ call }: { readonly call: CallView }) {
  const { outcome, denied } = call
  return (
    <OutcomeMark
      outcome={outcome}
      note={denied === undefined ? undefined : (texts.deniedBy[denied.by] ?? denied.by)}
    />
  )
}
