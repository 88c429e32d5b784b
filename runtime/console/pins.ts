/** API routes for differences from the locks, and their approval. */
import { byText, GatehouseError, isFields } from '../../schemas/index.ts'
import type { ActionSubject } from './acted.ts'
import {
  type ApprovalResult,
  type ApprovalWay,
  type LockDifferenceDetail,
  type LockDifference,
  type LockedKind,
  mostReviewed,
  type PinDriftState,
  type PinList,
} from './api.ts'
import type { CallRecorder } from './calls/recorder.ts'
import { limitOf, pageOf, given } from './data/pages.ts'
import type { ApiRequest, ApiRoute } from './http/api-route.ts'
import type { Approver, ConsoleView, ReviewedDrift, ShownPins } from './view.ts'

export interface PinRouteParts {
  readonly view: Pick<ConsoleView, 'pins' | 'pinDetail' | 'tools'>
  readonly recorder: Pick<CallRecorder, 'replica'>
  readonly approver: Approver
  readonly now: () => number
}

export function pinRoutes(parts: PinRouteParts): readonly ApiRoute[] {
  return [
    { method: 'GET', path: 'pins', needs: 'overview', handle: (request) => pinList(parts, request) },
    { method: 'GET', path: 'pins/item', needs: 'overview', handle: (request) => pinDetail(parts, request) },
    {
      method: 'POST',
      path: 'pins/approve',
      needs: 'pins',
      fresh: true,
      action: 'console_pin_approved',
      about: subjectOf,
      handle: (request) => approve(parts, request),
    },
  ]
}

async function pinList(
  { view, recorder, now }: PinRouteParts,
  { query, visitor }: ApiRequest,
): Promise<PinList> {
  // Lists the backends now, because clients may not have listed them yet.
  await view.tools(visitor.caller)
  const backend = query.get('backend') || undefined
  const state = query.get('state') || undefined
  const reports = view.pins() ?? []
  const found = reports
    .flatMap(({ drift }) => drift)
    .filter((one) => (!backend || one.backend === backend) && (!state || one.state === state))
    .sort((a, b) => byText(keyOf(a), keyOf(b)))
  const page = { cursor: query.get('cursor') ?? undefined, limit: limitOf(query) }
  const shown = pageOf(found, page, keyOf, { replica: recorder.replica, now: now() })
  return {
    ...shown,
    items: shown.items.map(driftRow),
    enabled: view.pins() !== undefined,
    total: Math.max(found.length, countOf(reports, backend, state)),
    locks: reports.map(({ drift: _, failure, ...report }) => ({
      backend: report.backend,
      lock: report.lock,
      locks: report.locks,
      ...given('failure', failure),
      closed: report.closed,
      observed: report.observed,
      counts: report.counts,
    })),
  }
}

/** `counts` also includes differences that are not listed by name. */
function countOf(
  reports: readonly ShownPins[],
  backend: string | undefined,
  state: string | undefined,
): number {
  const own = reports.filter((one) => !backend || one.backend === backend)
  const wanted = (['new', 'changed', 'removed'] as const).filter((one) => !state || one === state)
  return own.flatMap(({ counts }) => wanted.map((one) => counts[one])).reduce((sum, one) => sum + one, 0)
}

function keyOf({ backend, kind, name }: Pick<LockDifference, 'backend' | 'kind' | 'name'>): string {
  return `${backend} ${kind} ${name}`
}

function driftRow({ backend, kind, name, state, parts, digest, renamedFrom }: LockDifference) {
  return { backend, kind, name, state, parts, digest, ...given('renamedFrom', renamedFrom) }
}

const kinds: readonly string[] = [
  'tool',
  'prompt',
  'resourceTemplate',
  'skill',
  'instructions',
] satisfies LockedKind[]
const states: readonly string[] = ['new', 'changed', 'removed'] satisfies PinDriftState[]

function pinDetail(
  { view, approver }: PinRouteParts,
  { query, permissions }: ApiRequest,
): LockDifferenceDetail {
  const kind = query.get('kind') ?? ''
  const found = isKind(kind) && view.pinDetail(query.get('backend') ?? '', kind, query.get('name') ?? '')
  if (!found)
    throw new GatehouseError('NOT_FOUND', { detail: 'the item matches the lock, or does not exist' })
  return {
    ...driftRow(found),
    ...given('approvedDigest', found.approvedDigest),
    diff: found.diff.map(({ part, lines }) => ({ part, diff: lines.join('\n').slice(0, mostReviewed) })),
    ...given('approval', permissions.has('pins') ? wayOf(approver, found) : undefined),
  }
}

function wayOf(approver: Approver, found: ReviewedDrift): ApprovalWay {
  const why = whyNot(found)
  return why === undefined ? approver.way(found) : { way: 'none', why }
}

const lockChanges = 'the lock has changed: reload and review the difference again'

/** Returns the reason why the item cannot be approved in the console; undefined for an approvable item. */
function whyNot({ digest, diff, changing }: ReviewedDrift): string | undefined {
  if (changing) return lockChanges
  if (digest === '') return 'the definition cannot be compared, so it cannot be locked'
  const isLong = diff.some(
    ({ lines, cut }) => cut || lines.reduce((sum, line) => sum + line.length + 1, 0) > mostReviewed,
  )
  return isLong ? 'the difference is too long for the page: review it with gatehouse lock' : undefined
}

function isKind(text: string): text is LockedKind {
  return kinds.includes(text)
}

async function approve({ view, approver }: PinRouteParts, { body }: ApiRequest): Promise<ApprovalResult> {
  const { backend, kind, name, state, digest, approvedDigest } = isFields(body) ? body : {}
  const texts = [backend, kind, name, state, digest].every((text) => typeof text === 'string')
  if (
    !texts ||
    !isKind(String(kind)) ||
    !states.includes(String(state)) ||
    !isDigest(digest) ||
    !(approvedDigest === undefined || isDigest(approvedDigest))
  )
    throw new GatehouseError('BAD_REQUEST', {
      detail: `backend, kind (${kinds.join(', ')}), name, state (${states.join(', ')}) and digest (sha256:<64 hex digits>) are required; approvedDigest, in the same form, is required unless the state is new`,
    })
  const found = view.pinDetail(String(backend), kind as LockedKind, String(name))
  if (!found)
    throw new GatehouseError('APPROVAL_STALE', {
      detail: 'the item no longer differs: the item matches the lock, or no longer exists',
    })
  if (found.digest !== digest || found.state !== state)
    throw new GatehouseError('APPROVAL_STALE', {
      detail: `the backend now offers a different definition (${found.state}, ${found.digest}): reload and review the difference again`,
    })
  if (found.approvedDigest !== approvedDigest || found.changing)
    throw new GatehouseError('APPROVAL_STALE', { detail: lockChanges })
  const why = whyNot(found)
  if (why !== undefined) throw new GatehouseError('LOCK_NOT_WRITTEN', { detail: why })
  return { file: await approver.approve(found) }
}

function isDigest(value: unknown): value is string {
  return typeof value === 'string' && /^sha256:[0-9a-f]{64}$/.test(value)
}

/** Subject for the audit log. An invalid digest is omitted. */
function subjectOf(body: unknown): ActionSubject {
  const { backend, kind, name, digest } = isFields(body) ? body : {}
  const named = [backend, kind, name].filter((text) => typeof text === 'string' && text !== '')
  return {
    target: named.length > 0 ? named.join(' ') : undefined,
    digest: isDigest(digest) ? digest : undefined,
  }
}
