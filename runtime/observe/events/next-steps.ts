/**
 * Causes and fixes of individual failures, for all readers of `/status`: they contain no addresses, users or backend
 * texts. Event types without a row are not failures, or belong to a lasting problem with its own fix.
 */
import type { EventFields, EventType } from './fields.ts'
import { checkDecisionPoint, checkRedis, checkWebhook, failureFix } from './words.ts'

export interface NextStep<F> {
  /** Returns undefined when the event is not a failure. */
  readonly fix: (fields: F) => string | undefined
  /** Returns one of a few fixed words. Default: the member `reason`. */
  readonly cause?: (fields: F) => string
}

type Steps = { readonly [T in EventType]?: NextStep<EventFields[T]> }

const requestFixes: Readonly<Record<string, string>> = {
  too_many_sessions: 'raise --max-sessions, or look at Sessions for a client that opens many and ends none',
  session_store_down: checkRedis,
  auth_unavailable:
    'check that the issuer of incomingAuth.oidc can be reached: gatehouse doctor names the hop',
  shutting_down: 'nothing: clients try again with the next pod',
}

const signIn = 'the user signs in again: the page of connected accounts has the link'

/** Only the user can renew a login; all other reasons are a wrong setting or endpoint. */
const userSteps: Readonly<Record<string, string>> = {
  upstream_token_missing: signIn,
  upstream_not_connected: signIn,
  subject_refused: signIn,
}

export const nextSteps: Steps = {
  backend_call_failed: { fix: ({ backend, reason }) => failureFix(reason, backend) },
  backend_message_unassigned: {
    fix: ({ backend }) =>
      `make ${backend} send its requests and log messages on the response stream of the ` +
      'client request that they belong to, before the response',
    cause: ({ method }) => method,
  },
  lists_failed: {
    fix: ({ backend }) =>
      `see the health of ${backend} and the error in the log of this server; clients miss what it offers`,
    cause: () => 'unreadable',
  },
  pin_refused: {
    fix: ({ backend }) =>
      `review it with gatehouse lock --check, and approve it in the MCPToolLock or tell whoever runs ${backend}`,
  },
  request_failed: {
    fix: ({ reason }) =>
      requestFixes[reason] ?? 'look for this event in the log of this server: err has the error',
  },
  token_refused: {
    fix: () =>
      'compare issuer, audience and life of the token with incomingAuth.oidc: gatehouse doctor shows both',
  },
  session_unsaved: { fix: () => checkRedis, cause: () => 'session_store_down' },
  call_denied: {
    fix: ({ policies }) =>
      policies === undefined
        ? 'no policy permits it: gatehouse explain shows what a permit lacks for this caller'
        : 'a policy forbids it: gatehouse explain shows which one, and the log names it',
    cause: ({ method }) => method,
  },
  call_limited: {
    fix: () => 'let the client call less often, or raise this limit in rateLimiting',
    cause: ({ scope }) => scope,
  },
  quota_exceeded: {
    fix: ({ quota, enforced }) =>
      enforced ? `wait until the window of quota ${quota} ends, or raise its limit in quotas` : undefined,
    cause: ({ quota }) => quota,
  },
  quota_memory_full: {
    fix: () => 'use sessionStorage with provider redis: it has space for the budgets of all callers',
    cause: () => 'memory',
  },
  cost_unreadable: {
    fix: ({ backend }) =>
      `tell whoever runs ${backend}: gatehouse.dev/cost in _meta of a result is a whole number of micro-units, 0 to 10^12`,
    cause: () => 'cost',
  },
  decision_failed: {
    fix: () => checkDecisionPoint,
  },
  webhook_denied: {
    fix: ({ webhook, enforced }) =>
      enforced
        ? `whoever runs webhook ${webhook} knows its rules; the audit log has the reason that it gave`
        : undefined,
    cause: ({ phase }) => phase,
  },
  webhook_failed: {
    fix: ({ webhook }) => checkWebhook(webhook),
  },
  guardrail_matched: {
    fix: ({ outcome, rule }) =>
      outcome === 'refused'
        ? `the audit log names the call; if it should go on, give rule ${rule} of the guardrails an exception, or a larger limit`
        : undefined,
    cause: ({ rule }) => rule,
  },
  guardrail_failed: {
    fix: () =>
      'look for this event in the log of this server: err has the error; limit the size of results, or make expressions simpler',
    cause: ({ direction }) => direction,
  },
  policy_engine_failed: {
    fix: () => 'look for this event in the log of this server: err has the error; make the policies simpler',
    cause: () => 'engine',
  },
  server_requests_lost: {
    fix: () =>
      'see the event attach_state of this time for why; clients decide whether to call again, for a request may have been carried out',
    cause: () => 'server_lost',
  },
  server_line_too_long: {
    fix: () => 'let the server answer in smaller pieces: one message has 64 MiB at most',
    cause: () => 'line_too_long',
  },
  authorization_server: {
    fix: ({ action, outcome }) => {
      if (outcome === 'success') return undefined
      return action.endsWith('_reused')
        ? `the grant has ended and its user signs in again: look for auth_${action} in the audit log, it names client and user; a client that does this again repeats requests or has lost its tokens`
        : 'look for this event in the log of this server: it names the upstream and the reason'
    },
    cause: ({ action }) => action,
  },
  token_failed: {
    fix: ({ reason, strategy, backend = 'the backends with this strategy' }) =>
      userSteps[reason] ?? `check outgoingAuth for ${backend}: strategy ${strategy} gets no token`,
  },
  console_user_untold: {
    fix: () =>
      'let the identity provider put fewer and shorter groups into the ID token, or name a claim with fewer in console.authz.groupClaimName',
  },
  console_action: {
    fix: ({ outcome }) =>
      outcome === 'success'
        ? undefined
        : 'look for this event in the audit log: it names user and target; roles are given in console.roles or console.authz',
    cause: ({ operation }) => operation,
  },
}
