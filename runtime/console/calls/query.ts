/** Finds calls, applying filters, paging and visibility rules. */
import { GatehouseError } from '../../../schemas/index.ts'
import { type CallView, outcomes, type ListPage, type PayloadView } from '../api.ts'
import { limitOf, given, iso } from '../data/pages.ts'
import type { ApiRequest } from '../http/api-route.ts'
import { type CallFilter, callTest } from './filter.ts'
import type { CallRecorder, StoredCall } from './recorder.ts'

const known: ReadonlySet<string> = new Set(outcomes)

/** Returns a predicate for the calls that a visitor may see. */
export function visibleTo({ visitor, permissions }: Pick<ApiRequest, 'visitor' | 'permissions'>) {
  const seesAll = permissions.has('calls.all')
  return ({ owner }: StoredCall): boolean => seesAll || owner === visitor.caller.key
}

/** Returns the call with the payload state for this visitor. */
export function asSeenBy(
  recorder: CallRecorder,
  { visitor, permissions }: Pick<ApiRequest, 'visitor' | 'permissions'>,
) {
  return ({ seq, call, owner, isRemote }: StoredCall): CallView => {
    if (call.payload !== 'recorded') return call
    if (isRemote) return { ...call, payload: 'elsewhere' }
    const may = permissions.has('payloads') || owner === visitor.caller.key
    if (!may) return { ...call, payload: 'withheld' }
    return recorder.payloads.find(seq) ? call : { ...call, payload: 'evicted' }
  }
}

/** Handles `calls/{}/payload`. Throws NOT_FOUND, PAYLOAD_NEEDS_AUDITOR, PAYLOAD_NOT_RECORDED or PAYLOAD_EVICTED. */
export function payloadOf(recorder: CallRecorder, request: ApiRequest): PayloadView {
  const stored = findCall(recorder, request)
  const { payload, id } = asSeenBy(recorder, request)(stored)
  if (payload === 'none') throw new GatehouseError('PAYLOAD_NOT_RECORDED')
  if (payload === 'elsewhere') throw new GatehouseError('WRONG_REPLICA')
  if (payload === 'withheld') throw new GatehouseError('PAYLOAD_NEEDS_AUDITOR')
  const found = recorder.payloads.find(stored.seq)
  if (!found) throw new GatehouseError('PAYLOAD_EVICTED')
  return { id, ...found }
}

/** Handles `calls`, newest first. Throws BAD_REQUEST or WRONG_REPLICA. */
export function callsPage(recorder: CallRecorder, request: ApiRequest, now: number): ListPage<CallView> {
  const { query } = request
  const fits = filterOf(query)
  const isVisible = visibleTo(request)
  const limit = limitOf(query)
  const cursor = query.get('cursor')
  const from = cursor === null ? Number.MAX_SAFE_INTEGER : seqOf(cursor, recorder.replica)
  const found: StoredCall[] = []
  let more = false
  for (const stored of newestFirst(recorder, from)) {
    if (!isVisible(stored) || !fits(stored.call)) continue
    if (found.length === limit) {
      more = true
      break
    }
    found.push(stored)
  }
  const oldest = recorder.all.oldest
  const isGap = cursor !== null && oldest !== undefined && from < oldest.seq
  return {
    items: found.map(asSeenBy(recorder, request)),
    ...given('next', more ? recorder.idOf(found.at(-1)?.seq ?? 0) : undefined),
    replica: recorder.replica,
    asOf: iso(now),
    ...given('oldest', oldest?.call.at),
    ...(isGap ? { gap: true } : {}),
  }
}

/** Returns a call. Throws NOT_FOUND for an unknown call, and for a call that the visitor may not see. */
export function findCall(recorder: CallRecorder, request: ApiRequest): StoredCall {
  const id = request.names[0] ?? ''
  const stored = remoteCall(recorder, id) ?? ownCall(recorder, seqOf(id, recorder.replica))
  if (!stored || !visibleTo(request)(stored))
    throw new GatehouseError('NOT_FOUND', { detail: 'unknown call, or one that is no longer stored' })
  return stored
}

function ownCall({ all, notable }: CallRecorder, seq: number): StoredCall | undefined {
  return all.find(seq) ?? notable.find(seq)
}

/** Calls made by another replica keep their ids. */
function remoteCall(recorder: CallRecorder, id: string): StoredCall | undefined {
  if (id.startsWith(`${recorder.replica}.`)) return undefined
  for (const stored of newestFirst(recorder, Number.MAX_SAFE_INTEGER))
    if (stored.isRemote && stored.call.id === id) return stored
  return undefined
}

/** Yields the calls from newest to oldest: all recent calls, then the older notable calls. */
function* newestFirst({ all, notable }: CallRecorder, from: number): Generator<StoredCall> {
  yield* all.before(from)
  yield* notable.before(Math.min(from, all.oldest?.seq ?? from))
}

/** Parses the sequence number in a call's id. Throws NOT_FOUND or WRONG_REPLICA. */
function seqOf(id: string, replica: string): number {
  const [, of, number] = /^([0-9a-f]{8})\.([0-9a-z]{1,10})$/.exec(id) ?? []
  if (of === undefined || number === undefined) throw new GatehouseError('NOT_FOUND')
  if (of !== replica) throw new GatehouseError('WRONG_REPLICA')
  return Number.parseInt(number, 36)
}

/** Throws BAD_REQUEST. */
function filterOf(query: URLSearchParams): (call: CallView) => boolean {
  const value = (name: keyof CallFilter): string => query.get(name) ?? ''
  const outcome = value('outcome')
  if (outcome !== '' && !known.has(outcome))
    throw new GatehouseError('BAD_REQUEST', { detail: `outcome must be one of ${outcomes.join(', ')}` })
  const from = timeOf(query, 'from')
  const to = timeOf(query, 'to')
  const fits = callTest({
    caller: value('caller'),
    backend: value('backend'),
    tool: value('tool'),
    outcome,
    text: value('text'),
    messages: messagesOf(value('messages')),
  })
  if (from === undefined && to === undefined) return fits
  const isInTime = within(from, to)
  return (call) => fits(call) && isInTime(call)
}

/** Throws BAD_REQUEST. */
function messagesOf(value: string): string {
  if (!['', 'all', 'calls'].includes(value))
    throw new GatehouseError('BAD_REQUEST', { detail: 'messages must be "calls" or "all"' })
  return value
}

function within(from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY): (call: CallView) => boolean {
  return (call) => {
    const at = Date.parse(call.at)
    return at >= from && at <= to
  }
}

function timeOf(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name)
  if (text === null || text === '') return undefined
  const at = Date.parse(text)
  if (Number.isNaN(at))
    throw new GatehouseError('BAD_REQUEST', { detail: `${name} must be a time such as 2026-11-22T09:30:00Z` })
  return at
}
