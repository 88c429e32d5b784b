/**
 * Queries a remote decision service. Callers take turns, and a circuit breaker stops queries to an unavailable service.
 * Operators are notified of single and repeated failures.
 *
 * Only signs of an outage open the circuit. A failure that a caller can provoke with its query must not affect other
 * callers.
 */
import { timerMs } from '../../../schemas/index.ts'
import { Breaker } from '../../net/index.ts'
import { DecisionFailure, type FailureReason } from './json-post.ts'
import { QuestionSlots } from './slots.ts'

export type InquiryEvent =
  | { readonly kind: 'failure'; readonly reason: FailureReason; readonly error: unknown; readonly ms: number }
  /** `down` is reported when all queries have failed for some time, and `up` when a query succeeds again. */
  | { readonly kind: 'down'; readonly reason: FailureReason }
  | { readonly kind: 'up'; readonly replaced?: boolean }

export interface InquiryOptions {
  /** Name of the remote service in messages. */
  readonly who: string
  /** Time limits, as durations. */
  readonly timeout: string
  readonly circuitBreaker: { readonly failureThreshold: number; readonly timeout: string }
  readonly observe: (event: InquiryEvent) => void
}

export interface Asked<T> {
  readonly answer: T
  readonly ms: number
}

/** Maximum number of concurrent queries, in total and per caller. */
const questionsAtOnce = 64
const questionsPerCaller = 16
/** Number of consecutive failures before operators are notified. */
const failuresToTell = 3

export class Inquiry {
  readonly #options: InquiryOptions
  readonly #breaker: Breaker
  readonly #slots = new QuestionSlots(questionsAtOnce, questionsPerCaller)
  readonly #timeoutMs: number
  #failures = 0

  constructor(options: InquiryOptions) {
    this.#options = options
    this.#timeoutMs = timerMs(options.timeout)
    this.#breaker = new Breaker({
      failureThreshold: options.circuitBreaker.failureThreshold,
      timeoutMs: timerMs(options.circuitBreaker.timeout),
      now: Date.now,
    })
  }

  /** Sends a query. `caller` is the key of the caller. Rejects with DecisionFailure, or with the signal's reason. */
  async ask<T>(caller: string, signal: AbortSignal | undefined, work: () => Promise<T>): Promise<Asked<T>> {
    const waiting = new AbortController()
    const within = signal ? AbortSignal.any([signal, waiting.signal]) : waiting.signal
    const failure = new DecisionFailure('busy', `too many queries are waiting for ${this.#options.who}`)
    const timer = setTimeout(() => waiting.abort(failure), this.#timeoutMs)
    const began = performance.now()
    try {
      return await this.#slots.run(caller, within, () => {
        clearTimeout(timer)
        return this.#askNow(work)
      })
    } catch (error) {
      if (error === failure)
        this.#options.observe({ kind: 'failure', reason: 'busy', error, ms: performance.now() - began })
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  async #askNow<T>(work: () => Promise<T>): Promise<Asked<T>> {
    const breaker = this.#breaker
    if (!breaker.allows()) {
      const failure = new DecisionFailure(
        'circuit_open',
        `the circuit breaker for ${this.#options.who} is open`,
      )
      this.#failed(failure, 0)
      throw failure
    }
    breaker.start()
    const began = performance.now()
    try {
      const answer = await work()
      breaker.success()
      const ms = performance.now() - began
      if (this.#failures >= failuresToTell) this.#options.observe({ kind: 'up' })
      this.#failures = 0
      return { answer, ms }
    } catch (error) {
      if (!(error instanceof DecisionFailure)) {
        breaker.release()
        throw error
      }
      // Closes the circuit, because any response proves that the service is reachable.
      if (error.isDown) breaker.failure()
      else breaker.success()
      this.#failed(error, performance.now() - began)
      throw error
    }
  }

  #failed(failure: DecisionFailure, ms: number): void {
    const { observe } = this.#options
    observe({ kind: 'failure', reason: failure.reason, error: failure, ms })
    this.#failures++
    if (this.#failures >= failuresToTell) observe({ kind: 'down', reason: failure.reason })
  }

  /** Reports the end of an open outage, because the service will not be queried again. */
  close(): void {
    if (this.#failures >= failuresToTell) this.#options.observe({ kind: 'up', replaced: true })
  }
}
