/**
 * Recognizes a server that does not know a session any more, and decides what may be sent again in the next one.
 *
 * HTTP 404 is the rule. Many servers follow an early example instead and answer 400 with a text about the session, as a
 * JSON-RPC error (-32000, -32600) or plain; releases of one public SDK answered 401 without a challenge. A server that
 * refuses a session has not carried the request out. A 404 or 410 whose body is the JSON-RPC response to the request itself
 * is no such proof: the server has looked at the request, and may have carried it out.
 * Source: MCP 2025-11-25, transports, "Session Management"; behaviour of public servers and SDKs.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { GatehouseError } from '../../schemas/index.ts'
import { JsonObject } from './json/object.ts'
import { type Message, scanMessage } from './message.ts'

/** What a status says about the session that the request named: gone, not gone, or to be decided by the body. */
export type SessionVerdict = 'lost' | 'alive' | 'read'

/** What a refusal says about the session; `answered`: it is gone, and the body is the response to the request itself. */
export type SessionRefusal = 'lost' | 'answered' | 'alive'

/** No refusal of a session is longer than this; a body beyond it does not have to be read. */
export const maxRefusalBytes: number = 64 * 1024

/** Set by servers of this program. */
const sessionUnknownHeader = 'gatehouse-session-unknown'
const notFoundCode = -32001
/** Codes under which servers word the refusal of a session. -32602 and -32601 concern the request itself. */
const refusalCodes: ReadonlySet<unknown> = new Set([notFoundCode, -32000, -32600])
const sessionText = /\bsession\b|\bmcp-session-id\b|not initialized/i
const unauthorizedText = /session not found/i

interface RefusalHead {
  readonly headers: IncomingHttpHeaders
  /** Raw JSON of the id of the refused request; undefined when it was no request. */
  readonly requestId?: string | undefined
}

/** Decides by the head of a response. */
export function sessionVerdict(status: number, { headers, requestId }: RefusalHead): SessionVerdict {
  if (isGone(status))
    return requestId === undefined || headers[sessionUnknownHeader] !== undefined ? 'lost' : 'read'
  if (status === 400) return 'read'
  return status === 401 && headers['www-authenticate'] === undefined ? 'read' : 'alive'
}

/** Decides by head and body whether the server has lost the session that the request named. */
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
 * True when a refused request may be sent again in the next session. `isRepeatable`: carrying it out twice does no harm
 * (a read, or a tool that is read-only or idempotent).
 */
export function mayResend(
  refusal: SessionRefusal,
  { isRepeatable }: { readonly isRepeatable: boolean },
): boolean {
  return refusal === 'lost' || (refusal === 'answered' && isRepeatable)
}

/**
 * Headers of an error response: a refused session is marked, so that a Gatehouse in front of this one can tell it from the
 * response to a request that was carried out. Both have the id of the request.
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
 * True when a message that met the loss of its session means the same in the next one. A response belongs to a question
 * of the lost session, a cancellation to a request of it, and the next session is confirmed when it is opened.
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
