/** Public API of the policy module: who may do what (Cedar), and how often (token buckets). */
export {
  type Authorizer,
  type AuthorizerConfig,
  type AuthorizerParts,
  type Decision,
  makeAuthorizer,
} from './authorizer.ts'
export type { UpstreamTokenSource } from './claims.ts'
export { type CheckOptions, type Gate, type GateOptions, type HintsResponse, makeGate } from './gate.ts'
export {
  type LimitRefusal,
  makeRateLimiter,
  rateLimitError,
  type RateLimiter,
  type RateLimiterOptions,
  type RateLimitEvent,
} from './rate-limit.ts'
export { type Action, hintsIn, type AccessRequest, type ToolHints } from './requests.ts'
export type { PolicySubject } from './subject.ts'
