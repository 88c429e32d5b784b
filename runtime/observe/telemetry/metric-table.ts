/**
 * The table of metrics: names, kinds, labels and bounds. docs/observability.md repeats it and a test compares the two.
 *
 * A label has few values: nothing that a client can make up freely is one, so addresses and resource URIs stand on
 * spans only. Labels in `legacy` are doubles under older names, written while useLegacyAttributes is on.
 * Source: docs/specification/virtual-server.md#telemetry, config.telemetry; OpenTelemetry semantic conventions for MCP and generative AI.
 */
export interface MetricRow {
  /** Name for OTLP; prometheus.ts and its serialiser make the scraped one of it. */
  readonly name: string
  readonly kind: 'counter' | 'up_down_counter' | 'gauge' | 'histogram'
  /** `s` for seconds. */
  readonly unit?: string
  readonly help: string
  readonly labels: readonly string[]
  readonly legacy?: readonly string[]
  /** Upper bounds of the buckets. */
  readonly bounds?: readonly number[]
}

/** Seconds. */
export const DURATION_BOUNDS: readonly number[] = [
  0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300,
]
const RESULT_BOUNDS: readonly number[] = [0, 1, 2, 3, 5, 10, 20, 50]
const PERCENT_BOUNDS: readonly number[] = [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 100]

const seconds = { kind: 'histogram', unit: 's', bounds: DURATION_BOUNDS } as const
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

export const METRICS = {
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
    labels: ['mcp.method.name', 'network.transport', 'error.type'],
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
    bounds: RESULT_BOUNDS,
    help: 'Tools found by a search',
    labels: [],
  },
  optimizerTokenSavings: {
    name: 'gatehouse_vmcp_optimizer_token_savings_percent',
    kind: 'histogram',
    bounds: PERCENT_BOUNDS,
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

export type MetricName = keyof typeof METRICS
