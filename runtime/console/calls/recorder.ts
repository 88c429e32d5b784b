/**
 * Records requests for the console: the latest requests, notable requests for longer, and counts per minute. Memory is
 * limited, regardless of what clients send.
 *
 * Pings, notifications and the opening of streams are not stored. Unauthenticated requests are stored only among the
 * latest requests, because they must not displace users' calls.
 */
import { randomBytes } from 'node:crypto'
import type { Events, ExchangeRecord, ExchangeRecorder } from '../../observe/index.ts'
import type { CallView } from '../api.ts'
import { given, iso } from '../data/pages.ts'
import type { ConsoleView, Tried } from '../view.ts'
import { callOf, denyingPolicies } from './call-of.ts'
import { countsAsCall } from './filter.ts'
import { type PayloadMode, Payloads } from './payloads.ts'
import { PolicyCounts } from './policy-counts.ts'
import { Ring } from './ring.ts'
import { Series } from './series.ts'

const ringBytes = 8 * 1024 * 1024
const slowMs = 5_000
const maxText = 128
/**
 * Approximate size of an entry without its variable-length text. Includes the size of the objects, id, times, session
 * and trace.
 */
const entryBytes = 600

export interface StoredCall {
  readonly seq: number
  readonly bytes: number
  readonly call: CallView
  /** `Caller.key` of the caller; undefined when the caller was not authenticated. */
  readonly owner: string | undefined
  /** True for a call made from the console. */
  readonly isTry: boolean
  /** True for a call made by another replica. */
  readonly isRemote: boolean
}

export interface CallRecorderOptions {
  readonly events: Events
  /** Milliseconds since the epoch. */
  readonly now?: () => number
  /** Selects the calls to store with their redacted arguments and result. Default: no calls. */
  readonly payloads?: PayloadMode | undefined
  /** Size of each ring in bytes (for tests). */
  readonly ringBytes?: number
}

export class CallRecorder implements ExchangeRecorder {
  readonly responseBytes: number
  readonly payloads: Payloads
  /** Identifies this process among its replicas. */
  readonly replica = randomBytes(4).toString('hex')
  readonly all: Ring<StoredCall>
  readonly notable: Ring<StoredCall>
  readonly series: Series
  readonly policies = new PolicyCounts(() => this.#view?.policies())
  readonly #now: () => number
  readonly #stop: () => void
  readonly #listeners = new Set<(stored: StoredCall) => void>()
  #seq = 0
  #view: Pick<ConsoleView, 'policies'> | undefined

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

  /** Calls `listener` for every call stored from now on. Returns a function that removes the listener. */
  listen(listener: (stored: StoredCall) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Sets the server whose policies apply. */
  serves(view: Pick<ConsoleView, 'policies'>): void {
    this.#view = view
  }

  /** Returns the time of the oldest stored client call of this caller. */
  firstCallOf(owner: string): string | undefined {
    let first: string | undefined
    for (const stored of this.all.before(Number.MAX_SAFE_INTEGER))
      if (stored.owner === owner && !stored.isTry && countsAsCall(stored.call.method)) first = stored.call.at
    return first
  }

  exchange(record: ExchangeRecord): void {
    if (record.policy) this.policies.count(record.policy)
    if (!isStored(record)) return
    this.#store({ owner: record.caller?.key, isTry: false }, (id, seq) =>
      callOf(record, id, this.#now(), this.payloads.store(seq, record) ? 'recorded' : 'none'),
    )
  }

  /** Records a call made from the console. */
  tried(tried: Tried): void {
    const { request, caller, backend, ms, outcome, policy, error } = tried
    if (policy) this.policies.count(policy)
    this.#store({ owner: caller.key, isTry: true }, (id) => ({
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

  /** Records a call made by another replica. */
  remote(call: CallView, owner: string | undefined, isTry: boolean): void {
    this.#push({ seq: ++this.#seq, call, owner, isTry, isRemote: true, bytes: sizeOf(call) })
  }

  #store(of: Pick<StoredCall, 'owner' | 'isTry'>, make: (id: string, seq: number) => CallView): void {
    const seq = ++this.#seq
    const call = make(this.idOf(seq), seq)
    this.#push({ seq, call, ...of, isRemote: false, bytes: sizeOf(call) })
  }

  /** Returns the id for a sequence number of this process. */
  idOf(seq: number): string {
    return `${this.replica}.${seq.toString(36)}`
  }

  #push(stored: StoredCall): void {
    const { call, isRemote } = stored
    this.all.push(stored)
    if (isNotable(stored)) this.notable.push(stored)
    const sample = { backend: call.backend ?? '', ms: call.ms, result: resultOf(call.outcome) }
    if (countsAsCall(call.method)) this.series.add(sample, isRemote ? Date.parse(call.at) : this.#now())
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

function resultOf(outcome: CallView['outcome']): 'ok' | 'failed' | 'denied' {
  if (outcome === 'success' || outcome === 'cancelled') return 'ok'
  return outcome === 'denied' || outcome === 'unauthenticated' ? 'denied' : 'failed'
}

function deniedOf({ denied, policy }: Tried): CallView['denied'] {
  if (denied === undefined) return undefined
  return {
    by: denied,
    ...given('policies', denied === 'policy' && policy ? denyingPolicies(policy) : undefined),
  }
}

/** Estimates the size of strings, which need at most two bytes per character. */
function sizeOf({ method, name, original, backend, caller, era, error, denied }: CallView): number {
  const texts = [method, name, original, backend, era, error?.message, ...Object.values(caller ?? {})]
  return [...texts, ...(denied?.policies ?? [])].reduce(
    (sum, text) => sum + 2 * (text?.length ?? 0),
    entryBytes + 16 * (denied?.policies?.length ?? 0),
  )
}
