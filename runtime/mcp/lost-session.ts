/**
 * Detects that a server has lost a session, and decides which requests may be sent again in the next session.
 *
 * The specification requires HTTP 404. Many servers follow an early example instead, and return 400 with text about the
 * session. The text is in a JSON-RPC error (-32000, -32600) or in a plain body. Some releases of one public SDK
 * returned 401 without a challenge. A server that rejects a session has not executed the request. A 404 or 410 proves
 * nothing if the body is the JSON-RPC response to the request itself. Such a server has processed the request, and may
 * have executed it.
 * Source: MCP 2025-11-25, transports, "Session Management"; behavior of public servers and SDKs.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { GatehouseError } from '../../schemas/index.ts'
import { JsonObject } from './json/object.ts'
import { type Message, scanMessage } from './message.ts'

/** Result of the status check. The session is lost, the session is alive, or the body must be read to decide. */
export type SessionVerdict = 'lost' | 'alive' | 'read'

/**
 * State of the session after a rejection. `answered` means that the session is lost and that the body is the response
 * to the request itself.
 */
export type SessionRefusal = 'lost' | 'answered' | 'alive'

/** Maximum size of a session rejection. A larger body is not read. */
export const maxRefusalBytes: number = 64 * 1024

/** Response header with which Gatehouse servers mark an unknown session. */
const sessionUnknownHeader = 'gatehouse-session-unknown'
const notFoundCode = -32001
/** Codes of errors with which servers reject a session. -32602 and -32601 concern the request itself. */
const refusalCodes: ReadonlySet<unknown> = new Set([notFoundCode, -32000, -32600])
const sessionText = /\bsession\b|\bmcp-session-id\b|not initialized/i
const unauthorizedText = /session not found/i

interface RefusalHead {
  readonly headers: IncomingHttpHeaders
  /** Raw JSON id of the rejected request. Undefined if the message was not a request. */
  readonly requestId?: string | undefined
}

/** Decides from a response's status and headers whether the session is lost. */
export function sessionVerdict(status: number, { headers, requestId }: RefusalHead): SessionVerdict {
  if (isGone(status))
    return requestId === undefined || headers[sessionUnknownHeader] !== undefined ? 'lost' : 'read'
  if (status === 400) return 'read'
  return status === 401 && headers['www-authenticate'] === undefined ? 'read' : 'alive'
}

/** Decides from the status, headers and body whether the server has lost the session that the request specifies. */
export function sessionRefusal(status: number, head: RefusalHead, body: Buffer): SessionRefusal {
  const verdict = sessionVerdict(status, head)
  if (verdict !== 'read') return verdict
  if (body.length > maxRefusalBytes) return isGone(status) ? 'answered' : 'alive'
  const message = messageIn(body)
  if (isGone(status)) return message?.id !== undefined && message.id === head.requestId ? 'answered' : 'lost'
  const error = message?.error && new JsonObject(message.error)
  if (error && !refusalCodes.has(error.value('code'))) return 'alive'
  if (error?.value('code') === notFoundCode) return 'lost'
  const text = error ? (error.text('message') ?? '') : body.toString()
  return (status === 401 ? unauthorizedText : sessionText).test(text) ? 'lost' : 'alive'
}

/**
 * True if a rejected request may be sent again in the next session. `isRepeatable` means that a second execution is
 * harmless. The request is then a read, or calls a tool that is read-only or idempotent.
 */
export function mayResend(
  refusal: SessionRefusal,
  { isRepeatable }: { readonly isRepeatable: boolean },
): boolean {
  return refusal === 'lost' || (refusal === 'answered' && isRepeatable)
}

/**
 * Returns the headers that mark an error response as the rejection of a session. A Gatehouse instance in front of this
 * server can then distinguish the rejection from the response to an executed request. Both responses contain the
 * request's id.
 */
export function refusalHeaders(error: GatehouseError): Readonly<Record<string, string>> {
  return error.code === 'SESSION_NOT_FOUND' ? { [sessionUnknownHeader]: 'true' } : {}
}

function isGone(status: number): boolean {
  return status === 404 || status === 410
}

function messageIn(body: Buffer): Message | undefined {
  try {
    return scanMessage(body)
  } catch {
    return undefined
  }
}

/**
 * True if a message to a lost session has the same meaning in the next session. A response, a cancellation or a
 * progress notification refers to a request in the lost session. The next session sends its own
 * `notifications/initialized`.
 */
export function mayEnterNextSession({ kind, method }: Message): boolean {
  if (kind === 'request') return true
  return (
    kind === 'notification' &&
    method !== 'notifications/initialized' &&
    method !== 'notifications/cancelled' &&
    method !== 'notifications/progress'
  )
}
