/** Public API of the policy module: who may do what (Cedar), and how often (token buckets). */
export { makeAuthorizer } from './authorizer.ts'
export type { UpstreamTokenSource } from './claims.ts'
export { type Gate, type HintsResponse, makeGate } from './gate.ts'
export {
  type LimitRefusal,
  makeRateLimiter,
  rateLimitError,
  type RateLimiter,
  type RateLimitEvent,
} from './rate-limit.ts'
export { hintsIn } from './requests.ts'
