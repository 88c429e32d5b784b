/**
 * The external decision point as the gate asks it: decisions that still count, and what came of each question for those
 * who observe. Failures are never held, and never become a decision.
 * Source: docs/guides/decision-point.md.
 */
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { type RuntimeDecisionPoint, timerMs } from '../../../schemas/index.ts'
import { Inquiry, type InquiryEvent } from '../remote/inquiry.ts'
import { makeDecisionClient } from './client.ts'

/** What came of one question. */
export type PointEvent =
  | { readonly kind: 'decision'; readonly allow: boolean; readonly cached: boolean; readonly ms: number }
  | InquiryEvent

export interface AskedPoint {
  /** True when it allows; `caller` is the key of who asks. Rejects with DecisionFailure, or with the signal's reason. */
  decide(question: string, caller: string, signal?: AbortSignal): Promise<boolean>
  close(): Promise<void>
}

/** Throws INVALID_CONFIG when a file cannot be used. */
export function makeDecisionPoint(
  { http, cache, circuitBreaker }: RuntimeDecisionPoint,
  observe: (event: PointEvent) => void,
): AskedPoint {
  const client = makeDecisionClient(http)
  const known = cache && new LRUCache<string, boolean>({ max: cache.maxEntries, ttl: timerMs(cache.ttl) })
  const inquiry = new Inquiry({ who: 'the decision point', timeout: http.timeout, circuitBreaker, observe })

  async function ask(question: string, caller: string, signal: AbortSignal | undefined): Promise<boolean> {
    const { answer, ms } = await inquiry.ask(caller, signal, () => client.ask(question, signal))
    observe({ kind: 'decision', allow: answer, cached: false, ms })
    return answer
  }

  return {
    async decide(question, caller, signal) {
      if (!known) return ask(question, caller, signal)
      const key = hash('sha256', question, 'base64url')
      const held = known.get(key)
      if (held !== undefined) {
        observe({ kind: 'decision', allow: held, cached: true, ms: 0 })
        return held
      }
      const allow = await ask(question, caller, signal)
      known.set(key, allow)
      return allow
    },
    async close() {
      inquiry.close()
      await client.close()
    },
  }
}
