/** Counts rate limiter events and adds them to the request's span. */
import { annotate } from '../exchange/scope.ts'
import type { Metrics } from './metrics.ts'

/** An event of a rate limiter. The policy module's RateLimitEvent is assignable to this type. */
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
  /** Other code emits these outcomes as events. */
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
