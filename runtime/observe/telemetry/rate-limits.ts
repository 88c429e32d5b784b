/** Counts what a rate limiter tells, and notes it on the span of the request. */
import { annotate } from '../exchange/scope.ts'
import type { Metrics } from './metrics.ts'

/** One thing a rate limiter tells; policy's RateLimitEvent fits. */
export type RateLimitFacts =
  | {
      readonly kind: 'decision'
      readonly decision: 'allowed' | 'rejected'
      readonly scope: string
      readonly operationType: string
    }
  | { readonly kind: 'checked'; readonly milliseconds: number }
  | { readonly kind: 'store_error'; readonly errorType: string }
  | { readonly kind: 'fail_open' }
  /** Told to the event stream by others. */
  | { readonly kind: 'store_down' | 'store_up' }

export function rateLimitRecorder(
  metrics: Metrics,
  limiter: { readonly namespace: string; readonly server: string },
): (event: RateLimitFacts) => void {
  return (event) => {
    switch (event.kind) {
      case 'decision': {
        const { decision, scope, operationType } = event
        metrics.rateLimitDecisions(1, { ...limiter, decision, scope, operation_type: operationType })
        annotate({
          'rate_limit.decision': decision,
          'rate_limit.rejected_by': decision === 'rejected' ? scope : undefined,
        })
        break
      }
      case 'checked':
        metrics.rateLimitCheckLatency(event.milliseconds / 1000, limiter)
        break
      case 'store_error':
        metrics.rateLimitRedisErrors(1, { ...limiter, error_type: event.errorType })
        break
      case 'store_down':
      case 'store_up':
        break
      default:
        metrics.rateLimitFailOpen(1, limiter)
        annotate({ 'rate_limit.fail_open': true })
    }
  }
}
