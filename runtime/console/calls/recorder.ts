/**
 * What the console keeps of the requests that a server gets: the latest ones, the notable ones for longer, and counts per
 * minute. All of it is bounded in bytes, whatever clients do.
 *
 * Pings, notifications and the opening of streams are not stored. Requests that nobody signed in for are stored among the
 * latest only: they must not push out what people did.
 */
import { randomBytes } from 'node:crypto'
import type { Events, ExchangeRecord, ExchangeRecorder } from '../../observe/index.ts'
import type { CallView } from '../api.ts'
import { given, iso } from '../data/texts.ts'
import type { Tried } from '../view.ts'
import { callOf, denyingPolicies } from './call-of.ts'
import { type PayloadMode, Payloads } from './payloads.ts'
import { Ring } from './ring.ts'
import { Series } from './series.ts'

const ringBytes = 8 * 1024 * 1024
const slowMs = 5_000
const maxPolicies = 1_000
const maxText = 128
/** What an entry takes beside its texts. */
const entryBytes = 400

export interface StoredCall {
  readonly seq: number
  readonly bytes: number
  readonly call: CallView
  /** `Caller.key` of whoever made it; undefined when nobody was signed in. */
  readonly owner: string | undefined
}

export interface CallRecorderOptions {
  readonly events: Events
  /** Milliseconds since the epoch. */
  readonly now?: () => number
  /** Which calls are stored with arguments and result, redacted. Default off. */
  readonly payloads?: PayloadMode | undefined
  /** Bytes of each ring (tests). */
  readonly ringBytes?: number
}

export class CallRecorder implements ExchangeRecorder {
  readonly responseBytes: number
  readonly payloads: Payloads
  /** Names this process among its replicas. */
  readonly replica = randomBytes(4).toString('hex')
  readonly all: Ring<StoredCall>
  readonly notable: Ring<StoredCall>
  readonly series: Series
  readonly #now: () => number
  readonly #stop: () => void
  readonly #listeners = new Set<(stored: StoredCall) => void>()
  readonly #decided = new Map<string, number>()
  #seq = 0

  constructor({
    events,
    now = Date.now,
    ringBytes: bytes = ringBytes,
    payloads = 'none',
  }: CallRecorderOptions) {
    this.payloads = new Payloads(payloads)
    this.responseBytes = this.payloads.responseBytes
    this.#now = now
    this.all = new Ring(bytes)
    this.notable = new Ring(bytes)
    this.series = new Series(now)
    this.#stop = events.listen((event) => {
      if (event.type === 'backend_health') {
        const { backend, after } = event.fields as { backend: string; after: 'healthy' }
        this.series.noteHealth(backend, after)
      } else if (event.type === 'backends_changed') {
        this.series.forget((event.fields as { removed: readonly string[] }).removed)
      }
    })
  }

  /** Hears of every call that is stored from now on; the returned function ends that. */
  listen(listener: (stored: StoredCall) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** How many requests a policy decided. */
  decidedBy(policy: string): number {
    return this.#decided.get(policy) ?? 0
  }

  /** The time of the first call that a caller made, of those that are stored. */
  firstCallOf(owner: string): string | undefined {
    let first: string | undefined
    for (const stored of this.all.before(Number.MAX_SAFE_INTEGER))
      if (stored.owner === owner && countsAsCall(stored.call.method)) first = stored.call.at
    return first
  }

  exchange(record: ExchangeRecord): void {
    for (const id of record.policy?.reason ?? []) this.#count(id)
    if (!isStored(record)) return
    this.#store(record.caller?.key, (id, seq) =>
      callOf(record, id, this.#now(), this.payloads.store(seq, record) ? 'recorded' : 'none'),
    )
  }

  /** Records a call that was made from the console itself. */
  tried(tried: Tried): void {
    const { request, caller, backend, ms, outcome, policy, error } = tried
    for (const id of policy?.reason ?? []) this.#count(id)
    this.#store(caller.key, (id) => ({
      id,
      at: iso(this.#now() - ms),
      method: 'tools/call',
      name: request.name.slice(0, maxText),
      ...given('backend', backend === '' ? undefined : backend),
      caller: {
        sub: caller.subject.slice(0, maxText),
        name: caller.displayName.slice(0, maxText),
        client: 'console',
      },
      era: request.era,
      ms,
      outcome,
      ...given('denied', deniedOf(tried)),
      ...given('error', error),
      payload: 'none',
    }))
  }

  #count(policy: string): void {
    const count = this.#decided.get(policy)
    if (count === undefined && this.#decided.size >= maxPolicies) return
    this.#decided.set(policy, (count ?? 0) + 1)
  }

  #store(owner: string | undefined, make: (id: string, seq: number) => CallView): void {
    const seq = ++this.#seq
    const call = make(`${this.replica}.${seq.toString(36)}`, seq)
    const stored: StoredCall = { seq, call, owner, bytes: sizeOf(call) }
    this.all.push(stored)
    if (isNotable(stored)) this.notable.push(stored)
    const result = resultOf(call.outcome)
    if (countsAsCall(call.method)) this.series.add({ backend: call.backend ?? '', ms: call.ms, result })
    for (const listener of this.#listeners) listener(stored)
  }

  close(): void {
    this.#stop()
    this.#listeners.clear()
  }
}

function isStored({ type, status }: ExchangeRecord): boolean {
  if (type === 'sse_connection' || type === 'mcp_ping') return false
  const isQuiet = type === 'mcp_notification' || type === 'mcp_roots_list_changed' || type === 'http_request'
  return !isQuiet || status >= 400
}

function isNotable({ call: { outcome, ms }, owner }: StoredCall): boolean {
  return owner !== undefined && (outcome !== 'success' || ms > slowMs)
}

/** Lists and handshakes are shown, and are no calls of anything. */
function countsAsCall(method: string): boolean {
  return method === 'tools/call' || method === 'prompts/get' || method === 'resources/read'
}

function resultOf(outcome: CallView['outcome']): 'ok' | 'failed' | 'denied' {
  if (outcome === 'success' || outcome === 'cancelled') return 'ok'
  return outcome === 'denied' || outcome === 'unauthenticated' ? 'denied' : 'failed'
}

const limitedCode = 429

function deniedOf({ outcome, policy, error }: Tried): CallView['denied'] {
  if (outcome !== 'denied') return undefined
  return error?.code === limitedCode
    ? { by: 'rate_limit' }
    : { by: 'policy', ...given('policies', policy && denyingPolicies(policy)) }
}

/** Texts need at most two bytes a character. */
function sizeOf({ name = '', caller, error, backend = '' }: CallView): number {
  const texts = [
    name,
    backend,
    caller?.sub ?? '',
    caller?.name ?? '',
    caller?.client ?? '',
    error?.message ?? '',
  ]
  return texts.reduce((sum, text) => sum + text.length * 2, entryBytes)
}
