/** Tools: search, origin, hints, token cost, and tools that are hidden from clients. */
import type { Me, ToolPinState, Tool, ToolList } from '../../api.ts'
import { get, queryOf } from '../data/client.ts'
import { useReloadOn } from '../data/live.ts'
import { useList } from '../data/use-resource.ts'
import { BackendFilter, ChoiceFilter, Filters, Pager, TextFilter, useTrail } from '../parts/filters.tsx'
import { count } from '../parts/format.ts'
import { PinMark } from '../parts/marks.tsx'
import { Empty, Loaded } from '../parts/notices.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { Foreign } from '../parts/text.tsx'
import { hrefOf, route } from '../shell/router.ts'
import { texts } from '../texts.ts'
import { ToolPage } from './tool.tsx'
import { Flags, hintsOf } from './tool-flags.tsx'

const pins: readonly ToolPinState[] = ['unpinned', 'pinned', 'new', 'changed']

export function ToolsPage({ me }: { readonly me: Me }) {
  const { rest, query } = route.value
  const [name, tab] = rest
  if (name !== undefined) return <ToolPage key={name} me={me} name={name} tab={tab ?? 'description'} />
  const filter = {
    text: query.get('text') ?? '',
    backend: query.get('backend') ?? '',
    pin: query.get('pin') ?? '',
  }
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>{texts.pages.tools}</h1>
      </div>
      <Filters>
        <TextFilter name="text" label={texts.filters.text} />
        <BackendFilter me={me} />
        <ChoiceFilter
          name="pin"
          label={texts.tools.pin}
          options={pins.map((pin) => [pin, texts.pin[pin]] as const)}
        />
      </Filters>
      <List me={me} filter={filter} />
    </>
  )
}

function List({
  me,
  filter,
}: {
  readonly me: Me
  readonly filter: Readonly<Record<'text' | 'backend' | 'pin', string>>
}) {
  const [trail, setTrail] = useTrail(JSON.stringify(filter))
  const path = `tools${queryOf({ ...filter, cursor: trail.at(-1), limit: '100' })}`
  const resource = useList(path, (signal) => get<ToolList>(path, signal))
  useReloadOn('catalog', resource.reload)
  return (
    <Loaded resource={resource}>
      {({ items, next, total, tokens }) => (
        <>
          <p class="soft" role="status">
            {texts.tools.shown(items.length, total, count(tokens))}
          </p>
          {items.length === 0 ? (
            <Empty text={texts.tools.none} command={`gatehouse doctor ${me.server}`} />
          ) : (
            <Table
              label={texts.pages.tools}
              columns={columns}
              rows={items}
              keyOf={({ name, backend, original }) => `${name} ${backend} ${original}`}
            />
          )}
          <Pager next={next} trail={trail} setTrail={setTrail} />
        </>
      )}
    </Loaded>
  )
}

const columns: readonly Column<Tool>[] = [
  {
    key: 'name',
    label: texts.tools.name,
    head: true,
    cell: ({ name, alias }) => (
      <>
        <a class="row" href={hrefOf(['tools', name])}>
          <Foreign text={name} most={100} />
        </a>
        {alias === undefined ? undefined : (
          <span class="soft">
            {' '}
            {texts.tools.alias} <Foreign text={alias} most={128} />
          </span>
        )}
      </>
    ),
  },
  {
    key: 'origin',
    label: texts.tools.origin,
    cell: ({ backend, original, name }) => (
      <>
        <Foreign text={backend || texts.tools.server} most={60} />
        {original === name ? undefined : (
          <span class="soft">
            {' '}
            (<Foreign text={original} most={100} />)
          </span>
        )}
      </>
    ),
  },
  {
    key: 'summary',
    label: texts.tools.description,
    wide: true,
    cell: (tool) => (
      <>
        <Flags tool={tool} /> <Foreign text={tool.summary} most={200} />
      </>
    ),
  },
  { key: 'hints', label: texts.tools.saysOfItself, cell: ({ hints }) => hintsOf(hints) || '–' },
  { key: 'tokens', label: texts.tools.cost, number: true, cell: ({ tokens }) => `~${count(tokens)}` },
  { key: 'pin', label: texts.tools.pin, cell: ({ pin }) => <PinMark pin={pin} /> },
]
