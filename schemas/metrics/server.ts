/**
 * The metrics of a virtual server, its embedded authorization server included. docs/metrics.md is generated from this.
 *
 * A label has few values: nothing that a client can make up freely is one, so addresses of clients and resource URIs stand
 * on spans only. Labels in `legacy` are doubles under older names, written while useLegacyAttributes is on.
 * Source: docs/specification/virtual-server.md#telemetry, config.telemetry; OpenTelemetry semantic conventions for MCP and generative AI.
 */
import { guardrailMetrics } from './guardrails.ts'
import { quotaMetrics } from './quotas.ts'
import type { MetricRow } from './row.ts'

/** Seconds. */
export const durationBounds: readonly number[] = [
  0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300,
]
const resultBounds: readonly number[] = [0, 1, 2, 3, 5, 10, 20, 50]
const percentBounds: readonly number[] = [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 100]

const seconds = { kind: 'histogram', unit: 's', bounds: durationBounds } as const
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
const limiter = ['namespace', 'server'] as const

export const serverMetrics = {
  mcpRequests: {
    name: 'gatehouse_mcp_requests',
    kind: 'counter',
    help: 'Requests of clients',
    labels: request,
  },
  mcpRequestDuration: {
    name: 'gatehouse_mcp_request_duration',
    ...seconds,
    help: 'Time from arrival to the end of the response',
    labels: request,
  },
  mcpActiveConnections: {
    name: 'gatehouse_mcp_active_connections',
    kind: 'up_down_counter',
    help: 'Requests and event streams that are open',
    labels: ['server', 'transport', 'connection_type'],
  },
  mcpToolCalls: {
    name: 'gatehouse_mcp_tool_calls',
    kind: 'counter',
    help: 'Tool calls of clients',
    labels: ['server', 'tool', 'status'],
  },
  serverOperationDuration: {
    name: 'mcp.server.operation.duration',
    ...seconds,
    help: 'Duration of MCP operations of clients',
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
    help: 'Duration of MCP operations at backends',
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
    help: 'Life of sessions of clients',
    labels: ['mcp.protocol.version', 'network.transport', 'network.protocol.name'],
  },
  sessions: {
    name: 'gatehouse_vmcp_sessions',
    kind: 'gauge',
    observed: true,
    help: 'Sessions of clients in this process',
    labels: [],
  },
  requestsWaiting: {
    name: 'gatehouse_requests_waiting',
    kind: 'gauge',
    observed: true,
    help: 'Requests that wait for their turn, because this process has more to do than time for it',
    labels: [],
  },
  overloadRefusals: {
    name: 'gatehouse_overload_refusals',
    kind: 'counter',
    observed: true,
    help: 'Requests refused with 503 because they would have had to wait too long, or because there was no memory for their bodies',
    labels: [],
  },
  backendHealth: {
    name: 'gatehouse_vmcp_backend_health',
    kind: 'gauge',
    observed: true,
    help: 'Health of each backend: 1 for the status it has, 0 for the others',
    labels: ['target.workload_name', 'status'],
  },
  backendCircuit: {
    name: 'gatehouse_vmcp_backend_circuit',
    kind: 'gauge',
    observed: true,
    help: 'Circuit of each backend that has one: 1 for the state it is in, 0 for the others',
    labels: ['target.workload_name', 'state'],
  },
  pinnedItems: {
    name: 'gatehouse_vmcp_pinned_items',
    kind: 'gauge',
    observed: true,
    help: 'Tools, prompts, resource templates and instructions of each backend that is compared with a lock, by state: pinned, new, changed, removed',
    labels: ['target.workload_name', 'state'],
  },
  pinRefusals: {
    name: 'gatehouse_vmcp_pin_refusals',
    kind: 'counter',
    help: 'Calls that were refused because what they name is not as it was approved, by reason: tool_changed, tool_new, lock_invalid, no_lock',
    labels: ['target.workload_name', 'reason'],
  },
  problems: {
    name: 'gatehouse_problems',
    kind: 'gauge',
    observed: true,
    help: 'What is wrong now, as problem_details of /status lists it, by type of event',
    labels: ['type'],
  },
  events: {
    name: 'gatehouse_events',
    kind: 'counter',
    help: 'Events of the server, by type, as the log names them',
    labels: ['type'],
  },
  certificateExpiry: {
    name: 'gatehouse_certificate_expiry_timestamp_seconds',
    kind: 'gauge',
    observed: true,
    help: 'When certificates end that this program serves or trusts, as Unix time',
    labels: ['certificate'],
  },
  configReloads: {
    name: 'gatehouse_config_reloads',
    kind: 'counter',
    help: 'Changes of the configuration, by what became of them: success or failure',
    labels: ['outcome'],
  },
  authorizationDecisions: {
    name: 'gatehouse_authorization_decisions',
    kind: 'counter',
    help: 'Decisions of policies about requests: allowed, denied or error',
    labels: ['server', 'decision'],
  },
  authorizationShadowDecisions: {
    name: 'gatehouse_authorization_shadow_decisions',
    kind: 'counter',
    help: 'What shadow policies would have decided about requests: same, would_deny or would_allow',
    labels: ['server', 'outcome'],
  },
  decisionPointAnswers: {
    name: 'gatehouse_decision_point_answers',
    kind: 'counter',
    help: 'Questions to the external decision point, by what came of them: allow, deny, cached_allow, cached_deny, or why there was no response',
    labels: ['server', 'outcome'],
  },
  decisionPointDuration: {
    name: 'gatehouse_decision_point_duration',
    ...seconds,
    help: 'Time from a question to the external decision point to its response, or to the failure',
    labels: ['server'],
  },
  webhookCalls: {
    name: 'gatehouse_webhook_calls',
    kind: 'counter',
    help: 'Requests to webhooks, by what came of them: allowed, denied, mutated, or why there was no valid response',
    labels: ['server', 'webhook', 'phase', 'outcome'],
  },
  webhookDuration: {
    name: 'gatehouse_webhook_duration',
    ...seconds,
    help: 'Time from a request to a webhook to its response, or to the failure',
    labels: ['server', 'webhook'],
  },
  ...guardrailMetrics,
  tokenExchanges: {
    name: 'gatehouse_token_exchanges',
    kind: 'counter',
    help: 'Credentials for backends that were asked for, by strategy and outcome',
    labels: ['strategy', 'outcome'],
  },
  authServerEvents: {
    name: 'gatehouse_authserver_events',
    kind: 'counter',
    help: 'Logins, tokens and other events of the embedded authorization server, by outcome',
    labels: ['action', 'outcome', 'upstream'],
  },
  auditLinesLost: {
    name: 'gatehouse_audit_lines_lost',
    kind: 'counter',
    help: 'Lines of the audit log that could not be written',
    labels: [],
  },
  backendsDiscovered: {
    name: 'gatehouse_vmcp_backends_discovered',
    kind: 'gauge',
    help: 'Backends of the running configuration',
    labels: [],
  },
  backendsExcluded: {
    name: 'gatehouse_vmcp_backends_excluded',
    kind: 'gauge',
    help: 'Backends of the configuration that cannot be set up and are not served',
    labels: [],
  },
  authServerSecretUses: {
    name: 'gatehouse_authserver_old_secret_uses',
    kind: 'gauge',
    help: 'What still needs an older HMAC secret: stored records and refresh tokens; 0 of both: it can be dropped',
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
    help: 'Backends found to speak another protocol revision than before',
    labels: ['target.workload_name', 'mcp.protocol.revision'],
  },
  malformedItems: {
    name: 'gatehouse_vmcp_malformed_items',
    kind: 'counter',
    help: 'Items of lists of backends that are malformed, each time a list is read, by what becomes of them: repaired or left_out',
    labels: ['target.workload_name', 'action'],
  },
  listReadFailures: {
    name: 'gatehouse_vmcp_list_read_failures',
    kind: 'counter',
    help: 'Reads of lists of backends that failed; the last lists stay in use',
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
    help: 'Searches that failed, or went on by keywords alone',
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
    help: 'Share of tool descriptions that a search left out',
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
    help: 'Calls through call_tool of tools that do not exist',
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
    help: 'Decisions refused because the policy engine failed; it is replaced each time',
    labels: ['server'],
  },
  ...quotaMetrics,
  rateLimitDecisions: {
    name: 'gatehouse_rate_limit_decisions',
    kind: 'counter',
    help: 'Decisions of the rate limiter',
    labels: [...limiter, 'decision', 'scope', 'operation_type'],
  },
  rateLimitRedisErrors: {
    name: 'gatehouse_rate_limit_redis_errors',
    kind: 'counter',
    help: 'Errors of the store of the rate limiter',
    labels: [...limiter, 'error_type'],
  },
  rateLimitFailOpen: {
    name: 'gatehouse_rate_limit_fail_open',
    kind: 'counter',
    help: 'Calls let through because the rate limiter could not decide',
    labels: limiter,
  },
  rateLimitCheckLatency: {
    name: 'gatehouse_rate_limit_check_latency',
    ...seconds,
    help: 'Duration of rate limit checks',
    labels: limiter,
  },
} as const satisfies Record<string, MetricRow>
