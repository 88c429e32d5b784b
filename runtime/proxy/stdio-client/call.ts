/**
 * One message from the client to the server, and the interface between transports and the bridge.
 *
 * Determines a message's protocol era and the headers that repeat parts of its body. A stateless request also contains
 * its revision, method, name and mirrored arguments in headers; a session-era request does not.
 * Source: MCP 2025-11-25 and 2026-07-28, transports.
 */
import { ModuleError, own } from '../../../schemas/index.ts'
import {
  type Era,
  eraOf,
  headerName,
  JsonObject,
  type Message,
  metaKey,
  metaOf,
  namedMethods,
  paramsOf,
  rawErrorMessage,
  reservedMetaPrefix,
  rpcCode,
  statelessVersion,
  writeHeaderValue,
  type MirroredTools,
} from '../../mcp/index.ts'

export interface BridgedCall {
  readonly message: Message
  readonly era: Era
  /** Header lines (name, value, …) in addition to those sent with every request. */
  readonly headers: readonly string[]
  /** Ends the call early. */
  readonly signal: AbortSignal
  /** Receives every message for this call, including its response. Resolves when the next message can be accepted. */
  readonly onMessage: (message: Message) => Promise<void>
}

/** Thrown when the server no longer recognizes the session. The call was not processed. */
export class BridgedSessionLost extends ModuleError {}

/** Callbacks that a transport invokes for everything except responses to calls. */
export interface TransportEvents {
  /** Receives unsolicited messages from the server. */
  readonly onMessage: (message: Message) => Promise<void>
  /** Called when the session is lost while no request is in flight. */
  readonly onLost: () => void
}

export interface BridgeTransport {
  /**
   * Sends a message. Resolves when a request has been answered, or any other message has been accepted. Rejects with
   * BridgedSessionLost, GatehouseError, or the reason of the call's signal.
   */
  deliver(call: BridgedCall): Promise<void>
  /** Opens the stream for unsolicited messages from the server, if supported. */
  listen(): void
  /** Drops a lost session without notifying the server. */
  forget(): void
  /** Ends the session at the server, if the server is reachable, and closes all streams. */
  close(): Promise<void>
}

/**
 * Returns a message's protocol era. Notifications do not declare their era, so they use the era of the last request,
 * `before`. Throws MessageError for ambiguous params.
 */
export function eraOfMessage(message: Message, before: Era): Era {
  if (message.kind === 'result' || message.kind === 'error') return 'session'
  if (message.kind === 'notification')
    return message.method === 'notifications/initialized' ? 'session' : before
  if (message.params?.includes(reservedMetaPrefix) !== true) return 'session'
  return eraOf(message, paramsOf(message), undefined)
}

/** Returns the header lines that repeat parts of a stateless message's body; none in the session era. */
export function mirroredHeaders(message: Message, era: Era, tools: MirroredTools): readonly string[] {
  if (era === 'session') return []
  const params = paramsOf(message)
  const version = metaOf(message, params)?.text(metaKey.protocolVersion) ?? statelessVersion
  return [
    headerName.protocolVersion,
    version,
    headerName.method,
    writeHeaderValue(message.method),
    ...nameHeader(message.method, params),
    ...(message.method === 'tools/call' ? tools.headersFor(params) : []),
  ]
}

function nameHeader(method: string, params: JsonObject): readonly string[] {
  const member = own(namedMethods, method)
  const name = member === undefined ? undefined : params.text(member)
  return name === undefined ? [] : [headerName.name, writeHeaderValue(name)]
}

/**
 * Returns a response with the id of its request. Some servers omit the id from errors about requests that they did not
 * read; other servers return it as a different JSON type.
 */
export function withId(message: Message, id: string | undefined): Message {
  if (id === undefined || message.method !== '' || message.id === id) return message
  if (message.id === undefined)
    return message.error ? { ...message, id, bytes: rawErrorMessage(id, message.error) } : message
  if (otherIdType(message.id) !== id) return message
  return { ...message, id, bytes: new JsonObject(message.bytes).with({ id }) }
}

/** Returns the raw id as the other JSON type: `"1"` for `1`, and `1` for `"1"`. */
export function otherIdType(id: string): string | undefined {
  if (/^(?:0|[1-9]\d{0,15})$/.test(id)) return `"${id}"`
  return /^"(0|[1-9]\d{0,15})"$/.exec(id)?.[1]
}

/** True for the response to the request with this raw id. */
export function isResponseTo(message: Message, id: string | undefined): boolean {
  return id !== undefined && message.method === '' && message.id === id
}

/** True when the server rejected headers that do not match the body. */
export function isHeaderMismatch({ error }: Message): boolean {
  return error !== undefined && new JsonObject(error).value('code') === rpcCode.headerMismatch
}
