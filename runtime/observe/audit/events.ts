/**
 * The audit event types, with the cause of each. docs/guides/observability.md repeats the table, and a test compares
 * the two.
 *
 * The names come from the schema (`AuditEventType`), so a configuration can select each of them.
 * Source: docs/reference/specification/virtual-server.md#events, "Events" and config.audit.
 */
import type { AuditEventType } from '../../../schemas/index.ts'

/** Outcome of the audited operation. */
export type AuditOutcome = 'success' | 'denied' | 'failure' | 'error' | 'application_error'

interface EventRow {
  /** JSON-RPC method; absent for types without a single method. */
  readonly method?: string
  readonly when: string
}

export const auditEvents = {
  mcp_initialize: { method: 'initialize', when: 'a client opens a session' },
  mcp_ping: { method: 'ping', when: 'a client sends a ping' },
  mcp_logging: { method: 'logging/setLevel', when: 'a client sets the log level' },
  mcp_completion: { method: 'completion/complete', when: 'a client requests completions' },
  mcp_notification: { when: 'a client sends a notification other than roots/list_changed' },
  mcp_roots_list_changed: {
    method: 'notifications/roots/list_changed',
    when: "a client's roots changed",
  },
  mcp_tool_call: { method: 'tools/call', when: 'a tool is called by a client or a script' },
  mcp_tools_list: { method: 'tools/list', when: 'a client lists tools' },
  mcp_resource_read: { method: 'resources/read', when: 'a client reads a resource' },
  mcp_resources_list: { method: 'resources/list', when: 'a client lists resources' },
  mcp_prompt_get: { method: 'prompts/get', when: 'a client gets a prompt' },
  mcp_prompts_list: { method: 'prompts/list', when: 'a client lists prompts' },
  mcp_request: { when: 'any other MCP message from a client, including answers to questions' },
  sse_connection: { when: 'an event stream is opened; the line is written when the stream opens' },
  http_request: { when: 'a request that is not an MCP message, or is rejected before it is parsed as one' },
  vmcp_workflow_started: { when: 'a workflow starts' },
  vmcp_workflow_completed: { when: 'a workflow completes with a result' },
  vmcp_workflow_failed: { when: 'a workflow fails with an error' },
  vmcp_workflow_timed_out: { when: 'a workflow exceeds its time limit' },
  vmcp_workflow_step_started: { when: 'a step starts' },
  vmcp_workflow_step_completed: { when: 'a step completes with a result' },
  vmcp_workflow_step_failed: { when: 'a step fails with an error' },
  vmcp_workflow_step_skipped: { when: 'a step is skipped because its condition is false' },
  auth_client_registered: { when: 'a client registered itself with the embedded authorization server' },
  auth_client_updated: { when: 'a client changed its registration' },
  auth_client_deleted: { when: 'a client deleted its registration' },
  auth_client_rejected: {
    when: 'a client failed to authenticate, or is not allowed to exchange a token; the line contains the reason',
  },
  auth_consent_given: { when: 'a user allowed a client to act on their behalf' },
  auth_consent_refused: { when: 'a user denied access to a client' },
  auth_login_completed: { when: 'a sign-in with an upstream provider succeeded' },
  auth_login_failed: { when: 'a sign-in with an upstream provider failed or was rejected' },
  auth_code_issued: { when: 'a login completed and an authorization code was issued' },
  auth_token_issued: { when: 'tokens were issued for a code, or to a declared client' },
  auth_token_refreshed: { when: 'tokens were issued for a refresh token' },
  auth_token_exchanged: { when: "a declared client exchanged a user's token for a delegated token" },
  auth_code_reused: { when: 'a code was presented a second time; its grant has ended' },
  auth_refresh_reused: { when: 'an old refresh token was presented; its grant has ended' },
  auth_grant_ended: {
    when: "a client or its user revoked the client's tokens, or an account was disconnected",
  },
  auth_upstream_refreshed: { when: 'a token from an upstream provider was renewed' },
  auth_upstream_refused: { when: "an upstream provider ended the connection to a user's account" },
  console_login_completed: { when: 'a user signed in to the console' },
  console_login_failed: { when: 'a sign-in to the console failed or was rejected' },
  console_logout: { when: 'a user signed out of the console' },
  console_payload_viewed: { when: 'the arguments and result of a call were shown in the console' },
  console_session_ended: { when: 'a session was ended from the console' },
  console_task_cancelled: { when: 'a task was cancelled from the console' },
  console_backend_rechecked: { when: 'a backend was checked from the console' },
  console_pin_approved: {
    when: 'a difference between a backend and its lock was approved in the console; the target contains the digest',
  },
  console_tool_tried: { when: 'a tool was tried from the console; the call has its own line' },
  console_decision_explained: { when: 'a policy decision was explained in the console' },
} as const satisfies Record<AuditEventType, EventRow>

/** An event type of an embedded authorization server. */
export type AuthorizationEventType = Extract<AuditEventType, `auth_${string}`>

/** Event type for a user action in the console. */
export type ConsoleEventType = Extract<AuditEventType, `console_${string}`>

export type WorkflowEventType = Extract<AuditEventType, `vmcp_workflow_${string}`>

const byMethod: ReadonlyMap<string, AuditEventType> = new Map(
  Object.entries(auditEvents).flatMap(([type, row]) =>
    'method' in row ? [[row.method, type as AuditEventType] as const] : [],
  ),
)

/** Returns the event type of an MCP message; '' is the method of a response. */
export function eventTypeOf(method: string): AuditEventType {
  return byMethod.get(method) ?? (method.startsWith('notifications/') ? 'mcp_notification' : 'mcp_request')
}

/**
 * Returns the types that a configuration selects. An empty `include` selects all types, and `exclude` takes precedence.
 */
export function selectedTypes(
  include: readonly AuditEventType[] | undefined,
  exclude: readonly AuditEventType[] | undefined,
): ReadonlySet<AuditEventType> {
  const all = Object.keys(auditEvents) as AuditEventType[]
  const from = include === undefined || include.length === 0 ? all : include
  return new Set(from.filter((type) => exclude?.includes(type) !== true))
}
