/**
 * Causes of individual failures and their fixes, worded so that every reader of `/status` may see them. The texts
 * contain no addresses, users or text from backends. An event type without a row is not a failure, or belongs to a
 * lasting problem with its own fix.
 */
import type { EventFields, EventType } from './fields.ts'
import { causeFix } from '../causes.ts'

/** Next steps that apply to several events. */
export const checkRedis =
  'check that Redis is running and that its address, password and network path are correct'
export const checkDecisionPoint =
  'check that the decision point is running and responds to POST <url>/decision with status 200 and {"allow": true or false} as application/json'

export function checkWebhook(webhook: string): string {
  return `check that webhook ${webhook} is running and responds with status 200, content type application/json, and the members version, uid and allowed`
}

export interface NextStep<F> {
  /** Returns the fix, or undefined when the event is not a failure. */
  readonly fix: (fields: F) => string | undefined
  /** Returns one of a fixed set of words. Default: the `reason` member. */
  readonly cause?: (fields: F) => string
}

type Steps = { readonly [T in EventType]?: NextStep<EventFields[T]> }

const requestFixes: Readonly<Record<string, string>> = {
  too_many_sessions:
    'raise --max-sessions, or look under Sessions for a client that opens many sessions and closes none',
  session_store_down: checkRedis,
  auth_unavailable:
    'check that the issuer in incomingAuth.oidc is reachable: gatehouse doctor shows the failing hop',
  shutting_down: 'no action needed: clients retry on the next pod',
}

const signIn = 'ask the user to sign in again on the connected accounts page'

/** Reasons that only a new login can fix. All other reasons indicate an incorrect setting or endpoint. */
const userSteps: Readonly<Record<string, string>> = {
  upstream_token_missing: signIn,
  upstream_not_connected: signIn,
  subject_refused: signIn,
}

export const nextSteps: Steps = {
  openapi_response_mismatch: {
    fix: () => 'correct the response schema in the OpenAPI document, or set response.output',
    cause: ({ tool }) => tool,
  },
  openapi_response_unchecked: {
    fix: () => 'if this happens often, set response.output to off',
    cause: ({ tool }) => tool,
  },
  backend_call_failed: { fix: ({ backend, reason }) => causeFix({ category: reason }, backend) },
  backend_message_unassigned: {
    fix: ({ backend }) =>
      `make ${backend} send its requests and log messages on the response stream of the ` +
      'client request that they belong to, before the response',
    cause: ({ method }) => method,
  },
  lists_failed: {
    fix: ({ backend }) =>
      `check the health of ${backend} and the error in this server's log; clients do not see its items`,
    cause: () => 'unreadable',
  },
  pin_refused: {
    fix: ({ backend }) =>
      `review the difference with gatehouse lock --check, then approve it in the MCPToolLock or report it to the operator of ${backend}`,
  },
  request_failed: {
    fix: ({ reason }) =>
      requestFixes[reason] ?? "find this event in this server's log: err contains the error",
  },
  token_refused: {
    fix: () =>
      'compare the issuer, audience and lifetime of the token with incomingAuth.oidc: gatehouse doctor shows both',
  },
  session_unsaved: { fix: () => checkRedis, cause: () => 'session_store_down' },
  call_denied: {
    fix: ({ policies }) =>
      policies === undefined
        ? 'no policy permits the request: gatehouse explain shows the unmet conditions for this caller'
        : 'a policy forbids the request: gatehouse explain and the log show which policy',
    cause: ({ method }) => method,
  },
  call_limited: {
    fix: () => "reduce the client's call rate, or raise this limit in rateLimiting",
    cause: ({ scope }) => scope,
  },
  quota_exceeded: {
    fix: ({ quota, enforced }) =>
      enforced ? `wait until the period of quota ${quota} ends, or raise its limit in quotas` : undefined,
    cause: ({ quota }) => quota,
  },
  quota_memory_full: {
    fix: () => 'use sessionStorage with provider redis, which has space for the budgets of all callers',
    cause: () => 'memory',
  },
  cost_unreadable: {
    fix: ({ backend }) =>
      `report this to the operator of ${backend}: gatehouse.dev/cost in a result's _meta must be a whole number of micro-units from 0 to 10^12`,
    cause: () => 'cost',
  },
  decision_failed: {
    fix: () => checkDecisionPoint,
  },
  webhook_denied: {
    fix: ({ webhook, enforced }) =>
      enforced
        ? `ask the operator of webhook ${webhook} about its rules; the audit log contains the reason`
        : undefined,
    cause: ({ phase }) => phase,
  },
  webhook_failed: {
    fix: ({ webhook }) => checkWebhook(webhook),
  },
  guardrail_matched: {
    fix: ({ outcome, rule }) =>
      outcome === 'refused'
        ? `the audit log contains the call; to allow it, add an exception to guardrail rule ${rule}, or raise its limit`
        : undefined,
    cause: ({ rule }) => rule,
  },
  guardrail_failed: {
    fix: () =>
      "find this event in this server's log: err contains the error; limit the size of results, or simplify the expressions",
    cause: ({ direction }) => direction,
  },
  policy_engine_failed: {
    fix: () => "find this event in this server's log: err contains the error; simplify the policies",
    cause: () => 'engine',
  },
  server_requests_lost: {
    fix: () =>
      'see the attach_state event from this time for the reason; clients decide whether to retry, because a lost request may have been executed',
    cause: () => 'server_lost',
  },
  server_line_too_long: {
    fix: () => 'make the server return smaller results: a message can be at most 64 MiB',
    cause: () => 'line_too_long',
  },
  authorization_server: {
    fix: ({ action, outcome }) => {
      if (outcome === 'success') return undefined
      return action.endsWith('_reused')
        ? `the grant has ended and the user must sign in again: auth_${action} in the audit log contains the client and the user; a client that causes this repeatedly is resending requests or losing its tokens`
        : "find this event in this server's log, which contains the upstream and the reason"
    },
    cause: ({ action }) => action,
  },
  token_failed: {
    fix: ({ reason, strategy, backend = 'the backends with this strategy' }) =>
      userSteps[reason] ?? `check outgoingAuth for ${backend}: strategy ${strategy} did not obtain a token`,
  },
  console_user_untold: {
    fix: () =>
      'configure fewer or shorter groups for the ID token in the identity provider, or set console.authz.groupClaimName to a claim with fewer groups',
  },
  console_action: {
    fix: ({ outcome }) =>
      outcome === 'success'
        ? undefined
        : 'find this event in the audit log, which contains the user and the target; assign roles in console.roles or console.authz',
    cause: ({ operation }) => operation,
  },
}
