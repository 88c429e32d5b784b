/** Event rows about requests: rejections, and the services that decide about requests. */
import type { EventTable } from '../row.ts'
import { checkDecisionPoint, checkRedis, checkWebhook } from '../words.ts'

export const callRows = {
  pin_refused: {
    message: 'a call was refused: the definition does not match the lock',
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
            fix: 'give it more CPU, workers (operational.workers) or replicas, or find the most frequent callers in the audit log and limit them with rateLimiting. With large bodies (docs/reference/limits.md, Overload), it needs more memory',
          }
        : undefined,
    }),
  },
  token_refused: {
    message: 'access tokens of clients are refused',
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
        message: `access tokens of clients cannot be checked: requests are refused (${reason})`,
        fix: 'check that the issuer of incomingAuth.oidc and its keys can be reached from this server: gatehouse doctor shows the failing hop',
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
    message: 'policies refused a request',
    level: 'info',
    repeats: ({ method }) => method,
  },
  call_limited: {
    message: 'a rate limit refused a call',
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
    message: 'the decision point gave no decision: the request is refused',
    level: 'warn',
    repeats: ({ reason }) => reason,
  },
  decision_point: {
    message: ({ up, replaced }) => {
      if (replaced) return 'the failing decision point was replaced'
      return up
        ? 'the decision point decides again'
        : 'the decision point gives no decisions: requests are refused'
    },
    level: ({ up }) => (up ? 'info' : 'error'),
    condition: ({ up, reason = '' }) => ({
      id: 'decision_point',
      open: up
        ? undefined
        : {
            message: `the decision point gives no decisions: requests are refused (${reason})`,
            fix: `${checkDecisionPoint}; the log has the reason of each failure`,
          },
    }),
  },
  webhook_denied: {
    message: ({ enforced }) =>
      enforced ? 'a webhook refused a call' : 'a webhook would have refused a call; it only audits',
    level: 'info',
    repeats: ({ webhook, phase }) => `${webhook} ${phase}`,
  },
  webhook_failed: {
    message: ({ refused }) =>
      refused
        ? 'a webhook gave no valid response: the call is refused'
        : 'a webhook gave no valid response: the call goes on without it',
    level: 'warn',
    repeats: ({ webhook, reason }) => `${webhook} ${reason}`,
  },
  webhook_state: {
    message: ({ up, replaced, ignored }) => {
      if (replaced) return 'the failing webhook was replaced'
      if (up) return 'the webhook gives valid responses again'
      return `a webhook gives no valid responses: ${fateOf(ignored)}`
    },
    level: ({ up, ignored }) => (up ? 'info' : ignored ? 'warn' : 'error'),
    condition: ({ webhook, up, ignored, reason = '' }) => ({
      id: `webhook_state/${webhook}`,
      open: up
        ? undefined
        : {
            message: `webhook ${webhook} gives no valid responses: ${fateOf(ignored)} (${reason})`,
            fix: `${checkWebhook(webhook)}; the log has the reason of each failure`,
          },
    }),
  },
  guardrail_matched: {
    message: ({ outcome }) =>
      outcome === 'refused' ? 'a guardrail refused a call or its result' : 'a guardrail matched',
    level: ({ outcome }) => (outcome === 'refused' ? 'warn' : 'info'),
    repeats: ({ rule, direction, outcome, backend }) => `${rule} ${direction} ${outcome} ${backend}`,
  },
  guardrail_failed: {
    message: 'guardrail check failed; content withheld',
    level: 'error',
    repeats: ({ direction, backend }) => `${direction} ${backend}`,
  },
  policy_engine_failed: {
    message: 'the policy engine failed and is replaced; the request is refused',
    level: 'error',
  },
} satisfies Partial<EventTable>

function fateOf(ignored: boolean): string {
  return ignored ? 'calls go on without it' : 'calls are refused'
}
