/**
 * Metrics for a virtual server and its embedded authorization server. docs/reference/metrics.md is generated from this
 * table.
 *
 * Each label has only a few possible values. A value that a client can choose freely is never a label, so only spans
 * contain client addresses and resource URIs. Labels in `legacy` repeat other labels under older names, while
 * useLegacyAttributes is on.
 * Source: docs/reference/specification/virtual-server.md#telemetry, config.telemetry; OpenTelemetry semantic
 * conventions for MCP and generative AI.
 */
import { guardrailMetrics, quotaMetrics, rateLimitMetrics } from './features.ts'
import { type MetricRow, seconds } from './row.ts'

const resultBounds: readonly number[] = [0, 1, 2, 3, 5, 10, 20, 50]
const percentBounds: readonly number[] = [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 100]

const request = ['method', 'status_code', 'status', 'mcp_method', 'server', 'transport'] as const
const backend = [
  'target.workload_id',
  'target.workload_name',
  'target.transport_type',
  'action',
  'mcp.method.name',
  'mcp.protocol.revision',
  'tool_name',
  'gen_ai.tool.name',
  'prompt_name',
  'gen_ai.prompt.name',
  'auth.authenticated',
] as const
const backendLegacy = ['tool_name', 'prompt_name'] as const

export const serverMetrics = {
  mcpRequests: {
    name: 'gatehouse_mcp_requests',
    kind: 'counter',
    help: 'Client requests',
    labels: request,
  },
  mcpRequestDuration: {
    name: 'gatehouse_mcp_request_duration',
    ...seconds,
    help: 'Time from the arrival of a request to the end of its response',
    labels: request,
  },
  mcpActiveConnections: {
    name: 'gatehouse_mcp_active_connections',
    kind: 'up_down_counter',
    help: 'Open requests and event streams',
    labels: ['server', 'transport', 'connection_type'],
  },
  mcpToolCalls: {
    name: 'gatehouse_mcp_tool_calls',
    kind: 'counter',
    help: 'Client tool calls',
    labels: ['server', 'tool', 'status'],
  },
  serverOperationDuration: {
    name: 'mcp.server.operation.duration',
    ...seconds,
    help: 'Duration of client MCP operations',
    labels: [
      'mcp.method.name',
      'jsonrpc.protocol.version',
      'network.transport',
      'network.protocol.name',
      'network.protocol.version',
      'error.type',
      'gen_ai.tool.name',
      'gen_ai.operation.name',
      'gen_ai.prompt.name',
    ],
  },
  clientOperationDuration: {
    name: 'mcp.client.operation.duration',
    ...seconds,
    help: 'Duration of MCP operations on backends',
    labels: [
      'mcp.method.name',
      'mcp.protocol.version',
      'network.transport',
      'network.protocol.name',
      'server.address',
      'server.port',
      'error.type',
      'gen_ai.tool.name',
      'gen_ai.operation.name',
      'gen_ai.prompt.name',
    ],
  },
  serverSessionDuration: {
    name: 'mcp.server.session.duration',
    ...seconds,
    help: 'Lifetime of client sessions',
    labels: ['mcp.protocol.version', 'network.transport', 'network.protocol.name'],
  },
  sessions: {
    name: 'gatehouse_vmcp_sessions',
    kind: 'gauge',
    observed: true,
    help: 'Client sessions in this process',
    labels: [],
  },
  requestsWaiting: {
    name: 'gatehouse_requests_waiting',
    kind: 'gauge',
    observed: true,
    help: 'Requests waiting in the queue because this process is overloaded',
    labels: [],
  },
  overloadRefusals: {
    name: 'gatehouse_overload_refusals',
    kind: 'counter',
    observed: true,
    help: 'Requests rejected with 503 because the wait would have been too long, or because there was no memory for their bodies',
    labels: [],
  },
  backendHealth: {
    name: 'gatehouse_vmcp_backend_health',
    kind: 'gauge',
    observed: true,
    help: 'Health of each backend: 1 for the current status, 0 for all others',
    labels: ['target.workload_name', 'status'],
  },
  backendCircuit: {
    name: 'gatehouse_vmcp_backend_circuit',
    kind: 'gauge',
    observed: true,
    help: 'State of each configured circuit breaker: 1 for the current state, 0 for all others',
    labels: ['target.workload_name', 'state'],
  },
  pinnedItems: {
    name: 'gatehouse_vmcp_pinned_items',
    kind: 'gauge',
    observed: true,
    help: 'Tools, prompts, resource templates and instructions from each backend that has a lock, by state: pinned, new, changed or removed',
    labels: ['target.workload_name', 'state'],
  },
  pinRefusals: {
    name: 'gatehouse_vmcp_pin_refusals',
    kind: 'counter',
    help: 'Calls rejected because the definition does not match the lock, by reason: tool_changed, tool_new, lock_invalid, no_lock',
    labels: ['target.workload_name', 'reason'],
  },
  problems: {
    name: 'gatehouse_problems',
    kind: 'gauge',
    observed: true,
    help: 'Current problems, as in problem_details of /status, by event type',
    labels: ['type'],
  },
  events: {
    name: 'gatehouse_events',
    kind: 'counter',
    help: 'Server events, by event type as in the log',
    labels: ['type'],
  },
  certificateExpiry: {
    name: 'gatehouse_certificate_expiry_timestamp_seconds',
    kind: 'gauge',
    observed: true,
    help: 'Expiry time of certificates that this program serves or trusts, as Unix time',
    labels: ['certificate'],
  },
  configReloads: {
    name: 'gatehouse_config_reloads',
    kind: 'counter',
    help: 'Configuration changes by result: success or failure',
    labels: ['outcome'],
  },
  authorizationDecisions: {
    name: 'gatehouse_authorization_decisions',
    kind: 'counter',
    help: 'Policy decisions about requests: allowed, denied or error',
    labels: ['server', 'decision'],
  },
  authorizationShadowDecisions: {
    name: 'gatehouse_authorization_shadow_decisions',
    kind: 'counter',
    help: 'Decisions that shadow policies would have made about requests: same, would_deny or would_allow',
    labels: ['server', 'outcome'],
  },
  decisionPointAnswers: {
    name: 'gatehouse_decision_point_answers',
    kind: 'counter',
    help: 'Queries to the external decision point, by result: allow, deny, cached_allow, cached_deny, or the reason for a missing response',
    labels: ['server', 'outcome'],
  },
  decisionPointDuration: {
    name: 'gatehouse_decision_point_duration',
    ...seconds,
    help: 'Time from sending a query to the external decision point until its response or failure',
    labels: ['server'],
  },
  webhookCalls: {
    name: 'gatehouse_webhook_calls',
    kind: 'counter',
    help: 'Requests to webhooks, by result: allowed, denied, mutated, or the reason for a missing or invalid response',
    labels: ['server', 'webhook', 'phase', 'outcome'],
  },
  webhookDuration: {
    name: 'gatehouse_webhook_duration',
    ...seconds,
    help: 'Time from sending a request to a webhook until its response or failure',
    labels: ['server', 'webhook'],
  },
  ...guardrailMetrics,
  tokenExchanges: {
    name: 'gatehouse_token_exchanges',
    kind: 'counter',
    help: 'Requests for backend credentials, by strategy and outcome',
    labels: ['strategy', 'outcome'],
  },
  authServerEvents: {
    name: 'gatehouse_authserver_events',
    kind: 'counter',
    help: 'Logins, issued tokens and other events in the embedded authorization server, by outcome',
    labels: ['action', 'outcome', 'upstream'],
  },
  auditLinesLost: {
    name: 'gatehouse_audit_lines_lost',
    kind: 'counter',
    help: 'Audit log lines that could not be written',
    labels: [],
  },
  logLinesLost: {
    name: 'gatehouse_log_lines_lost',
    kind: 'counter',
    observed: true,
    help: 'Log lines that were dropped because the reader of standard error was too slow',
    labels: [],
  },
  backendsDiscovered: {
    name: 'gatehouse_vmcp_backends_discovered',
    kind: 'gauge',
    help: 'Backends in the running configuration',
    labels: [],
  },
  backendsExcluded: {
    name: 'gatehouse_vmcp_backends_excluded',
    kind: 'gauge',
    help: 'Backends in the configuration that are excluded because they cannot be set up',
    labels: [],
  },
  authServerSecretUses: {
    name: 'gatehouse_authserver_old_secret_uses',
    kind: 'gauge',
    help: 'Stored records and refresh tokens that still require an older HMAC secret; when both are 0, you can remove the secret',
    labels: ['secret', 'kind'],
  },
  backendRequests: {
    name: 'gatehouse_vmcp_backend_requests',
    kind: 'counter',
    help: 'Requests to backends',
    labels: backend,
    legacy: backendLegacy,
  },
  backendErrors: {
    name: 'gatehouse_vmcp_backend_errors',
    kind: 'counter',
    help: 'Requests to backends that failed',
    labels: backend,
    legacy: backendLegacy,
  },
  backendRequestsDuration: {
    name: 'gatehouse_vmcp_backend_requests_duration',
    ...seconds,
    help: 'Duration of requests to backends',
    labels: backend,
    legacy: backendLegacy,
  },
  revisionReclassifications: {
    name: 'gatehouse_vmcp_backend_revision_reclassifications',
    kind: 'counter',
    help: "Number of times a backend's protocol revision changed",
    labels: ['target.workload_name', 'mcp.protocol.revision'],
  },
  malformedItems: {
    name: 'gatehouse_vmcp_malformed_items',
    kind: 'counter',
    help: 'Malformed items in lists from backends, counted at each read, by action: repaired or left_out',
    labels: ['target.workload_name', 'action'],
  },
  listReadFailures: {
    name: 'gatehouse_vmcp_list_read_failures',
    kind: 'counter',
    help: 'Failed attempts to read lists from backends; the previous lists stay in use',
    labels: ['target.workload_name'],
  },
  workflowExecutions: {
    name: 'gatehouse_vmcp_workflow_executions',
    kind: 'counter',
    help: 'Workflows started',
    labels: ['workflow.name'],
  },
  workflowErrors: {
    name: 'gatehouse_vmcp_workflow_errors',
    kind: 'counter',
    help: 'Workflows that failed',
    labels: ['workflow.name'],
  },
  workflowDuration: {
    name: 'gatehouse_vmcp_workflow_duration',
    ...seconds,
    help: 'Duration of workflows',
    labels: ['workflow.name'],
  },
  optimizerFindToolRequests: {
    name: 'gatehouse_vmcp_optimizer_find_tool_requests',
    kind: 'counter',
    help: 'Searches for tools',
    labels: [],
  },
  optimizerFindToolErrors: {
    name: 'gatehouse_vmcp_optimizer_find_tool_errors',
    kind: 'counter',
    help: 'Searches that failed, or used only keywords',
    labels: [],
  },
  optimizerFindToolDuration: {
    name: 'gatehouse_vmcp_optimizer_find_tool_duration',
    ...seconds,
    help: 'Duration of searches',
    labels: [],
  },
  optimizerFindToolResults: {
    name: 'gatehouse_vmcp_optimizer_find_tool_results',
    kind: 'histogram',
    bounds: resultBounds,
    help: 'Tools found by a search',
    labels: [],
  },
  optimizerTokenSavings: {
    name: 'gatehouse_vmcp_optimizer_token_savings_percent',
    kind: 'histogram',
    bounds: percentBounds,
    help: 'Percentage of tool description tokens that a search response omits',
    labels: [],
  },
  optimizerCallToolRequests: {
    name: 'gatehouse_vmcp_optimizer_call_tool_requests',
    kind: 'counter',
    help: 'Calls through call_tool',
    labels: ['tool_name'],
  },
  optimizerCallToolErrors: {
    name: 'gatehouse_vmcp_optimizer_call_tool_errors',
    kind: 'counter',
    help: 'Calls through call_tool that failed',
    labels: ['tool_name'],
  },
  optimizerCallToolNotFound: {
    name: 'gatehouse_vmcp_optimizer_call_tool_not_found',
    kind: 'counter',
    help: 'Calls through call_tool to tools that do not exist',
    labels: [],
  },
  optimizerCallToolDuration: {
    name: 'gatehouse_vmcp_optimizer_call_tool_duration',
    ...seconds,
    help: 'Duration of calls through call_tool',
    labels: ['tool_name'],
  },
  policyEngineFailures: {
    name: 'gatehouse_policy_engine_failures',
    kind: 'counter',
    help: 'Requests denied because the policy engine failed; the engine is replaced each time',
    labels: ['server'],
  },
  ...quotaMetrics,
  ...rateLimitMetrics,
} as const satisfies Record<string, MetricRow>
