/**
 * Pins: definitions that differ from the locks. The page for a single difference shows the changes and lets users
 * approve them.
 */
import { useRef, useState } from 'preact/hooks'
import type {
  ApprovalResult,
  ApprovalRequest,
  Me,
  LockDifferenceDetail,
  LockDifference,
  PinList,
  PinnedBackend,
} from '../../api.ts'
import { ApiError, get, queryOf, send } from '../data/client.ts'
import { useReloadOn } from '../data/live.ts'
import { useList } from '../data/use-resource.ts'
import { ChoiceFilter, BackendFilter, Filters, Pager, useTrail } from '../parts/filters.tsx'
import { count } from '../parts/format.ts'
import { DriftMark } from '../parts/marks.tsx'
import { Copyable, Failure, Loaded, Notice } from '../parts/notices.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { Foreign, LongText } from '../parts/text.tsx'
import { hrefOf, route } from '../shell/router.ts'
import { texts } from '../texts.ts'

const states = ['changed', 'new', 'removed'] as const

export function PinsPage({ me }: { readonly me: Me }) {
  const { rest, query } = route.value
  const [backend, kind, name = ''] = rest
  if (backend !== undefined && kind !== undefined) {
    const path = `pins/item${queryOf({ backend, kind, name })}`
    return <ItemPage key={path} path={path} kind={kind} name={name} />
  }
  const filter = { backend: query.get('backend') ?? '', state: query.get('state') ?? '' }
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>{texts.pages.pins}</h1>
      </div>
      <Filters>
        <BackendFilter me={me} />
        <ChoiceFilter
          name="state"
          label={texts.pins.state}
          options={states.map((state) => [state, texts.pins.states[state]] as const)}
        />
      </Filters>
      <List filter={filter} />
    </>
  )
}

/** Reloads when tools, locks or the configuration change. */
function useCurrent<T>(path: string) {
  const resource = useList(path, (signal) => get<T>(path, signal))
  useReloadOn('catalog', resource.reload)
  return resource
}

function List({ filter }: { readonly filter: Readonly<Record<'backend' | 'state', string>> }) {
  const [trail, setTrail] = useTrail(JSON.stringify(filter))
  const resource = useCurrent<PinList>(`pins${queryOf({ ...filter, cursor: trail.at(-1), limit: '100' })}`)
  return (
    <Loaded resource={resource}>
      {({ items, next, total, enabled, locks }) =>
        enabled ? (
          <>
            <p class="soft" role="status">
              {texts.pins.shown(items.length, total)}
            </p>
            {items.length === 0 ? (
              <p class="soft">{texts.pins.none}</p>
            ) : (
              <Table
                label={texts.pins.differences}
                columns={columns}
                rows={items}
                keyOf={({ backend, kind, name }) => `${backend} ${kind} ${name}`}
              />
            )}
            <Pager next={next} trail={trail} setTrail={setTrail} />
            <h2>{texts.pins.locks}</h2>
            <Table
              label={texts.pins.locks}
              columns={lockColumns}
              rows={locks}
              keyOf={({ backend }) => backend}
            />
          </>
        ) : (
          <p class="soft">{texts.pins.off}</p>
        )
      }
    </Loaded>
  )
}

const columns: readonly Column<LockDifference>[] = [
  {
    key: 'name',
    label: texts.tools.name,
    head: true,
    cell: ({ backend, kind, name }) => (
      <a class="row" href={hrefOf(['pins', backend, kind, ...(name === '' ? [] : [name])])}>
        <Foreign text={name || texts.pins.kinds.instructions} most={100} />
      </a>
    ),
  },
  { key: 'kind', label: texts.pins.kind, cell: ({ kind }) => texts.pins.kinds[kind] ?? kind },
  { key: 'backend', label: texts.backend, cell: ({ backend }) => <Foreign text={backend} most={60} /> },
  { key: 'state', label: texts.pins.state, cell: ({ state }) => <DriftMark state={state} /> },
  {
    key: 'parts',
    label: texts.pins.parts,
    wide: true,
    cell: ({ parts, renamedFrom }) => (
      <>
        {parts.join(', ') || '–'}
        {renamedFrom === undefined ? undefined : (
          <span class="soft">
            {' '}
            ({texts.pins.renamedFrom} <Foreign text={renamedFrom} most={100} />)
          </span>
        )}
      </>
    ),
  },
]

const lockColumns: readonly Column<PinnedBackend>[] = [
  {
    key: 'backend',
    label: texts.backend,
    head: true,
    cell: ({ backend }) => <Foreign text={backend} most={60} />,
  },
  { key: 'lock', label: texts.pins.lock, wide: true, cell: (row) => <LockState row={row} /> },
  { key: 'pinned', label: texts.pin.pinned, number: true, cell: ({ counts }) => count(counts.pinned) },
  ...states.map(
    (state): Column<PinnedBackend> => ({
      key: state,
      label: texts.pins.states[state],
      number: true,
      cell: ({ counts }) => count(counts[state]),
    }),
  ),
]

function LockState({ row: { lock, locks, failure, closed, observed } }: { readonly row: PinnedBackend }) {
  if (lock === 'missing') return <>{closed ? texts.pins.closed : texts.pins.missing}</>
  return (
    <>
      <Foreign text={locks.join(', ')} most={200} />
      {failure === undefined ? undefined : (
        <>
          {': '}
          <Foreign text={failure} most={500} />
        </>
      )}
      {observed ? undefined : <span class="soft"> {texts.pins.notListed}</span>}
    </>
  )
}

function ItemPage({
  path,
  kind,
  name,
}: {
  readonly path: string
  readonly kind: string
  readonly name: string
}) {
  const [approved, setApproved] = useState<Approved>()
  const resource = useCurrent<LockDifferenceDetail>(path)
  const gone = resource.error?.status === 404
  // Handles a stale approval: the backend now offers a different definition.
  const isOld = !gone && resource.data !== undefined && resource.data.digest !== approved?.digest
  const latestApproval = isOld ? undefined : approved
  const heading = useRef<HTMLHeadingElement>(null)
  const done = (result: Approved): void => {
    setApproved(result)
    // Moves the focus, because the focused button no longer exists.
    heading.current?.focus()
  }
  return (
    <>
      <p class="crumb">
        <a href={hrefOf(['pins'])}>{texts.pages.pins}</a>
      </p>
      <div class="title">
        <h1 tabIndex={-1} ref={heading}>
          <Foreign text={kind === 'instructions' ? texts.pins.kinds.instructions : name} />
        </h1>
      </div>
      {latestApproval ? (
        <Notice tone="plain" alert>
          <p>
            {gone ? texts.pins.inForce : texts.pins.written} <Foreign text={latestApproval.file} most={300} />
          </p>
        </Notice>
      ) : undefined}
      {gone ? (
        <p class="soft">{texts.pins.gone}</p>
      ) : (
        <Loaded resource={resource}>
          {(item) => (
            <Item
              key={`${item.digest} ${item.approvedDigest ?? ''}`}
              item={item}
              done={latestApproval !== undefined}
              onApproved={done}
            />
          )}
        </Loaded>
      )}
    </>
  )
}

interface Approved extends ApprovalResult {
  readonly digest: string
}

interface ItemProps {
  readonly item: LockDifferenceDetail
  readonly done: boolean
  readonly onApproved: (approved: Approved) => void
}

function Item({ item, done, onApproved }: ItemProps) {
  const { backend, kind, state, digest, renamedFrom, diff, approval } = item
  return (
    <>
      <p class="tool-facts">
        <span>
          <span class="soft">{texts.tools.origin}</span> <Foreign text={backend} most={60} />
        </span>
        <span>{texts.pins.kinds[kind] ?? kind}</span>
        <DriftMark state={state} />
        {renamedFrom === undefined ? undefined : (
          <span>
            {texts.pins.renamedFrom} <Foreign text={renamedFrom} most={100} />
          </span>
        )}
      </p>
      <p class="soft">{texts.pins.means[state]}</p>
      {diff.map(({ part, diff }) => (
        <section key={part}>
          <h2>
            <Foreign text={part} most={60} />
          </h2>
          <LongText text={diff} label={texts.pins.changesOf(part)} code whole />
        </section>
      ))}
      <p class="soft">
        {texts.pins.digest} <Foreign text={digest} most={80} />
      </p>
      {approval === undefined || done ? undefined : (
        <section class="panel">
          <h2>{texts.pins.approval}</h2>
          {approval.way === 'file' ? (
            <Approve item={item} file={approval.file} onApproved={onApproved} />
          ) : approval.way === 'command' ? (
            <>
              <p>{texts.pins.byCommand}</p>
              <Copyable text={approval.command} label={texts.pins.command} block />
              <p class="soft">{texts.pins.orGit}</p>
            </>
          ) : (
            <p>
              {texts.pins.notHere} <Foreign text={approval.why} most={600} />
            </p>
          )}
        </section>
      )}
    </>
  )
}

function Approve({
  item,
  file,
  onApproved,
}: Pick<ItemProps, 'item' | 'onApproved'> & { readonly file: string }) {
  const [state, setState] = useState<'idle' | 'busy' | ApiError>('idle')
  const { backend, kind, name, state: drift, digest, approvedDigest } = item
  const approve = async (): Promise<void> => {
    setState('busy')
    try {
      const body: ApprovalRequest = { backend, kind, name, state: drift, digest, approvedDigest }
      const approved = await send<ApprovalResult>('POST', 'pins/approve', body)
      if (approved) onApproved({ ...approved, digest })
    } catch (error) {
      setState(error instanceof ApiError ? error : new ApiError(0, 'page', String(error)))
    }
  }
  return (
    <>
      <p>
        {texts.pins.willWrite} <Foreign text={file} most={300} />. {texts.pins.orLeave}
      </p>
      {state instanceof ApiError ? <Failure error={state} /> : undefined}
      <p>
        <button type="button" class="main" disabled={state === 'busy'} onClick={() => void approve()}>
          {texts.pins.approve[drift]}
        </button>
      </p>
    </>
  )
}
