/**
 * The external decision point as the gate asks it: decisions that still count, a circuit that keeps questions away from
 * what is down, and what came of each question for those who observe.
 *
 * Failures are never held, and never become a decision. Only what says that the decision point is down opens the circuit: an
 * answer that one caller can provoke with what it asks must not keep the others out.
 * Source: docs/guides/decision-point.md.
 */
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { type RuntimeDecisionPoint, timerMs } from '../../../schemas/index.ts'
import { Breaker } from '../../net/index.ts'
import { DecisionFailure, type FailureReason, makeDecisionClient } from './client.ts'
import { QuestionSlots } from './slots.ts'

/** What came of one question. */
export type PointEvent =
  | { readonly kind: 'decision'; readonly allow: boolean; readonly cached: boolean; readonly ms: number }
  | { readonly kind: 'failure'; readonly reason: FailureReason; readonly error: unknown; readonly ms: number }
  /** No question was answered for some time, or one is again. */
  | { readonly kind: 'down'; readonly reason: FailureReason }
  | { readonly kind: 'up'; readonly replaced?: boolean }

export interface AskedPoint {
  /** True when it allows; `caller` is the key of who asks. Rejects with DecisionFailure, or with the signal's reason. */
  decide(question: string, caller: string, signal?: AbortSignal): Promise<boolean>
  close(): Promise<void>
}

/** Questions that are open at once, in all and for one caller. */
const questionsAtOnce = 64
const questionsPerCaller = 16
/** Failures in a row after which operators are told that it is no single one. */
const failuresToTell = 3

/** Throws INVALID_CONFIG when a file cannot be used. */
export function makeDecisionPoint(
  { http, cache, circuitBreaker }: RuntimeDecisionPoint,
  observe: (event: PointEvent) => void,
): AskedPoint {
  const client = makeDecisionClient(http)
  const known = cache && new LRUCache<string, boolean>({ max: cache.maxEntries, ttl: timerMs(cache.ttl) })
  const breaker = new Breaker({
    failureThreshold: circuitBreaker.failureThreshold,
    timeoutMs: timerMs(circuitBreaker.timeout),
    now: Date.now,
  })
  const slots = new QuestionSlots(questionsAtOnce, questionsPerCaller)
  const timeoutMs = timerMs(http.timeout)
  let failures = 0

  function failed(failure: DecisionFailure, ms: number): void {
    observe({ kind: 'failure', reason: failure.reason, error: failure, ms })
    failures++
    if (failures >= failuresToTell) observe({ kind: 'down', reason: failure.reason })
  }

  function answered(allow: boolean, ms: number): void {
    observe({ kind: 'decision', allow, cached: false, ms })
    if (failures >= failuresToTell) observe({ kind: 'up' })
    failures = 0
  }

  async function ask(question: string, signal: AbortSignal | undefined): Promise<boolean> {
    if (!breaker.allows()) {
      const failure = new DecisionFailure('circuit_open', 'the circuit of the decision point is open')
      failed(failure, 0)
      throw failure
    }
    breaker.start()
    const began = performance.now()
    try {
      const allow = await client.ask(question, signal)
      breaker.success()
      answered(allow, performance.now() - began)
      return allow
    } catch (error) {
      if (!(error instanceof DecisionFailure)) {
        breaker.release()
        throw error
      }
      // Whatever it answered, it is there.
      if (error.isDown) breaker.failure()
      else breaker.success()
      failed(error, performance.now() - began)
      throw error
    }
  }

  async function inTurn(
    caller: string,
    signal: AbortSignal | undefined,
    work: () => Promise<boolean>,
  ): Promise<boolean> {
    const waiting = new AbortController()
    const within = signal ? AbortSignal.any([signal, waiting.signal]) : waiting.signal
    const failure = new DecisionFailure('busy', 'too many questions wait for the decision point')
    const timer = setTimeout(() => waiting.abort(failure), timeoutMs)
    const began = performance.now()
    try {
      return await slots.run(caller, within, () => {
        clearTimeout(timer)
        return work()
      })
    } catch (error) {
      if (error === failure)
        observe({ kind: 'failure', reason: 'busy', error, ms: performance.now() - began })
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    async decide(question, caller, signal) {
      if (!known) return inTurn(caller, signal, () => ask(question, signal))
      const key = hash('sha256', question, 'base64url')
      const held = known.get(key)
      if (held !== undefined) {
        observe({ kind: 'decision', allow: held, cached: true, ms: 0 })
        return held
      }
      const allow = await inTurn(caller, signal, () => ask(question, signal))
      known.set(key, allow)
      return allow
    },
    async close() {
      if (failures >= failuresToTell) observe({ kind: 'up', replaced: true })
      await client.close()
    },
  }
}
