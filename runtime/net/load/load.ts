/**
 * Protects a server from overload, and callers from one another. Requests beyond the capacity of one turn of the event
 * loop wait in a fair queue, and requests that would wait too long are rejected.
 *
 * A process has one thread, so requests compete for its processing time. Each turn of the event loop starts requests
 * for a few milliseconds, and callers take turns. Below this capacity, which is the normal case, nothing waits and
 * nothing is measured. Short turns leave time for probes, new connections and responses. The expected wait is derived
 * from the caller's waiting requests, the number of waiting callers and the recent cost per request. `admit` uses this
 * estimate to reject requests before anything is read. It identifies the caller by the request's unverified credential
 * or session. A forged credential or session affects only requests with the same value. Requests that wait for
 * backends, users or events do not count.
 *
 * Built-in paths (health, readiness, metadata) run earlier and are exempt. Other modules write logs and metrics.
 * Source: B. Maurer, "Fail at Scale", ACM Queue 13(8): controlled delay; RFC 8289 section 3 (a standing queue is
 * useless).
 */
import type { IncomingMessage } from 'node:http'
import { GatehouseError } from '../../../schemas/index.ts'
import { localIssuer } from '../caller.ts'
import type { Exchange } from '../pipeline.ts'
import { peerAddress } from '../addresses.ts'
import { BodyMemory } from './body-memory.ts'
import { CallerQueue, type Flow } from './caller-queue.ts'
import { type LoadLimits, loadLimits } from './limits.ts'

export interface LoadOptions {
  readonly limits?: Partial<LoadLimits> | undefined
  /** Called immediately for each rejected request. */
  readonly onRejected?: (() => void) | undefined
  /** Monotonic clock, in milliseconds. */
  readonly now?: (() => number) | undefined
  /** Runs the work once, after the current turn of the event loop. */
  readonly afterTurn?: ((work: () => void) => void) | undefined
}

/**
 * Assumed cost of a request until some requests have been measured. The assumption counts as much as ten measurements.
 */
const guessMs = 0.5
const guessCount = 10
/** Half-life of a measurement, in measured processing time. */
const paceWindowMs = 1_000
/**
 * Errors with different retry delays, which spread client retries over a few seconds. The errors are created only once,
 * because a stack trace for each rejection would cost more than the response.
 */
const errors = [1, 2, 3].map(
  (seconds) => new GatehouseError('OVERLOADED', { headers: { 'retry-after': String(seconds) } }),
)
const maxHints = 10_000
const hintLength = 128

export class LoadControl {
  /** Memory in use by request bodies. */
  readonly bodies: BodyMemory
  readonly #limits: LoadLimits
  readonly #now: () => number
  readonly #afterTurn: (work: () => void) => void
  readonly #onRejected: () => void
  readonly #queue = new CallerQueue()
  #rejected = 0
  /** Number of rejections in this turn. */
  #rejectedNow = 0
  readonly #pendingRejections: ((error: Error) => void)[] = []
  /** Flows, keyed by the unverified key of their requests, while the queue is long. */
  readonly #hints = new Map<string, Flow>()
  #inTurn = false
  #turnBegan = 0
  #wasLong = false
  /** Number of requests that arrived in this turn. */
  #arrived = 0
  /** Number of requests started in this turn. */
  #started = 0
  /** Processing time and number of recently started requests. */
  #spentMs = guessCount * guessMs
  #counted = guessCount
  #startsPerTurn: number

  constructor(options: LoadOptions = {}) {
    this.#limits = { ...loadLimits, ...options.limits }
    this.#startsPerTurn = this.#startsIn(guessMs)
    this.#now = options.now ?? performance.now.bind(performance)
    this.#afterTurn = options.afterTurn ?? setImmediate
    this.#onRejected = options.onRejected ?? (() => {})
    this.bodies = new BodyMemory({
      maxBytes: this.#limits.maxBodiesBytes,
      now: this.#now,
      makeError: () => this.#rejectNow(),
    })
  }

  /** Number of requests waiting for their turn. */
  get waiting(): number {
    return this.#queue.size
  }

  /** Number of rejected requests. */
  get rejected(): number {
    return this.#rejected
  }

  /** Rejects a request based on its head, before anything is read or verified. Throws or rejects with OVERLOADED. */
  admit({ req, startedAt }: Exchange): void | Promise<void> {
    if (!this.#inTurn) this.#enterTurn(startedAt)
    const { longTurnMs, alwaysAdmitted } = this.#limits
    const isLate = this.#wasLong && startedAt - this.#turnBegan > longTurnMs
    if (++this.#arrived > alwaysAdmitted && isLate) return this.#reject()
    if (this.#queue.size === 0 || req.method !== 'POST') return
    if (this.#waitsTooLong(this.#hints.get(hintOf(req)), startedAt)) return this.#reject()
  }

  /**
   * Waits for the request's turn. Returns undefined instead of a promise when the request can start now. Throws or
   * rejects with OVERLOADED.
   */
  turn(exchange: Exchange): void | Promise<void> {
    if (exchange.req.method !== 'POST') return
    if (!this.#inTurn) this.#enterTurn(this.#now())
    if (this.#queue.size > 0 || this.#started >= this.#startsPerTurn) return this.#wait(exchange, this.#now())
    this.#started++
  }

  #wait(exchange: Exchange, now: number): Promise<void> {
    const { maxWaiting, maxWaitingBytes } = this.#limits
    const flow = this.#queue.flow(keyOf(exchange), now)
    const bytes = exchange.body.length
    const isFull = this.#queue.size >= maxWaiting || this.#queue.bytes + bytes > maxWaitingBytes
    if (isFull || this.#waitsTooLong(flow, now)) return this.#reject()
    if (!this.#isCalm && this.#hints.size < maxHints) this.#hints.set(hintOf(exchange.req), flow)
    return new Promise((start, reject) =>
      this.#queue.push(flow, { start, reject, bytes, since: now, next: undefined }),
    )
  }

  /** True if the requests of every caller would wait only briefly. */
  get #isCalm(): boolean {
    return this.#queue.size * this.#paceMs < this.#limits.standingMs / 2
  }

  /**
   * True if another request in this flow would wait too long. An undefined flow represents a caller with few waiting
   * requests.
   */
  #waitsTooLong(flow: Flow | undefined, now: number): boolean {
    const { alwaysAdmitted, burstMs, standingMs } = this.#limits
    const { size, active } = this.#queue
    if (size < alwaysAdmitted) return false
    const waitMs = this.#paceMs * (flow ? Math.min(size, (flow.size + 1) * active) : active)
    if (flow && waitMs < standingMs / 2) flow.calmAt = now
    if (waitMs < standingMs) return false
    return waitMs > burstMs || (flow !== undefined && now - flow.calmAt > burstMs)
  }

  /**
   * Rejects a request. Rejections get a share of each turn of the event loop, and the remaining rejections wait for a
   * later turn. Otherwise, a client that retries immediately after each rejection would take processing time from other
   * clients.
   */
  #reject(): Promise<never> {
    if (
      this.#rejectedNow < this.#rejectionsPerTurn ||
      this.#pendingRejections.length >= this.#limits.maxPendingRejections
    )
      throw this.#rejectNow()
    this.#onRejected()
    return new Promise((_resolve, reject) => {
      this.#pendingRejections.push(reject)
    })
  }

  /** Creates an error for an immediate rejection. */
  #rejectNow(): GatehouseError {
    this.#onRejected()
    return this.#nextError()
  }

  #nextError(): GatehouseError {
    this.#rejectedNow++
    return errors[this.#rejected++ % errors.length] ?? new GatehouseError('OVERLOADED')
  }

  get #rejectionsPerTurn(): number {
    return this.#startsPerTurn * this.#limits.rejectionsPerStart
  }

  #startsIn(eachMs: number): number {
    return Math.max(1, Math.round(this.#limits.turnMs / eachMs))
  }

  #enterTurn(now: number): void {
    this.#inTurn = true
    this.#turnBegan = now
    this.#afterTurn(this.#endTurn)
  }

  readonly #endTurn = (): void => {
    const now = this.#now()
    this.#wasLong = now - this.#turnBegan > this.#limits.longTurnMs
    // Counts the entire turn as busy, because requests had to wait.
    if (this.#queue.size > 0) this.#measure(now - this.#turnBegan)
    this.#started = 0
    this.#arrived = 0
    this.#inTurn = false
    if (this.#queue.size > 0 || this.#pendingRejections.length > 0) {
      this.#enterTurn(now)
      this.#startWaiting(now)
    }
    if (this.#queue.size === 0 && this.#hints.size > 0) this.#hints.clear()
  }

  #startWaiting(now: number): void {
    this.#rejectedNow = 0
    for (const reject of this.#pendingRejections.splice(0, this.#rejectionsPerTurn)) reject(this.#nextError())
    while (this.#started < this.#startsPerTurn) {
      const waiting = this.#queue.take()
      if (!waiting) return
      if (now - waiting.since <= this.#limits.burstMs || this.#queue.size < this.#limits.alwaysAdmitted) {
        waiting.start()
        this.#started++
      } else {
        // Rejects waiting requests, because requests took longer than expected.
        waiting.reject(this.#rejectNow())
      }
    }
  }

  /** Processing time per request. */
  get #paceMs(): number {
    return this.#spentMs / this.#counted
  }

  #measure(spentMs: number): void {
    this.#spentMs += spentMs
    this.#counted += this.#started
    if (this.#spentMs >= paceWindowMs) {
      this.#spentMs /= 2
      this.#counted /= 2
    }
    this.#startsPerTurn = this.#startsIn(this.#paceMs)
  }
}

/** Returns the key of a verified caller. For an anonymous caller, returns the unverified key. */
function keyOf({ req, caller }: Exchange): string {
  return caller === undefined || caller.issuer === localIssuer ? hintOf(req) : caller.key
}

/**
 * Returns a request's unverified credential, its session if it has no credential, or its address if it has neither.
 * Uses only the end of a long credential, because many credentials share their beginning. Returns a copy, which does
 * not retain the request's memory.
 */
function hintOf(req: IncomingMessage): string {
  const { authorization, 'mcp-session-id': session } = req.headers
  const named = authorization ?? (typeof session === 'string' ? session : peerAddress(req))
  return named.length <= hintLength ? named : Buffer.from(named.slice(-hintLength)).toString()
}
