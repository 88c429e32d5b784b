/**
 * Alerts based on the metrics. Prometheus rules and a runbook page for each alert are generated from these rows.
 *
 * Rules refer to metrics by their rows, so a rule cannot query a metric that no program exports.
 */
import { attachMetrics } from './attach.ts'
import { hooksMetrics, proxyMetrics } from './programs.ts'
import { prometheusName } from './row.ts'
import { serverMetrics } from './server.ts'

export interface Alert {
  readonly name: string
  readonly expr: string
  /** Time that the expression must be true before the alert fires. */
  readonly for: string
  readonly severity: 'critical' | 'warning' | 'info'
  /** Summary of the alert. May contain Prometheus label templates. */
  readonly summary: string
  /** Impact on users. */
  readonly meaning: string
  /** The steps to take, in order. */
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

/**
 * Errors that do not use up the error budget, because a client or a tool causes them: rejections, limits, invalid
 * parameters, results with isError.
 */
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
    meaning: "Clients do not see this backend's tools, or calls to them fail.",
    steps: [
      'Read `problem_details` in `/status`: it contains the cause, the start time and the next step.',
      'To find the error, search the log for `event` `backend_health` and this `backend`.',
      "If the status is `unauthenticated`, check the backend's settings in `outgoingAuth` and the backend's secret.",
    ],
  },
  {
    name: 'GatehouseErrorBudgetBurn',
    expr: `(${burn('1h')} > 14.4 * 0.001) and (${burn('5m')} > 14.4 * 0.001)`,
    for: '2m',
    severity: 'critical',
    summary:
      '{{ $value | humanizePercentage }} of operations fail: at this rate, a 30-day budget of 0.1% lasts two days',
    meaning: 'Client operations fail because of the gateway or its backends.',
    steps: [
      'To find the operations, see the panel "Failed operations" in the dashboard, by `error_type`.',
      'To find the backend, see `gatehouse_vmcp_backend_errors_total` by `target_workload_name`, and `calls_failed` in `/status`.',
      'If only one backend has errors, see GatehouseBackendDown. If all backends have errors, check Redis, the policy engine and the log at level error.',
    ],
  },
  {
    name: 'GatehouseCircuitOpen',
    expr: `max by (job, target_workload_name) (${circuit}{state="open"}) == 1`,
    for: '1m',
    severity: 'warning',
    summary: 'the circuit breaker for backend {{ $labels.target_workload_name }} is open',
    meaning:
      'Calls to this backend are rejected immediately, so that it can recover. After `circuitBreaker.timeout`, Gatehouse tries one call.',
    steps: [
      "Find out why calls failed: see the backend's `last_error` in `/status`, and `event` `backend_call_failed` in the log.",
      'When the backend recovers, no action is needed: the circuit closes after the first successful trial call.',
    ],
  },
  {
    name: 'GatehouseLoginsFailing',
    expr: `(${logged('login_failed')} > 5) unless (${logged('login_completed')} > ${logged('login_failed')})`,
    for: '5m',
    severity: 'critical',
    summary: 'logins with {{ $labels.upstream }} fail',
    meaning: 'Users cannot sign in with this identity provider, so new clients get no token.',
    steps: [
      "Search the log for `event` `authorization_server` with `action` `login_failed`: `reason` contains the provider's response.",
      'Check the client secret and the redirect URI at the provider, and check that the pod can reach the provider.',
    ],
  },
  {
    name: 'GatehouseCredentialsFailing',
    expr:
      `(sum by (job, strategy) (increase(${exchanges}{outcome="failure"}[15m])) > 5) unless ` +
      `(sum by (job, strategy) (increase(${exchanges}{outcome="success"}[15m])) > sum by (job, strategy) (increase(${exchanges}{outcome="failure"}[15m])))`,
    for: '5m',
    severity: 'warning',
    summary: 'Gatehouse cannot obtain credentials for backends with strategy {{ $labels.strategy }}',
    meaning: 'Calls to backends with this strategy fail before they are sent.',
    steps: [
      'Search the log for `event` `token_failed`. The `reason` distinguishes a rejection from an unreachable endpoint.',
      'If the reason is `upstream_token_missing` or `upstream_not_connected`, users have to sign in again.',
      'Otherwise, check the token endpoint, the client and its secret in `outgoingAuth`.',
    ],
  },
  {
    name: 'GatehouseCertificateExpiring',
    expr: `(${ends} - time()) / 86400 < 14`,
    for: '1h',
    severity: 'warning',
    summary: 'certificate {{ $labels.certificate }} expires in {{ $value | humanize }} days',
    meaning: 'When the certificate expires, connections that depend on it fail.',
    steps: [
      '`serving` is the certificate of the hooks server. With cert-manager, check the Certificate; otherwise run `gatehouse-hooks certificates issue` again.',
      '`caBundle of …` is the bundle for a backend: add the renewed certificate authority to this bundle.',
      'Gatehouse reloads certificates and bundles without a restart.',
    ],
  },
  {
    name: 'GatehouseAuditLinesLost',
    expr: `increase(${lost}[10m]) > 0`,
    for: '0m',
    severity: 'critical',
    summary: '{{ $value | humanize }} audit log lines were lost',
    meaning: 'Requests continue, but the audit log has gaps.',
    steps: [
      'The disk that contains `audit.logFile` is full, or the reader of standard output is too slow: see `err` in `event` `audit_lost` in the log.',
      'Free disk space, or put the file on a separate volume.',
    ],
  },
  {
    name: 'GatehouseConfigRefused',
    expr: `max by (job) (${problems}{type="config_refused"}) > 0`,
    for: '1m',
    severity: 'warning',
    summary: 'a changed configuration is invalid; the previous one stays in use',
    meaning: 'The change has no effect. A restart of the pod would fail.',
    steps: [
      'To list every error, run `gatehouse vmcp validate --config` on the file.',
      'On Kubernetes, check the conditions on the resource and on the objects that it refers to.',
    ],
  },
  {
    name: 'GatehouseRestartNeeded',
    expr: `max by (job) (${problems}{type="restart_needed"}) > 0`,
    for: '1h',
    severity: 'info',
    summary: 'changed settings take effect only after a restart',
    meaning: 'Audit, telemetry, session storage or the console still use the previous settings.',
    steps: ['Restart the server; on Kubernetes, run `kubectl rollout restart` on its Deployment.'],
  },
  {
    name: 'GatehouseSessionStorageDown',
    expr: `max by (job) (${problems}{type="session_storage"}) > 0`,
    for: '2m',
    severity: 'critical',
    summary: 'session storage is unreachable',
    meaning: 'Clients cannot open or continue sessions.',
    steps: [
      'Check that Redis is running, and check the configured address and password.',
      'Check the network policies between the pod and Redis.',
    ],
  },
  {
    name: 'GatehouseLimitsNotEnforced',
    expr: uncounted.map((name) => `(sum by (job, server) (increase(${name}[5m])) > 0)`).join(' or '),
    for: '2m',
    severity: 'warning',
    summary: 'calls to {{ $labels.server }} are allowed without being counted',
    meaning: 'Rate limits and quotas are not enforced while Redis is unavailable.',
    steps: ['See GatehouseSessionStorageDown: limits and quotas use the same Redis.'],
  },
  {
    name: 'GatehouseProxyTargetFailing',
    expr: `sum by (job) (rate(${proxied}{status=~"5.."}[5m])) / sum by (job) (rate(${proxied}[5m])) > 0.05`,
    for: '10m',
    severity: 'warning',
    summary: '{{ $value | humanizePercentage }} of the requests through a proxy fail',
    meaning: 'The MCP server behind the proxy fails or is unreachable.',
    steps: [
      'The proxy\'s log contains the cause: "the request to the target failed" or "failed to get a credential for the target".',
      "The proxy's `/readyz` reports whether the target responds and whether the login is valid.",
    ],
  },
  {
    name: 'GatehouseAttachDown',
    // During a rollout, two proxies may run, and only one of them is attached.
    expr: `max by (job, server) (${attachUp}) == 0`,
    for: '5m',
    severity: 'critical',
    summary: 'the proxy is not attached to the stdio server {{ $labels.server }}',
    meaning: "Requests to this MCPServer fail after 30 seconds, and its proxy's pod is not ready.",
    steps: [
      "Read the MCPServer's `Attached` condition: its message contains the next step, and docs/guides/stdio-servers.md lists the reasons.",
      'The log of the `attach` container contains the same details: `event` `attach_state` with `reason`, `why` and `fix`.',
      'If the reason is `CrashLoopBackOff` or `ContainerEnded`, run `kubectl logs mcp-NAME-server-0 -c mcp --previous`.',
      "If it is `AccessRefused`, compare the Role `mcp-NAME-proxy` with the permissions that Metacontroller may grant. If it is `ApiServerUnreachable`, allow the proxy's pod to connect to the API server.",
    ],
  },
  {
    name: 'GatehouseHooksFailing',
    expr: `sum by (job) (rate(${hookCalls}{code=~"5.."}[5m])) / sum by (job) (rate(${hookCalls}[5m])) > 0.05`,
    for: '10m',
    severity: 'warning',
    summary: '{{ $value | humanizePercentage }} of the hook calls fail',
    meaning: 'Changes to resources have no effect, and their status is not updated.',
    steps: [
      'Search the hooks server\'s log for "a hook failed".',
      'Compare the versions of the hooks server and the CRDs; update the CRDs first.',
    ],
  },
]

/** Returns the path of an alert's page, below docs/. */
export function runbookPath({ name }: Alert): string {
  return `reference/runbooks/${name
    .replace(/^Gatehouse/, '')
    .replaceAll(/(?<!^)(?=[A-Z])/g, '-')
    .toLowerCase()}.md`
}
