/**
 * Recognises a server that does not know a session any more, and says what may be sent again in the next one.
 *
 * HTTP 404 is the rule. Many servers follow an early example instead and answer 400 with a text about the session, as a
 * JSON-RPC error (-32000, -32600) or plain; releases of one public SDK answered 401 without a challenge. A server that
 * refuses a session has not carried the request out.
 * Source: MCP 2025-11-25, transports, "Session Management"; behaviour of public servers and SDKs.
 */
import { JsonObject } from './json/object.ts'
import { type Message, scanMessage } from './message.ts'

/** What a status says about the session that the request named: gone, not gone, or to be decided by the body. */
export type SessionVerdict = 'lost' | 'alive' | 'read'

/** No refusal of a session is longer than this; a body beyond it does not have to be read. */
export const maxRefusalBytes: number = 64 * 1024

const notFoundCode = -32001
/** Codes under which servers word the refusal of a session. -32602 and -32601 concern the request itself. */
const refusalCodes: ReadonlySet<unknown> = new Set([notFoundCode, -32000, -32600])
const sessionText = /\bsession\b|\bmcp-session-id\b|not initialized/i
const unauthorizedText = /session not found/i

/** Decides by the head of a response. `challenged`: the response has a `WWW-Authenticate` header. */
export function sessionVerdict(
  status: number,
  { challenged }: { readonly challenged: boolean },
): SessionVerdict {
  if (status === 404 || status === 410) return 'lost'
  if (status === 400) return 'read'
  return status === 401 && !challenged ? 'read' : 'alive'
}

/** Decides by head and body whether the server has lost the session that the request named. */
export function isSessionLost(
  status: number,
  { challenged }: { readonly challenged: boolean },
  body: Buffer,
): boolean {
  const verdict = sessionVerdict(status, { challenged })
  if (verdict !== 'read') return verdict === 'lost'
  if (body.length > maxRefusalBytes) return false
  const error = errorIn(body)
  if (error && !refusalCodes.has(error.value('code'))) return false
  if (error?.value('code') === notFoundCode) return true
  const text = error ? (error.text('message') ?? '') : body.toString()
  return (status === 401 ? unauthorizedText : sessionText).test(text)
}

function errorIn(body: Buffer): JsonObject | undefined {
  try {
    const { error } = scanMessage(body)
    return error ? new JsonObject(error) : undefined
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
