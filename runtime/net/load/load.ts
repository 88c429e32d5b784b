/**
 * Protects a server from more requests than it can take, and callers from one another: what one turn of the event loop has
 * no time for waits in a fair queue, and what would wait too long is refused.
 *
 * A process has one thread, so its own work is what requests compete for. Some milliseconds' worth of them begin in each
 * turn of the event loop, callers in turns; with time to spare, which is the rule, nothing waits and nothing is measured.
 * Turns stay short, so that probes, new connections and responses get their share too. How long a new request would wait
 * follows from what its caller has waiting, how many callers wait, and what the last ones took each. `admit` refuses by that
 * before anything is read: by the credential or the session that a request names, unverified, which can only refuse those
 * that name it. Requests that wait for backends, users or events hold nothing here.
 *
 * Not for built-in paths (health, readiness, metadata): they come before. Knows nothing of logs and metrics.
 * Source: B. Maurer, "Fail at Scale", ACM Queue 13(8): controlled delay; RFC 8289, section 3 (a standing queue is no use).
 */
import type { IncomingMessage } from 'node:http'
import { GatehouseError } from '../../../schemas/index.ts'
import { localIssuer } from '../caller.ts'
import type { Exchange } from '../pipeline.ts'
import { peerAddress } from '../listener/forwarded-for.ts'
import { BodyMemory } from './body-memory.ts'
import { CallerQueue, type Flow } from './caller-queue.ts'
import { type LoadLimits, loadLimits } from './limits.ts'

export interface LoadOptions {
  readonly limits?: Partial<LoadLimits> | undefined
  /** Called at once for each request that is refused. */
  readonly onRefused?: (() => void) | undefined
  /** Milliseconds that only grow. */
  readonly now?: (() => number) | undefined
  /** Runs the work once, after what the event loop has at hand. */
  readonly afterTurn?: ((work: () => void) => void) | undefined
}

/** What a request takes, until some have been measured. The guess counts for ten. */
const guessMs = 0.5
const guessCount = 10
/** A measurement counts half as much once so many milliseconds have been measured after it. */
const paceWindowMs = 1_000
/** Clients are to come back spread over so many seconds. Created once: a stack for each would cost more than the response. */
const errors = [1, 2, 3].map(
  (seconds) => new GatehouseError('OVERLOADED', { headers: { 'retry-after': String(seconds) } }),
)
const maxHints = 10_000
const hintLength = 128

export class LoadControl {
  /** What bodies of requests hold. */
  readonly bodies: BodyMemory
  readonly #limits: LoadLimits
  readonly #now: () => number
  readonly #afterTurn: (work: () => void) => void
  readonly #onRefused: () => void
  readonly #queue = new CallerQueue()
  /** Requests refused so far. */
  refused = 0
  /** Refusals of this turn. */
  #refusedNow = 0
  /** Refusals that wait for a later turn. */
  readonly #held: ((error: Error) => void)[] = []
  /** Flows by what their requests name, while much waits. */
  readonly #hints = new Map<string, Flow>()
  #inTurn = false
  #turnBegan = 0
  #wasLong = false
  /** Requests that have arrived in this turn. */
  #arrived = 0
  /** Requests that have begun in this turn. */
  #begun = 0
  /** Time of the process for the requests that began lately, and their number. */
  #spentMs = guessCount * guessMs
  #counted = guessCount
  #startsPerTurn: number

  constructor(options: LoadOptions = {}) {
    this.#limits = { ...loadLimits, ...options.limits }
    this.#startsPerTurn = this.#startsIn(guessMs)
    this.#now = options.now ?? performance.now.bind(performance)
    this.#afterTurn = options.afterTurn ?? setImmediate
    this.#onRefused = options.onRefused ?? (() => {})
    this.bodies = new BodyMemory({
      maxBytes: this.#limits.maxBodiesBytes,
      now: this.#now,
      refusal: () => this.#refuseNow(),
    })
  }

  /** Requests that wait for their turn. */
  get waiting(): number {
    return this.#queue.size
  }

  /** Refuses by the head alone, before anything is read or verified. Throws or rejects with OVERLOADED. */
  admit({ req, startedAt }: Exchange): void | Promise<void> {
    if (!this.#inTurn) this.#enterTurn(startedAt)
    const { longTurnMs, few } = this.#limits
    const isLate = this.#wasLong && startedAt - this.#turnBegan > longTurnMs
    if (++this.#arrived > few && isLate) return this.#refuse()
    if (this.#queue.size === 0 || req.method !== 'POST') return
    if (this.#waitsTooLong(this.#hints.get(hintOf(req)), startedAt)) return this.#refuse()
  }

  /** Waits until the request may go on; returns no promise when it may now. Throws or rejects with OVERLOADED. */
  turn(exchange: Exchange): void | Promise<void> {
    if (exchange.req.method !== 'POST') return
    if (!this.#inTurn) this.#enterTurn(this.#now())
    if (this.#queue.size > 0 || this.#begun >= this.#startsPerTurn) return this.#wait(exchange, this.#now())
    this.#begun++
  }

  #wait(exchange: Exchange, now: number): Promise<void> {
    const { maxWaiting, maxWaitingBytes } = this.#limits
    const flow = this.#queue.flow(keyOf(exchange), now)
    const bytes = exchange.body.length
    const isFull = this.#queue.size >= maxWaiting || this.#queue.bytes + bytes > maxWaitingBytes
    if (isFull || this.#waitsTooLong(flow, now)) return this.#refuse()
    if (!this.#isCalm && this.#hints.size < maxHints) this.#hints.set(hintOf(exchange.req), flow)
    return new Promise((go, refuse) =>
      this.#queue.push(flow, { go, refuse, bytes, since: now, next: undefined }),
    )
  }

  /** No request would have to wait for long, whoever sends it. */
  get #isCalm(): boolean {
    return this.#queue.size * this.#paceMs < this.#limits.standingMs / 2
  }

  /** Whether one more of this flow would wait too long; undefined: of a caller with little that waits. */
  #waitsTooLong(flow: Flow | undefined, now: number): boolean {
    const { few, burstMs, standingMs } = this.#limits
    const { size, active } = this.#queue
    if (size < few) return false
    const waitMs = this.#paceMs * (flow ? Math.min(size, (flow.size + 1) * active) : active)
    if (flow && waitMs < standingMs / 2) flow.calmAt = now
    if (waitMs < standingMs) return false
    return waitMs > burstMs || (flow !== undefined && now - flow.calmAt > burstMs)
  }

  /**
   * Refuses a request. Refusals have a share of each turn of the event loop: beyond it, a refusal waits for a later turn,
   * because a client that is refused immediately, over and over, would take the time that the others need.
   */
  #refuse(): Promise<never> {
    if (this.#refusedNow < this.#refusalsPerTurn || this.#held.length >= this.#limits.maxHeld)
      throw this.#refuseNow()
    this.#onRefused()
    return new Promise((_resolve, refuse) => {
      this.#held.push(refuse)
    })
  }

  /** A refusal that cannot wait. */
  #refuseNow(): GatehouseError {
    this.#onRefused()
    return this.#nextError()
  }

  #nextError(): GatehouseError {
    this.#refusedNow++
    return errors[this.refused++ % errors.length] ?? new GatehouseError('OVERLOADED')
  }

  get #refusalsPerTurn(): number {
    return this.#startsPerTurn * this.#limits.refusalsPerStart
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
    // Something had to wait, so that the process was busy all the time.
    if (this.#queue.size > 0) this.#measure(now - this.#turnBegan)
    this.#begun = 0
    this.#arrived = 0
    this.#inTurn = false
    if (this.#queue.size > 0 || this.#held.length > 0) {
      this.#enterTurn(now)
      this.#begin(now)
    }
    if (this.#queue.size === 0 && this.#hints.size > 0) this.#hints.clear()
  }

  #begin(now: number): void {
    this.#refusedNow = 0
    for (const refuse of this.#held.splice(0, this.#refusalsPerTurn)) refuse(this.#nextError())
    while (this.#begun < this.#startsPerTurn) {
      const waiting = this.#queue.take()
      if (!waiting) return
      if (now - waiting.since <= this.#limits.burstMs || this.#queue.size < this.#limits.few) {
        waiting.go()
        this.#begun++
      } else {
        // All took longer than was expected: what follows must not wait longer still.
        waiting.refuse(this.#refuseNow())
      }
    }
  }

  /** Time of the process from one request that begins to the next. */
  get #paceMs(): number {
    return this.#spentMs / this.#counted
  }

  #measure(spentMs: number): void {
    this.#spentMs += spentMs
    this.#counted += this.#begun
    if (this.#spentMs >= paceWindowMs) {
      this.#spentMs /= 2
      this.#counted /= 2
    }
    this.#startsPerTurn = this.#startsIn(this.#paceMs)
  }
}

/** Who waits: a verified caller, or what an anonymous one shows. */
function keyOf({ req, caller }: Exchange): string {
  return caller === undefined || caller.issuer === localIssuer ? hintOf(req) : caller.key
}

/**
 * What a request names, without a check: its credential, its session, or else its address. Of a long credential its end, which
 * is what differs, as a text of its own: it is remembered for longer than the request.
 */
function hintOf(req: IncomingMessage): string {
  const { authorization, 'mcp-session-id': session } = req.headers
  const named = authorization ?? (typeof session === 'string' ? session : peerAddress(req))
  return named.length <= hintLength ? named : Buffer.from(named.slice(-hintLength)).toString()
}
