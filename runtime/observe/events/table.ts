/**
 * A row for each event type: log message, grouping, and the problem that it opens or closes.
 *
 * A problem is a lasting condition. Events about a problem are logged only when the problem opens, changes or closes.
 * Other events are logged as they occur; repeats within a minute become one line with a count.
 */
import { attachRows } from './rows/attach.ts'
import { callRows } from './rows/calls.ts'
import { certificateRows } from './rows/certificates.ts'
import { consoleRows } from './rows/console.ts'
import { deviationText } from './deviations.ts'
import type { EventFields } from './fields.ts'
import { openApiRows } from './rows/openapi.ts'
import { pageRows } from './rows/pages.ts'
import { quotaRows } from './rows/quotas.ts'
import { skillRows } from './rows/skills.ts'
import type { EventTable } from './row.ts'
import { type Cause, causeFix, causeText, withDetail } from '../causes.ts'
import { checkRedis } from './next-steps.ts'

function lockProblem(backend: string, failure: string, missing: boolean) {
  if (missing)
    return {
      message: `backend ${backend} has no tool lock and offers nothing, because pinning.noLock is block`,
      fix: `review what ${backend} offers, and write an MCPToolLock for it with gatehouse lock`,
    }
  return {
    message: `the tool lock for backend ${backend} cannot be used: ${failure}`,
    fix: `correct the MCPToolLock for ${backend}, or regenerate it with gatehouse lock`,
  }
}

function causeIn({
  reason = '',
  detail,
  exit_code: exitCode,
  http_status: httpStatus,
  fix,
}: Omit<EventFields['backend_health'], 'backend' | 'before' | 'after'>): Cause {
  return { category: reason, detail, exitCode, httpStatus, fix }
}

function isDrifted({ changed, new: added, removed }: EventFields['tools_drifted']): boolean {
  return changed + added + removed > 0
}

export const eventTable: EventTable = {
  backend_health: {
    message: 'the health of a backend changed',
    level: ({ after }) => (after === 'healthy' ? 'info' : 'warn'),
    condition: ({ backend, after, ...fields }) => ({
      id: `backend_health/${backend}`,
      backend,
      open:
        after === 'healthy'
          ? undefined
          : {
              message: `backend ${backend} is ${after}: ${causeText(causeIn(fields))}`,
              fix: causeFix(causeIn(fields), backend),
            },
    }),
  },
  backend_circuit: {
    message: 'the circuit breaker of a backend changed state',
    level: ({ after }) => (after === 'open' ? 'warn' : 'info'),
    condition: ({ backend, after }) => ({
      id: `backend_circuit/${backend}`,
      backend,
      open:
        after === 'closed'
          ? undefined
          : {
              message: `the circuit breaker of backend ${backend} is ${after}`,
              fix: `calls to ${backend} resume after a successful trial request: check its health and its last error`,
            },
    }),
  },
  backend_call_failed: { message: 'a request to a backend failed', level: 'warn' },
  backend_excluded: {
    message: 'a backend is excluded: its settings cannot be used',
    level: 'error',
    condition: ({ backend, problems }) => ({
      id: `backend_excluded/${backend}`,
      backend,
      open: {
        message: `backend ${backend} is excluded: ${problems.join('; ')}`,
        fix: 'correct these settings; the file and the files that it references are reloaded automatically',
      },
    }),
  },
  backend_included: {
    message: 'a backend is no longer excluded',
    level: 'info',
    condition: ({ backend }) => ({ id: `backend_excluded/${backend}`, backend, open: undefined }),
  },
  backends_changed: { message: 'backends changed', level: 'info', repeats: () => '' },
  backend_name_unknown: {
    message: ({ resolved }) =>
      resolved
        ? 'the settings no longer refer to this backend, or the backend now exists'
        : 'settings refer to backends that do not exist',
    level: ({ resolved }) => (resolved ? 'info' : 'warn'),
    condition: ({ problem, resolved }) => ({
      id: `backend_name_unknown/${problem}`,
      open: resolved ? undefined : { message: problem, fix: 'correct the name, or remove the setting' },
    }),
  },
  backend_deviates: {
    message: ({ deviations }) =>
      deviations.length > 0
        ? 'the backend deviates from the protocol'
        : 'the backend follows the protocol again',
    level: ({ deviations }) => (deviations.length > 0 ? 'warn' : 'info'),
    condition: ({ backend, deviations }) => ({
      id: `backend_deviates/${backend}`,
      backend,
      open:
        deviations.length > 0
          ? {
              message: `backend ${backend} deviates from the protocol: ${deviations.map(deviationText).join('; ')}`,
              fix: `report this to the operator of ${backend}; Gatehouse continues to use the backend`,
            }
          : undefined,
    }),
  },
  backend_message_unassigned: {
    message:
      'a message from the backend is not part of a request and could be for several clients; it was not delivered',
    level: 'warn',
  },
  backend_era: { message: 'the protocol revision of the backend changed', level: 'info' },
  lists_failed: {
    message: ({ stale_since }) =>
      stale_since === undefined
        ? "the backend's lists cannot be read"
        : "the backend's lists cannot be read; the previous lists stay in use",
    level: 'warn',
    condition: ({ backend, stale_since, detail }) =>
      stale_since === undefined
        ? undefined
        : {
            id: `lists_failed/${backend}`,
            backend,
            open: {
              message: withDetail(
                `backend ${backend}: its lists have been unreadable since ${stale_since}; the previous lists stay in use`,
                detail,
              ),
              fix: `check the health of ${backend} and the error in this server's log; clients do not see changes`,
            },
          },
  },
  lists_recovered: {
    message: "the backend's lists can be read again",
    level: 'info',
    condition: ({ backend }) => ({ id: `lists_failed/${backend}`, backend, open: undefined }),
  },
  list_problem: {
    message: ({ resolved }) =>
      resolved
        ? "the problem with one of the backend's lists is resolved"
        : "one of the backend's lists has a problem; the other lists stay in use",
    level: ({ resolved }) => (resolved ? 'info' : 'warn'),
    condition: ({ backend, problem, fix, resolved, detail }) => ({
      id: `list_problem/${problem}`,
      backend,
      open: resolved ? undefined : { message: withDetail(problem, detail), fix },
    }),
  },
  changes_paced: {
    message: ({ resolved }) =>
      resolved
        ? 'the backend announces changes at a normal rate again'
        : 'the backend announces changes too often; processing them is throttled',
    level: ({ resolved }) => (resolved ? 'info' : 'warn'),
    condition: ({ backend, notification, resolved }) => ({
      id: `changes_paced/${backend}/${notification}`,
      backend,
      open: resolved
        ? undefined
        : {
            message: `backend ${backend} sends ${notification} notifications too often; processing them is throttled`,
            fix: `report this to the maintainer of ${backend}: a notification after each list request causes a loop`,
          },
    }),
  },
  lists_changed: { message: "a backend's lists changed", level: 'debug' },
  items_malformed: {
    message: ({ repaired, left_out }) =>
      repaired + left_out > 0
        ? 'items in the lists are malformed'
        : 'all items in the lists are well-formed again',
    level: ({ repaired, left_out }) => (repaired + left_out > 0 ? 'warn' : 'info'),
    condition: ({ backend, repaired, left_out, examples }) => ({
      id: `items_malformed/${backend}`,
      backend,
      open:
        repaired + left_out > 0
          ? {
              message: `backend ${backend} lists malformed items: ${left_out} left out, ${repaired} repaired`,
              fix: `report this to the operator of ${backend}: ${examples.slice(0, 2).join('; ')}`,
            }
          : undefined,
    }),
  },
  items_withheld: {
    message: ({ left_out }) =>
      left_out > 0
        ? 'guardrails are withholding items that a backend lists'
        : 'guardrails no longer withhold items that the backend lists',
    level: ({ left_out }) => (left_out > 0 ? 'warn' : 'info'),
    condition: ({ backend, left_out, examples }) => ({
      id: `items_withheld/${backend}`,
      backend,
      open:
        left_out > 0
          ? {
              message: `backend ${backend} lists items with hidden characters: ${left_out} left out`,
              fix: `ask the operator of ${backend} about them, or add an exception to the rule: ${examples.slice(0, 2).join('; ')}`,
            }
          : undefined,
    }),
  },
  name_conflict: {
    message: ({ resolved }) =>
      resolved ? 'a name can be offered again' : 'a name conflicts and cannot be offered',
    level: ({ resolved }) => (resolved ? 'info' : 'warn'),
    condition: ({ kind, item, problem, fix, resolved }) => ({
      id: `name_conflict/${kind}/${item}`,
      open: resolved ? undefined : { message: problem, fix },
    }),
  },
  tool_alias: {
    message: 'a tool has a short alias for clients because its name is too long',
    level: 'info',
  },
  tools_drifted: {
    message: (fields) =>
      isDrifted(fields)
        ? 'a backend differs from its tool lock'
        : fields.compared
          ? 'a backend matches its tool lock'
          : 'a backend is no longer compared with a tool lock',
    level: (fields) => (!isDrifted(fields) ? 'info' : fields.quiet ? 'debug' : 'warn'),
    condition: (fields) => {
      const { backend, changed, new: added, removed, examples } = fields
      return {
        id: `tools_drifted/${backend}`,
        backend,
        open: isDrifted(fields)
          ? {
              message: `backend ${backend} differs from its tool lock: ${changed} changed, ${added} new, ${removed} removed`,
              fix: `review the difference with gatehouse lock --check, then approve it in the MCPToolLock or report it to the operator of ${backend}: ${examples.slice(0, 2).join('; ')}`,
            }
          : undefined,
      }
    },
  },
  tool_lock: {
    message: ({ failure, in_force: inForce, missing }) => {
      if (missing) return 'a backend offers nothing: it has no tool lock'
      if (failure !== undefined) return 'the tool lock for a backend cannot be used'
      return inForce ? 'the tool lock for a backend is in force' : 'a backend no longer has a tool lock'
    },
    level: ({ failure, missing }) => (failure === undefined ? 'info' : missing ? 'warn' : 'error'),
    condition: ({ backend, failure, missing }) => ({
      id: `tool_lock/${backend}`,
      backend,
      open: failure === undefined ? undefined : lockProblem(backend, failure, missing),
    }),
  },
  tool_lock_written: {
    message: "a backend's first definitions were approved and written to its tool lock",
    level: 'info',
  },
  ...callRows,
  ...openApiRows,
  ...pageRows,
  ...quotaRows,
  ...skillRows,
  config_reloaded: {
    message: 'configuration reloaded',
    level: 'info',
    isNews: true,
    condition: () => ({ id: 'config_refused', open: undefined }),
  },
  config_refused: {
    message: 'the new configuration cannot be used; the current one stays in use',
    level: 'error',
    isNews: true,
    condition: () => ({
      id: 'config_refused',
      open: {
        message: 'the new configuration cannot be used; the current one stays in use',
        fix: 'run gatehouse vmcp validate --config FILE to list every error',
      },
    }),
  },
  restart_needed: {
    message: ({ sections }) =>
      sections.length > 0 ? 'changed settings take effect at the next start' : 'no settings need a restart',
    level: ({ sections }) => (sections.length > 0 ? 'warn' : 'info'),
    condition: ({ sections }) => ({
      id: 'restart_needed',
      open:
        sections.length > 0
          ? {
              message: `changed settings take effect at the next start: ${sections.join(', ')}`,
              fix: 'restart the server; on Kubernetes, run kubectl rollout restart on its Deployment',
            }
          : undefined,
    }),
  },
  authorization_server: {
    message: ({ outcome }) =>
      outcome === 'success'
        ? 'authorization server'
        : 'a login or a token request failed at the authorization server',
    level: ({ outcome }) => (outcome === 'success' ? 'info' : 'warn'),
    repeats: ({ action, outcome, upstream = '' }) => `${action} ${outcome} ${upstream}`,
  },
  token_failed: {
    message: 'a credential for a backend could not be obtained',
    level: 'warn',
    repeats: ({ strategy, reason, backend = '' }) => `${strategy} ${reason} ${backend}`,
  },
  token_obtained: { message: 'a credential for a backend was obtained', level: 'debug' },
  ...consoleRows,
  session_storage: {
    message: ({ up }) => (up ? 'session storage is reachable again' : 'session storage is unreachable'),
    level: ({ up }) => (up ? 'info' : 'warn'),
    condition: ({ up }) => ({
      id: 'session_storage',
      open: up
        ? undefined
        : {
            message: 'session storage is unreachable',
            fix: checkRedis,
          },
    }),
  },
  status_report: {
    message: ({ ok }) =>
      ok ? 'backend health is being reported again' : 'backend health could not be reported',
    level: ({ ok }) => (ok ? 'info' : 'warn'),
    condition: ({ ok }) => ({
      id: 'status_report',
      open: ok
        ? undefined
        : {
            message: 'backend health could not be reported to the cluster',
            fix: "check the API server and that this pod's Role allows it to patch its report ConfigMap",
          },
    }),
  },
  audit_lost: {
    message: 'audit lines are lost',
    level: 'error',
    condition: () => ({
      id: 'audit_lost',
      open: {
        message: 'audit lines are lost',
        fix: 'check that the volume that contains audit.logFile has free space, or that the reader of standard output keeps up',
      },
    }),
  },
  audit_recovered: {
    message: 'audit lines are being written again',
    level: 'info',
    condition: () => ({ id: 'audit_lost', open: undefined }),
  },
  ...certificateRows,
  ...attachRows,
}
