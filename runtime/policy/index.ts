/**
 * Public API of the policy module: authorization (Cedar, or an external decision point), rate limits (token buckets)
 * and quotas.
 */
export { type AuthorizerConfig, makeAuthorizer, makeShadowAuthorizer } from './authorizer.ts'
export type { PolicyFailure } from './cedar/evaluation-errors.ts'
export type { PolicySubject } from './subject.ts'
export { externalViolations, makeExternalGate } from './external/gate.ts'
export { type ExternalPoint, externalPoint } from './external/formats.ts'
export { explainExternal, type RuntimePoint } from './external/explain.ts'
export { type TriedPoint, tryPoint } from './external/inquire.ts'
export { type PointReplay, replayAtPoint } from './external/replay.ts'
export type { PointEvent } from './external/point.ts'
export { type DescribedPolicies, describePolicies } from './cedar/described.ts'
export type { UpstreamTokenSource } from './claims.ts'
export { type DecisionReport, type FactsResponse, type Gate, makeGate } from './gate.ts'
export {
  type LimitRefusal,
  makeRateLimiter,
  rateLimitError,
  type RateLimiter,
  type RateLimitEvent,
} from './limits/rate-limit.ts'
export { explainQuotas } from './quotas/explain.ts'
export { makeQuotas, nearShare } from './quotas/quotas.ts'
export type { QuotaEvent, Quotas, QuotaState, QuotaUse, Reservation } from './quotas/types.ts'
export type { Period } from './quotas/window.ts'
export {
  type AccessRequest,
  accessRequestsOf,
  type Action,
  type ConsolePolicyAction,
  type Facts,
  hintsIn,
  methodOf,
  type Origin,
} from './requests.ts'
export {
  type DecisionExplanation,
  explainDecision,
  type PolicyQuestion,
  type PolicySet,
} from './explain.ts'
export { type PolicyTest, type PolicyTestRun, runPointTests, runPolicyTests } from './fixtures.ts'
export { replayDecisions } from './replay.ts'
export type { Flip, Replay } from './replay-tally.ts'
export {
  makeWebhookChain,
  type WebhookChain,
  type WebhookEvent,
  webhookFileViolation,
  webhookViolations,
} from './webhooks/chain.ts'
export { explainWebhooks } from './webhooks/explain.ts'
export type { WebhookCall } from './webhooks/subject.ts'
