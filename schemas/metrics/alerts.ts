/**
 * Alerts on the metrics of the table. Rules for Prometheus and a runbook page for each are generated from these rows.
 *
 * A metric is named by its row, so that a rule cannot ask for one that no program has.
 */
import { attachMetrics } from './attach.ts'
import { hooksMetrics, proxyMetrics } from './programs.ts'
import { prometheusName } from './row.ts'
import { serverMetrics } from './server.ts'

export interface Alert {
  readonly name: string
  readonly expr: string
  /** How long it must hold. */
  readonly for: string
  readonly severity: 'critical' | 'warning' | 'info'
  /** May name labels as Prometheus templates do. */
  readonly summary: string
  /** What it means for users. */
  readonly meaning: string
  /** What to do, in order. */
  readonly steps: readonly string[]
}

const health = prometheusName(serverMetrics.backendHealth)
const circuit = prometheusName(serverMetrics.backendCircuit)
const problems = prometheusName(serverMetrics.problems)
const operations = `${prometheusName(serverMetrics.serverOperationDuration)}_count`
const logins = prometheusName(serverMetrics.authServerEvents)
const exchanges = prometheusName(serverMetrics.tokenExchanges)
const ends = prometheusName(serverMetrics.certificateExpiry)
const lost = prometheusName(serverMetrics.auditLinesLost)
const uncounted = [serverMetrics.rateLimitFailOpen, serverMetrics.quotaFailOpen].map(prometheusName)
const hookCalls = prometheusName(hooksMetrics.hooksRequests)
const attachUp = prometheusName(attachMetrics.attachUp)
const proxied = prometheusName(proxyMetrics.proxyRequests)

/** Errors that a client or a tool causes by itself burn no budget: refusals, limits, bad parameters, results with isError. */
const ours = 'error_type!="",error_type!~"tool_error|401|403|404|429|-32600|-32601|-32602"'
const burn = (window: string): string =>
  `sum by (job) (rate(${operations}{${ours}}[${window}])) / sum by (job) (rate(${operations}[${window}]))`
const logged = (action: string): string => `sum by (upstream) (increase(${logins}{action="${action}"}[15m]))`

export const alertRules: readonly Alert[] = [
  {
    name: 'GatehouseBackendDown',
    expr: `max by (job, target_workload_name, status) (${health}{status=~"unhealthy|unauthenticated"}) == 1`,
    for: '5m',
    severity: 'critical',
    summary: 'backend {{ $labels.target_workload_name }} is {{ $labels.status }}',
    meaning: 'Clients do not see the tools of this backend, or calls of them fail.',
    steps: [
      'Read `problem_details` of `/status`: it names the cause, since when, and what to do.',
      'For the error itself, look in the log for `event` `backend_health` and this `backend`.',
      'Unauthenticated: check `outgoingAuth` of the backend and the secret behind it.',
    ],
  },
  {
    name: 'GatehouseErrorBudgetBurn',
    expr: `(${burn('1h')} > 14.4 * 0.001) and (${burn('5m')} > 14.4 * 0.001)`,
    for: '2m',
    severity: 'critical',
    summary:
      '{{ $value | humanizePercentage }} of operations fail: a budget of 0.1 % for 30 days is gone in two days',
    meaning: 'Operations of clients fail for reasons of the gateway or its backends.',
    steps: [
      'Which: the panel "Failed operations" of the dashboard, by `error_type`.',
      'Which backend: `gatehouse_vmcp_backend_errors_total` by `target_workload_name`, and `calls_failed` of `/status`.',
      'Errors of one backend alone: see GatehouseBackendDown. Of all: look at Redis, the policy engine and the log at level error.',
    ],
  },
  {
    name: 'GatehouseCircuitOpen',
    expr: `max by (job, target_workload_name) (${circuit}{state="open"}) == 1`,
    for: '1m',
    severity: 'warning',
    summary: 'the circuit of backend {{ $labels.target_workload_name }} is open',
    meaning:
      'Calls of this backend are refused at once, to give it time. A trial is made after `circuitBreaker.timeout`.',
    steps: [
      'Find out why its calls failed: `last_error` of the backend in `/status`, and `event` `backend_call_failed` in the log.',
      'Nothing has to be done here once the backend answers again: the circuit closes with the first trial that succeeds.',
    ],
  },
  {
    name: 'GatehouseLoginsFailing',
    expr: `(${logged('login_failed')} > 5) unless (${logged('login_completed')} > ${logged('login_failed')})`,
    for: '5m',
    severity: 'critical',
    summary: 'sign-ins at {{ $labels.upstream }} fail',
    meaning: 'Users cannot sign in at this identity provider, so new clients get no token.',
    steps: [
      'Look in the log for `event` `authorization_server` with `action` `login_failed`: `reason` says what the provider answered.',
      'Check the client secret and the redirect URI at the provider, and whether it can be reached from the pod.',
    ],
  },
  {
    name: 'GatehouseCredentialsFailing',
    expr:
      `(sum by (job, strategy) (increase(${exchanges}{outcome="failure"}[15m])) > 5) unless ` +
      `(sum by (job, strategy) (increase(${exchanges}{outcome="success"}[15m])) > sum by (job, strategy) (increase(${exchanges}{outcome="failure"}[15m])))`,
    for: '5m',
    severity: 'warning',
    summary: 'credentials for backends cannot be obtained by {{ $labels.strategy }}',
    meaning: 'Calls of backends with this strategy fail before they are sent.',
    steps: [
      'Look in the log for `event` `token_failed`: `reason` tells a refusal from an endpoint that cannot be reached.',
      '`upstream_token_missing` and `upstream_not_connected`: users have to sign in again.',
      'Else check the token endpoint, the client and its secret in `outgoingAuth`.',
    ],
  },
  {
    name: 'GatehouseCertificateExpiring',
    expr: `(${ends} - time()) / 86400 < 14`,
    for: '1h',
    severity: 'warning',
    summary: 'certificate {{ $labels.certificate }} ends in {{ $value | humanize }} days',
    meaning: 'After that, connections that need the certificate fail.',
    steps: [
      '`serving`: the certificate of the hooks. With cert-manager look at the Certificate; else run `gatehouse-hooks certificates issue` again.',
      '`caBundle of …`: put the renewed authority into the bundle of that backend.',
      'Both are read again by themselves; nothing has to be restarted.',
    ],
  },
  {
    name: 'GatehouseAuditLinesLost',
    expr: `increase(${lost}[10m]) > 0`,
    for: '0m',
    severity: 'critical',
    summary: '{{ $value | humanize }} lines of the audit log are lost',
    meaning: 'Requests go on, but the record of who did what has gaps.',
    steps: [
      'The disk of `audit.logFile` is full, or the reader of standard output is too slow: `err` of `event` `audit_lost` says which.',
      'Make space, or put the file on a volume of its own.',
    ],
  },
  {
    name: 'GatehouseConfigRefused',
    expr: `max by (job) (${problems}{type="config_refused"}) > 0`,
    for: '1m',
    severity: 'warning',
    summary: 'a changed configuration cannot be used; the one before goes on',
    meaning: 'Users see the old state. A restart of the pod would fail.',
    steps: [
      'Run `gatehouse vmcp validate --config` on the file: it names every error.',
      'On Kubernetes look at the conditions of the resource and of what it refers to.',
    ],
  },
  {
    name: 'GatehouseRestartNeeded',
    expr: `max by (job) (${problems}{type="restart_needed"}) > 0`,
    for: '1h',
    severity: 'info',
    summary: 'changed settings wait for a restart',
    meaning: 'Audit, telemetry, session storage or the console run with the settings of the last start.',
    steps: ['Restart the server; on Kubernetes `kubectl rollout restart` of its Deployment.'],
  },
  {
    name: 'GatehouseSessionStorageDown',
    expr: `max by (job) (${problems}{type="session_storage"}) > 0`,
    for: '2m',
    severity: 'critical',
    summary: 'session storage cannot be reached',
    meaning: 'Clients cannot open or continue sessions.',
    steps: [
      'Check that Redis runs, and its address and password.',
      'Check network policies between the pod and Redis.',
    ],
  },
  {
    name: 'GatehouseLimitsNotEnforced',
    expr: uncounted.map((name) => `(sum by (job, server) (increase(${name}[5m])) > 0)`).join(' or '),
    for: '2m',
    severity: 'warning',
    summary: 'calls of {{ $labels.server }} are let through uncounted',
    meaning: 'Rate limits and quotas do not hold while Redis cannot be asked.',
    steps: ['See GatehouseSessionStorageDown: limits and quotas use the same Redis.'],
  },
  {
    name: 'GatehouseProxyTargetFailing',
    expr: `sum by (job) (rate(${proxied}{status=~"5.."}[5m])) / sum by (job) (rate(${proxied}[5m])) > 0.05`,
    for: '10m',
    severity: 'warning',
    summary: '{{ $value | humanizePercentage }} of the requests through a proxy fail',
    meaning: 'The MCP server behind the proxy fails or cannot be reached.',
    steps: [
      'The log of the proxy names the cause: "the target could not be used" or "no credential for the target could be obtained".',
      '`/readyz` of the proxy says whether the target answers and whether the login is good.',
    ],
  },
  {
    name: 'GatehouseAttachDown',
    // During a rollout two proxies may be there, of which one is attached.
    expr: `max by (job, server) (${attachUp}) == 0`,
    for: '5m',
    severity: 'critical',
    summary: 'the stdio server {{ $labels.server }} is not attached to',
    meaning:
      'Requests for this MCPServer fail after they have waited for 30 seconds, and the pod of its proxy is not ready.',
    steps: [
      'Read the condition `Attached` of the MCPServer: reason and message name the next step, and docs/guides/stdio-servers.md lists the reasons.',
      'The log of the container `attach` has the same: `event` `attach_state` with `reason`, `why` and `fix`.',
      '`CrashLoopBackOff`, `ContainerEnded`: `kubectl logs mcp-NAME-server-0 -c mcp --previous`.',
      '`AccessRefused`: compare the Role `mcp-NAME-proxy` with what Metacontroller may grant. `ApiServerUnreachable`: let the pod of the proxy reach the API server.',
    ],
  },
  {
    name: 'GatehouseHooksFailing',
    expr: `sum by (job) (rate(${hookCalls}{code=~"5.."}[5m])) / sum by (job) (rate(${hookCalls}[5m])) > 0.05`,
    for: '10m',
    severity: 'warning',
    summary: '{{ $value | humanizePercentage }} of the hook calls fail',
    meaning: 'Changes of resources take no effect, and their status stands still.',
    steps: [
      'Look at the log of the hooks for "a hook failed".',
      'Compare the versions of hooks and CRDs: CRDs are applied first.',
    ],
  },
]

/** Path of the page of an alert below docs/. */
export function runbookPath({ name }: Alert): string {
  return `runbooks/${name
    .replace(/^Gatehouse/, '')
    .replaceAll(/(?<!^)(?=[A-Z])/g, '-')
    .toLowerCase()}.md`
}
