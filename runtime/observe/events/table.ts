/**
 * One row for each type of event: how it is written, what it counts under, and which problem it opens or closes.
 *
 * A problem is a condition that lasts. Events about it are told when it opens, changes and closes, not each time they
 * come. Other events are told as they come, repeats within a minute as one line with a count.
 */
import type { EventFields, EventType } from './fields.ts'
import { failureFix, failureText } from './words.ts'

export type EventLevel = 'debug' | 'info' | 'warn' | 'error'

/** What an event says about a lasting condition. */
export interface EventCondition {
  /** Equal for everything that is about the same condition. */
  readonly id: string
  readonly backend?: string | undefined
  /** Undefined: the condition is over. Holds no address and no text of a backend. */
  readonly open: { readonly message: string; readonly fix: string } | undefined
}

export interface EventRow<F> {
  /** Fixed text. */
  readonly message: string | ((fields: F) => string)
  readonly level: EventLevel | ((fields: F) => EventLevel)
  /** Equal for events that repeat one another; one of few. Default: the backend, if the event names one. */
  readonly repeats?: (fields: F) => string
  readonly condition?: (fields: F) => EventCondition | undefined
}

type Table = { readonly [T in EventType]: EventRow<EventFields[T]> }

function isDrifted({ changed, new: added, removed }: EventFields['tools_drifted']): boolean {
  return changed + added + removed > 0
}

function fateOf(ignored: boolean): string {
  return ignored ? 'calls go on without it' : 'calls are refused'
}

export const eventTable: Table = {
  backend_health: {
    message: 'the health of a backend changed',
    level: ({ after }) => (after === 'healthy' ? 'info' : 'warn'),
    condition: ({ backend, after, reason = '' }) => ({
      id: `backend_health/${backend}`,
      backend,
      open:
        after === 'healthy'
          ? undefined
          : {
              message: `backend ${backend} is ${after}: ${failureText(reason)}`,
              fix: failureFix(reason, backend),
            },
    }),
  },
  backend_circuit: {
    message: 'the circuit of a backend changed',
    level: ({ after }) => (after === 'open' ? 'warn' : 'info'),
    condition: ({ backend, after }) => ({
      id: `backend_circuit/${backend}`,
      backend,
      open:
        after === 'closed'
          ? undefined
          : {
              message: `the circuit of backend ${backend} is ${after}`,
              fix: `calls go to ${backend} again once a trial succeeds: see its health and its last error`,
            },
    }),
  },
  backend_call_failed: { message: 'a request to a backend failed', level: 'warn' },
  backend_excluded: {
    message: 'a backend is excluded; the others are served',
    level: 'error',
    condition: ({ backend, problems }) => ({
      id: `backend_excluded/${backend}`,
      backend,
      open: {
        message: `backend ${backend} is excluded: ${problems.join('; ')}`,
        fix: 'correct these settings; the file and what it refers to are read again by themselves',
      },
    }),
  },
  backend_included: {
    message: 'a backend is not excluded any more',
    level: 'info',
    condition: ({ backend }) => ({ id: `backend_excluded/${backend}`, backend, open: undefined }),
  },
  backends_changed: { message: 'backends changed', level: 'info', repeats: () => '' },
  backend_name_unknown: {
    message: ({ resolved }) =>
      resolved
        ? 'settings name this backend no more, or it exists now'
        : 'settings name backends that do not exist',
    level: ({ resolved }) => (resolved ? 'info' : 'warn'),
    condition: ({ problem, resolved }) => ({
      id: `backend_name_unknown/${problem}`,
      open: resolved
        ? undefined
        : { message: problem, fix: 'correct the name, or remove the setting that names it' },
    }),
  },
  backend_era: { message: 'the backend speaks another protocol revision than before', level: 'info' },
  lists_failed: {
    message: ({ stale_since }) =>
      stale_since === undefined
        ? 'the lists of the backend cannot be read'
        : 'the lists of the backend cannot be read; the last ones stay in use',
    level: 'warn',
    condition: ({ backend, stale_since }) =>
      stale_since === undefined
        ? undefined
        : {
            id: `lists_failed/${backend}`,
            backend,
            open: {
              message: `backend ${backend}: its lists could not be read again since ${stale_since}; the last ones stay in use`,
              fix: `see the health of ${backend} and the error in the log of this server; clients miss what is new`,
            },
          },
  },
  lists_recovered: {
    message: 'the lists of the backend can be read again',
    level: 'info',
    condition: ({ backend }) => ({ id: `lists_failed/${backend}`, backend, open: undefined }),
  },
  lists_changed: { message: 'the lists of a backend changed', level: 'debug' },
  items_malformed: {
    message: ({ repaired, left_out }) =>
      repaired + left_out > 0
        ? 'items of the lists are malformed'
        : 'all items of the lists are well-formed again',
    level: ({ repaired, left_out }) => (repaired + left_out > 0 ? 'warn' : 'info'),
    condition: ({ backend, repaired, left_out, examples }) => ({
      id: `items_malformed/${backend}`,
      backend,
      open:
        repaired + left_out > 0
          ? {
              message: `backend ${backend} lists malformed items: ${left_out} left out, ${repaired} offered with repairs`,
              fix: `tell whoever runs ${backend}: ${examples.slice(0, 2).join('; ')}`,
            }
          : undefined,
    }),
  },
  name_conflict: {
    message: ({ resolved }) =>
      resolved ? 'a name can be offered again' : 'a name cannot be offered as it stands',
    level: ({ resolved }) => (resolved ? 'info' : 'warn'),
    condition: ({ kind, name, problem, resolved }) => ({
      id: `name_conflict/${kind}/${name}`,
      open: resolved
        ? undefined
        : { message: problem, fix: 'rename it by aggregation.tools overrides, or choose a prefixFormat' },
    }),
  },
  tools_drifted: {
    message: (fields) =>
      isDrifted(fields)
        ? 'a backend does not offer what was approved'
        : fields.compared
          ? 'a backend offers what was approved'
          : 'a backend is compared with no tool lock any more',
    level: (fields) => (!isDrifted(fields) ? 'info' : fields.quiet ? 'debug' : 'warn'),
    condition: (fields) => {
      const { backend, changed, new: added, removed, examples } = fields
      return {
        id: `tools_drifted/${backend}`,
        backend,
        open: isDrifted(fields)
          ? {
              message: `backend ${backend} differs from its tool lock: ${changed} changed, ${added} new, ${removed} removed`,
              fix: `review it with gatehouse lock --check, and approve it in the MCPToolLock or tell whoever runs ${backend}: ${examples.slice(0, 2).join('; ')}`,
            }
          : undefined,
      }
    },
  },
  tool_lock: {
    message: ({ failure, in_force: inForce }) =>
      failure !== undefined
        ? 'the tool lock of a backend cannot be used'
        : inForce
          ? 'the tool lock of a backend is in force'
          : 'a backend has no tool lock any more',
    level: ({ failure }) => (failure === undefined ? 'info' : 'error'),
    condition: ({ backend, failure }) => ({
      id: `tool_lock/${backend}`,
      backend,
      open:
        failure === undefined
          ? undefined
          : {
              message: `the tool lock of backend ${backend} cannot be used: ${failure}`,
              fix: `correct the MCPToolLock of ${backend}, or write it again with gatehouse lock`,
            },
    }),
  },
  pin_refused: {
    message: 'a call was refused: what it names is not as it was approved',
    level: 'warn',
    repeats: ({ backend, reason }) => `${backend} ${reason}`,
  },
  request_failed: {
    message: 'a request failed',
    level: ({ reason }) => (reason === 'internal' ? 'error' : 'warn'),
    repeats: ({ reason }) => reason,
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
            fix: 'check that Redis runs and that its address, password and network path are right',
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
      if (replaced) return 'the decision point that gave no decisions is not asked any more'
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
            fix: 'check that it runs and answers POST <url>/decision with 200 and {"allow": true or false} as application/json; the log has the reason of each failure',
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
      if (replaced) return 'the webhook that gave no valid responses is not asked any more'
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
            fix: 'check that it runs and answers with 200, application/json, and version, uid and allowed; the log has the reason of each failure',
          },
    }),
  },
  policy_engine_failed: {
    message: 'the policy engine failed and is replaced; the request is refused',
    level: 'error',
  },
  config_reloaded: {
    message: 'configuration reloaded',
    level: 'info',
    condition: () => ({ id: 'config_refused', open: undefined }),
  },
  config_refused: {
    message: 'the changed configuration cannot be used; the running one goes on',
    level: 'error',
    condition: () => ({
      id: 'config_refused',
      open: {
        message: 'the changed configuration cannot be used; the running one goes on',
        fix: 'run gatehouse vmcp validate --config on the file: it names every error',
      },
    }),
  },
  restart_needed: {
    message: ({ sections }) =>
      sections.length > 0
        ? 'changed settings take effect at the next start'
        : 'no setting waits for a restart any more',
    level: ({ sections }) => (sections.length > 0 ? 'warn' : 'info'),
    condition: ({ sections }) => ({
      id: 'restart_needed',
      open:
        sections.length > 0
          ? {
              message: `changed settings take effect at the next start: ${sections.join(', ')}`,
              fix: 'restart the server; on Kubernetes: kubectl rollout restart of its Deployment',
            }
          : undefined,
    }),
  },
  authorization_server: {
    message: 'authorization server',
    level: ({ outcome }) => (outcome === 'success' ? 'info' : 'warn'),
    repeats: ({ action, outcome, upstream = '' }) => `${action} ${outcome} ${upstream}`,
  },
  token_failed: {
    message: 'a credential for a backend could not be obtained',
    level: 'warn',
    repeats: ({ strategy, reason, backend = '' }) => `${strategy} ${reason} ${backend}`,
  },
  token_obtained: { message: 'a credential for a backend was obtained', level: 'debug' },
  console_action: {
    message: 'an action in the console',
    level: ({ outcome }) => (outcome === 'success' ? 'info' : 'warn'),
    repeats: ({ operation, outcome, user = '', target = '' }) => `${operation} ${outcome} ${user} ${target}`,
  },
  session_storage: {
    message: ({ up }) => (up ? 'session storage is back' : 'session storage cannot be reached'),
    level: ({ up }) => (up ? 'info' : 'warn'),
    condition: ({ up }) => ({
      id: 'session_storage',
      open: up
        ? undefined
        : {
            message: 'session storage cannot be reached',
            fix: 'check that Redis runs and that its address, password and network path are right',
          },
    }),
  },
  status_report: {
    message: ({ ok }) => (ok ? 'backend health is reported again' : 'backend health could not be reported'),
    level: ({ ok }) => (ok ? 'info' : 'warn'),
    condition: ({ ok }) => ({
      id: 'status_report',
      open: ok
        ? undefined
        : {
            message: 'backend health could not be reported to the cluster',
            fix: "check the API server and that this pod's Role lets it patch its report ConfigMap",
          },
    }),
  },
  audit_lost: {
    message: 'audit lines are lost',
    level: 'error',
  },
}
