/** Builds the members of an audit line for one HTTP request from a client. */
import type { IncomingMessage } from 'node:http'
import type { AuditEventType, ErrorCode } from '../../../schemas/index.ts'
import { type Caller, localIssuer, shortClientId } from '../../net/index.ts'
import type { ClientName, RpcFacts } from '../exchange/rpc.ts'
import type { RpcResponse } from '../exchange/rpc-answer.ts'
import type { MaskText } from '../record-mask.ts'
import { cutBytes, redactText } from '../redact.ts'
import type { AuditOutcome } from './events.ts'
import type { Delegation } from './delegation.ts'
import { policyMembers, type PolicyRecord } from './policy-line.ts'

/** The response of one webhook. */
export interface WebhookRecord {
  readonly name: string
  readonly phase: string
  readonly outcome: string
  /** False when the gateway did not enforce the response. */
  readonly enforced: false | undefined
  readonly reason: string | undefined
}

/** A quota that a request exceeded. */
export interface QuotaRecord {
  readonly name: string
  /** False when the call was allowed. */
  readonly enforced: boolean
}

/** A finding of a guardrail, without the matched text. */
export interface GuardrailRecord {
  readonly rule: string | undefined
  /** Arguments or results. */
  readonly direction: string
  readonly outcome: string
  /** Number of matches. */
  readonly count: number
}

/** An event of a task: its creation, the first read of its result, an answer to its questions, or its cancellation. */
export interface TaskRecord {
  /** Hash of the task's id. */
  readonly id: string
  readonly event: 'created' | 'result_read' | 'updated' | 'cancelled'
}

export interface ExchangeRecord {
  readonly type: AuditEventType
  readonly outcome: AuditOutcome
  /** Status of the HTTP response; 499 when the client disconnected first. */
  readonly status: number
  /** The Gatehouse error code, if the request was rejected. */
  readonly errorCode: ErrorCode | undefined
  readonly req: IncomingMessage
  /** Path without the query. */
  readonly path: string
  readonly clientAddress: string
  readonly requestId: string
  readonly caller: Caller | undefined
  readonly client: ClientName | undefined
  readonly rpc: RpcFacts | undefined
  readonly backend: string | undefined
  readonly policy?: PolicyRecord | undefined
  readonly durationMs: number
  /** Size of the response in bytes; undefined while it is being sent. */
  readonly responseBytes: number | undefined
  readonly rpcResponse: RpcResponse | undefined
  /** Code that identifies the reason for a denial. */
  readonly denial: string | undefined
  /** Webhook responses. */
  readonly webhooks?: readonly WebhookRecord[] | undefined
  /** Quotas that the request exceeded. */
  readonly quotas?: readonly QuotaRecord[] | undefined
  readonly guardrails?: readonly GuardrailRecord[] | undefined
  readonly task?: TaskRecord | undefined
  /** Masks recorded text. */
  readonly mask?: MaskText | undefined
  /** The request's body. */
  readonly body: Buffer
  /** The beginning of the response. */
  readonly response: { readonly text: string; readonly whole: boolean } | undefined
}

const maxAgentBytes = 256
const maxPathBytes = 512

export function exchangeLine(
  record: ExchangeRecord,
  delegation: Delegation | undefined,
): Record<string, unknown> {
  const { req, rpc, rpcResponse } = record
  const { policy, origin } = policyMembers(record.policy, record.mask)
  const agent = req.headers['user-agent']
  return {
    source: {
      type: 'network',
      value: record.clientAddress,
      extra: {
        user_agent: agent === undefined ? undefined : cutBytes(redactText(agent), maxAgentBytes),
        request_id: record.requestId,
      },
    },
    subjects: subjectsOf(record.caller, record.client),
    delegation,
    target: {
      endpoint: cutBytes(record.path, maxPathBytes),
      method: rpc === undefined || rpc.method === '' ? req.method : rpc.method,
      name: rpc?.target,
      type: record.type === 'sse_connection' ? 'sse_endpoint' : (rpc?.targetType ?? 'endpoint'),
      ...origin,
    },
    policy,
    webhooks: record.webhooks,
    quotas: record.quotas,
    guardrails: record.guardrails,
    task: record.task,
    metadata: {
      extra: {
        duration_ms: record.durationMs,
        transport: 'http',
        response_size_bytes: record.responseBytes,
        backend: record.backend,
        backend_name: record.backend,
        jsonrpc_error_code: rpcResponse?.kind === 'error' ? rpcResponse.code : undefined,
        jsonrpc_error_message: rpcResponse?.kind === 'error' ? rpcResponse.message : undefined,
        denial_reason: record.denial,
        tool_error: rpcResponse?.toolError === true ? true : undefined,
      },
    },
  }
}

/** Returns the subjects: `user` is a display name, `user_id` the subject, `client_id` the OAuth client. */
export function subjectsOf(
  caller: Caller | undefined,
  client: ClientName | undefined,
): Record<string, string | undefined> {
  const clientId = caller?.facts?.clientId
  return {
    user: caller?.displayName ?? 'anonymous',
    user_id: caller?.subject,
    issuer: caller?.issuer === localIssuer ? undefined : caller?.issuer,
    client_id: clientId === undefined ? undefined : shortClientId(clientId),
    client_name: client?.name,
    client_version: client?.version,
  }
}
