/**
 * Builds the request to a webhook as JSON text: version, uid, time, principal, MCP request, response (in the response
 * phase) and context. The client's data is included unchanged.
 *
 * Omits the sealed state of a call that waits for input, and the caller's token.
 * Source: docs/guides/webhooks.md.
 */
import { createHmac } from 'node:crypto'
import { canonicalText, workOn } from '../../mcp/index.ts'
import type { Caller } from '../../net/index.ts'
import type { Secret } from '../../observe/index.ts'
import { DecisionFailure } from '../remote/json-post.ts'
import type { WebhookPhase, WebhookCall, WebhookResponse } from './subject.ts'

/** Wire format version. */
export const webhookVersion = 'v0.1.0'
/** Maximum size of a request to a webhook and of its response. */
export const maxWebhookBytes: number = 1024 * 1024

export interface WebhookPlace {
  readonly server: string
  readonly namespace: string | undefined
}

export interface WebhookQuestion {
  readonly uid: string
  readonly body: Buffer
  /** The document that patches apply to: `{"mcp_request": …}` or `{"mcp_response": …}`. */
  readonly document: Buffer
}

/** Rejects with DecisionFailure (reason `oversized`) when the request exceeds the limit. */
export function questionOf(
  uid: string,
  { server, namespace }: WebhookPlace,
  call: WebhookCall,
  response: WebhookResponse | undefined,
): WebhookQuestion {
  const { method, params, caller, origin } = call
  const id = call.id ?? JSON.stringify(uid)
  const shown = params.raw('requestState') ? params.with({ requestState: undefined }) : params.bytes
  const request = Buffer.concat([
    Buffer.from(`"mcp_request":{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":`),
    shown,
    Buffer.from('}'),
  ])
  const answered =
    response &&
    Buffer.concat([
      Buffer.from(`"mcp_response":{"jsonrpc":"2.0","id":${id},"${response.kind}":`),
      response.body,
      Buffer.from('}'),
    ])
  const phase: WebhookPhase = response ? 'response' : 'request'
  const head = {
    version: webhookVersion,
    uid,
    timestamp: new Date().toISOString(),
    principal: principalOf(caller),
  }
  const context = {
    server_name: server,
    backend_server: origin === undefined || origin.backend === '' ? undefined : origin.backend,
    namespace,
    transport: 'streamable-http',
    gatehouse: { phase, original: origin?.original },
  }
  const body = Buffer.concat([
    Buffer.from(`${JSON.stringify(head).slice(0, -1)},`),
    request,
    ...(answered ? [Buffer.from(','), answered] : []),
    Buffer.from(`,"context":${JSON.stringify(context)}}`),
  ])
  if (body.length > maxWebhookBytes)
    throw new DecisionFailure('oversized', `the request has more than ${maxWebhookBytes} bytes`)
  const document = Buffer.concat([Buffer.from('{'), answered ?? request, Buffer.from('}')])
  return { uid, body, document }
}

/** Checks the client's data. Rejects with JsonError for duplicate members, which two parsers could read differently. */
export async function requireOneReading(raw: Buffer): Promise<void> {
  await workOn(raw, canonicalText(raw))
}

function principalOf({ subject, claims }: Caller): Record<string, unknown> {
  const { sub, name, email, groups } = claims
  return {
    sub: typeof sub === 'string' ? sub : subject,
    name: typeof name === 'string' ? name : undefined,
    email: typeof email === 'string' ? email : undefined,
    groups: Array.isArray(groups) ? groups.filter((group) => typeof group === 'string') : undefined,
    claims,
  }
}

/** Returns headers that let a webhook authenticate the sender. */
export function signatureOf(body: Buffer, secret: Secret | undefined): Record<string, string> {
  if (!secret) return {}
  const time = String(Math.floor(Date.now() / 1000))
  const signed = createHmac('sha256', secret.reveal()).update(`${time}.`).update(body).digest('hex')
  return { 'x-toolhive-signature': `sha256=${signed}`, 'x-toolhive-timestamp': time }
}
