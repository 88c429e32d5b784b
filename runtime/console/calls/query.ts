/** Finds calls: filters, pages, and who may see which. */
import { GatehouseError } from '../../../schemas/index.ts'
import { type CallView, outcomes, type ListPage, type PayloadView } from '../api.ts'
import { limitOf } from '../data/pages.ts'
import { given, iso } from '../data/texts.ts'
import type { ApiRequest } from '../http/api-route.ts'
import type { CallRecorder, StoredCall } from './recorder.ts'

const known: ReadonlySet<string> = new Set(outcomes)

/** True for the calls that a visitor may see. */
export function visibleTo({ visitor, permissions }: Pick<ApiRequest, 'visitor' | 'permissions'>) {
  const seesAll = permissions.has('calls.all')
  return ({ owner }: StoredCall): boolean => seesAll || owner === visitor.caller.key
}

/** A call as a visitor may see it: whether its payload can be read is for each to know. */
export function asSeenBy(
  recorder: CallRecorder,
  { visitor, permissions }: Pick<ApiRequest, 'visitor' | 'permissions'>,
) {
  return ({ seq, call, owner }: StoredCall): CallView => {
    if (call.payload !== 'recorded') return call
    const may = permissions.has('payloads') || owner === visitor.caller.key
    if (!may) return { ...call, payload: 'withheld' }
    return recorder.payloads.find(seq) ? call : { ...call, payload: 'evicted' }
  }
}

/** Answers `calls/{}/payload`. Throws NOT_FOUND, PAYLOAD_NEEDS_AUDITOR, PAYLOAD_NOT_RECORDED or PAYLOAD_EVICTED. */
export function payloadOf(recorder: CallRecorder, request: ApiRequest): PayloadView {
  const stored = findCall(recorder, request)
  const { payload, id } = asSeenBy(recorder, request)(stored)
  if (payload === 'none') throw new GatehouseError('PAYLOAD_NOT_RECORDED')
  if (payload === 'withheld') throw new GatehouseError('PAYLOAD_NEEDS_AUDITOR')
  const found = recorder.payloads.find(stored.seq)
  if (!found) throw new GatehouseError('PAYLOAD_EVICTED')
  return { id, ...found }
}

/** Answers `calls`: the newest first. Throws BAD_REQUEST or WRONG_REPLICA. */
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
    ...given('next', more ? found.at(-1)?.call.id : undefined),
    replica: recorder.replica,
    asOf: iso(now),
    ...given('oldest', oldest?.call.at),
    ...(isGap ? { gap: true } : {}),
  }
}

/** Throws NOT_FOUND, also for what the visitor may not see. */
export function findCall(recorder: CallRecorder, request: ApiRequest): StoredCall {
  const seq = seqOf(request.names[0] ?? '', recorder.replica)
  const stored = recorder.all.find(seq) ?? recorder.notable.find(seq)
  if (!stored || !visibleTo(request)(stored))
    throw new GatehouseError('NOT_FOUND', { detail: 'there is no such call, or it is not stored any more' })
  return stored
}

/** The notable calls go on where the others end. */
function* newestFirst({ all, notable }: CallRecorder, from: number): Generator<StoredCall> {
  yield* all.before(from)
  yield* notable.before(Math.min(from, all.oldest?.seq ?? from))
}

/** The number in a call's id. Throws NOT_FOUND or WRONG_REPLICA. */
function seqOf(id: string, replica: string): number {
  const [, of, number] = /^([0-9a-f]{8})\.([0-9a-z]{1,10})$/.exec(id) ?? []
  if (of === undefined || number === undefined) throw new GatehouseError('NOT_FOUND')
  if (of !== replica) throw new GatehouseError('WRONG_REPLICA')
  return Number.parseInt(number, 36)
}

/** Throws BAD_REQUEST. */
function filterOf(query: URLSearchParams): (call: CallView) => boolean {
  const text = query.get('text')?.toLowerCase() || undefined
  const caller = query.get('caller')?.toLowerCase() || undefined
  const backend = query.get('backend') || undefined
  const tool = query.get('tool') || undefined
  const outcome = query.get('outcome') || undefined
  if (outcome !== undefined && !known.has(outcome))
    throw new GatehouseError('BAD_REQUEST', { detail: `outcome must be one of ${outcomes.join(', ')}` })
  const from = timeOf(query, 'from') ?? Number.NEGATIVE_INFINITY
  const to = timeOf(query, 'to') ?? Number.POSITIVE_INFINITY
  return (call) => {
    if (backend !== undefined && call.backend !== backend) return false
    if (tool !== undefined && call.name !== tool) return false
    if (outcome !== undefined && call.outcome !== outcome) return false
    const at = Date.parse(call.at)
    if (at < from || at > to) return false
    const who = `${call.caller?.sub ?? ''}\n${call.caller?.name ?? ''}`
    if (caller !== undefined && !who.toLowerCase().includes(caller)) return false
    if (text === undefined) return true
    const { client = '' } = call.caller ?? {}
    const words = [call.method, call.name ?? '', call.backend ?? '', who, client, call.error?.message ?? '']
    return words.join('\n').toLowerCase().includes(text)
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
