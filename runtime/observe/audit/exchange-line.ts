/** The members of an audit line that describe one HTTP request of a client. */
import type { IncomingMessage } from 'node:http'
import type { AuditEventType, ErrorCode } from '../../../schemas/index.ts'
import type { Caller } from '../../net/index.ts'
import type { ClientName, RpcFacts } from '../exchange/rpc.ts'
import type { RpcResponse } from '../exchange/rpc-answer.ts'
import type { MaskText } from '../record-mask.ts'
import { redactText } from '../redact.ts'
import { cutBytes } from '../text.ts'
import type { AuditOutcome } from './events.ts'
import type { Delegation } from './delegation.ts'
import { policyMembers, type PolicyRecord } from './policy-line.ts'

/** What one webhook said. */
export interface WebhookRecord {
  readonly name: string
  readonly phase: string
  readonly outcome: string
  /** False: it had no effect. */
  readonly enforced: false | undefined
  readonly reason: string | undefined
}

/** A quota that a request was over. */
export interface QuotaRecord {
  readonly name: string
  /** False: the call went on. */
  readonly enforced: boolean
}

/** What a guardrail found, never what it was. */
export interface GuardrailRecord {
  readonly rule: string | undefined
  /** What it was found in. */
  readonly direction: string
  readonly outcome: string
  /** Matches. */
  readonly count: number
}

export interface ExchangeRecord {
  readonly type: AuditEventType
  readonly outcome: AuditOutcome
  /** Of the HTTP response; 499 when the client left before there was one. */
  readonly status: number
  /** What the request was refused or rejected with, where that is an error of ours. */
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
  /** Bytes of the response; undefined while it goes on. */
  readonly responseBytes: number | undefined
  readonly rpcResponse: RpcResponse | undefined
  /** Why the work refused the request, as a code. */
  readonly denial: string | undefined
  /** What webhooks said about it. */
  readonly webhooks?: readonly WebhookRecord[] | undefined
  /** Quotas that it was over. */
  readonly quotas?: readonly QuotaRecord[] | undefined
  readonly guardrails?: readonly GuardrailRecord[] | undefined
  /** For the texts that are recorded of it. */
  readonly mask?: MaskText | undefined
  /** The request's body. */
  readonly body: Buffer
  /** The beginning of the message that answered it. */
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

/** Who: `user` is a name for people, `user_id` the subject. */
export function subjectsOf(
  caller: Caller | undefined,
  client: ClientName | undefined,
): Record<string, string | undefined> {
  return {
    user: caller?.displayName ?? 'anonymous',
    user_id: caller?.subject,
    client_name: client?.name,
    client_version: client?.version,
  }
}
