/** Rows for request events: rejections, and services that decide on requests. */
import type { EventTable } from '../row.ts'
import { checkDecisionPoint, checkRedis, checkWebhook } from '../next-steps.ts'

export const callRows = {
  pin_refused: {
    message: 'call rejected: the definition does not match the lock',
    level: 'warn',
    repeats: ({ backend, reason }) => `${backend} ${reason}`,
  },
  request_failed: {
    message: 'a request failed',
    level: ({ reason }) => (reason === 'internal' ? 'error' : 'warn'),
    repeats: ({ reason }) => reason,
  },
  server_overloaded: {
    message: ({ refusing }) => (refusing ? 'overloaded: rejecting requests' : 'overload ended'),
    level: ({ refusing }) => (refusing ? 'warn' : 'info'),
    condition: ({ refusing }) => ({
      id: 'server_overloaded',
      open: refusing
        ? {
            message: 'overloaded: rejecting requests',
            fix: 'add CPU, workers (operational.workers) or replicas, or find the most frequent callers in the audit log and limit them with rateLimiting. If request bodies are large (docs/reference/limits.md, Overload), add memory',
          }
        : undefined,
    }),
  },
  token_refused: {
    message: 'client access tokens rejected',
    level: 'info',
    repeats: ({ reason }) => reason,
  },
  token_check_failed: {
    message: 'access tokens cannot be checked',
    level: 'warn',
    repeats: ({ reason }) => reason,
    condition: ({ reason }) => ({
      id: 'token_check',
      open: {
        message: `client access tokens cannot be checked: requests are rejected (${reason})`,
        fix: 'check that the issuer in incomingAuth.oidc and its keys are reachable from this server: gatehouse doctor shows the failing hop',
      },
    }),
  },
  token_check_recovered: {
    message: 'access tokens can be checked again',
    level: 'info',
    condition: () => ({ id: 'token_check', open: undefined }),
  },
  session_unsaved: { message: 'a session was not saved', level: 'warn' },
  call_denied: {
    message: 'policies denied a request',
    level: 'info',
    repeats: ({ method }) => method,
  },
  call_limited: {
    message: 'a rate limit rejected a call',
    level: 'info',
    repeats: ({ scope, operation_type }) => `${scope} ${operation_type}`,
  },
  limits_store: {
    message: ({ up }) => (up ? 'rate limits are enforced again' : 'rate limits cannot be checked'),
    level: ({ up }) => (up ? 'info' : 'warn'),
    condition: ({ up, calls = 'allowed' }) => ({
      id: 'limits_store',
      open: up
        ? undefined
        : {
            message: `rate limits cannot be checked: calls are ${calls}`,
            fix: checkRedis,
          },
    }),
  },
  decision_failed: {
    message: 'the decision point returned no decision: request rejected',
    level: 'warn',
    repeats: ({ reason }) => reason,
  },
  decision_point: {
    message: ({ up, replaced }) => {
      if (replaced) return 'the failing decision point was replaced'
      return up
        ? 'the decision point returns decisions again'
        : 'the decision point is not returning decisions: requests are rejected'
    },
    level: ({ up }) => (up ? 'info' : 'error'),
    condition: ({ up, reason = '' }) => ({
      id: 'decision_point',
      open: up
        ? undefined
        : {
            message: `the decision point is not returning decisions: requests are rejected (${reason})`,
            fix: `${checkDecisionPoint}; the log contains the reason for each failure`,
          },
    }),
  },
  webhook_denied: {
    message: ({ enforced }) =>
      enforced ? 'a webhook rejected a call' : 'a webhook in audit mode would have rejected a call',
    level: 'info',
    repeats: ({ webhook, phase }) => `${webhook} ${phase}`,
  },
  webhook_failed: {
    message: ({ refused }) =>
      refused
        ? 'a webhook returned no valid response: call rejected'
        : 'a webhook returned no valid response: the call continues without the webhook',
    level: 'warn',
    repeats: ({ webhook, reason }) => `${webhook} ${reason}`,
  },
  webhook_state: {
    message: ({ up, replaced, ignored }) => {
      if (replaced) return 'the failing webhook was replaced'
      if (up) return 'the webhook returns valid responses again'
      return `a webhook returns no valid responses: ${fateOf(ignored)}`
    },
    level: ({ up, ignored }) => (up ? 'info' : ignored ? 'warn' : 'error'),
    condition: ({ webhook, up, ignored, reason = '' }) => ({
      id: `webhook_state/${webhook}`,
      open: up
        ? undefined
        : {
            message: `webhook ${webhook} returns no valid responses: ${fateOf(ignored)} (${reason})`,
            fix: `${checkWebhook(webhook)}; the log contains the reason for each failure`,
          },
    }),
  },
  guardrail_matched: {
    message: ({ outcome }) =>
      outcome === 'refused' ? 'a guardrail rejected a call or its result' : 'a guardrail matched',
    level: ({ outcome }) => (outcome === 'refused' ? 'warn' : 'info'),
    repeats: ({ rule, direction, outcome, backend }) => `${rule} ${direction} ${outcome} ${backend}`,
  },
  guardrail_failed: {
    message: 'guardrail check failed; content withheld',
    level: 'error',
    repeats: ({ direction, backend }) => `${direction} ${backend}`,
  },
  policy_engine_failed: {
    message: 'the policy engine failed and is being replaced; request rejected',
    level: 'error',
  },
} satisfies Partial<EventTable>

function fateOf(ignored: boolean): string {
  return ignored ? 'calls continue without the webhook' : 'calls are rejected'
}
