/**
 * Reads one JSON-RPC message with its kind, id, method and the raw text of params, result or error.
 *
 * Only the necessary parts are decoded. The id keeps its JSON text, so numbers beyond 2^53 survive. Params, result and
 * error are slices of the message. Batches are rejected, because MCP 2025-06-18 removed them. Member names that differ
 * only in case are rejected in the message and in its params. Some JSON readers ignore case and would use a member that
 * this module has not checked. Optional members that are null are treated as absent. scanMessage removes these members
 * from a client's message. In server messages, large-message.ts repairs and reports optional members that are null.
 * Source: JSON-RPC 2.0; MCP 2025-11-25 and 2026-07-28, basic.
 */
import { isUtf8 } from 'node:buffer'
import { type ErrorCode, type ErrorOptions, GatehouseError } from '../../schemas/index.ts'
import { nullByte, openObject } from './json/bytes.ts'
import { JsonObject } from './json/object.ts'
import { DuplicateMember, JsonBoundError, JsonError } from './json/errors.ts'
import { isBatch } from './json/start.ts'

/** The members of a result that were sent to the client before the rest had arrived. */
export interface PassedMembers {
  readonly names: readonly string[]
  /** Total size of the members' names and values in bytes. */
  readonly bytes: number
}

export type MessageKind = 'request' | 'notification' | 'result' | 'error'

export interface Message {
  readonly kind: MessageKind
  /** The message as received, except for optional members that are null. */
  readonly bytes: Buffer
  /** Raw JSON text of the id (`7`, `"a"`). Undefined for notifications and for errors without an id. */
  readonly id: string | undefined
  /** Method of a request or notification. Empty for responses. */
  readonly method: string
  /** Raw params object of a request or notification. */
  readonly params: Buffer | undefined
  /** Raw result object of a response. */
  readonly result: Buffer | undefined
  /** Raw error object of a response. */
  readonly error: Buffer | undefined
  /**
   * Members that have already been sent to the client. `result` contains the other members, and a small placeholder for
   * each of the sent members.
   */
  readonly passed?: PassedMembers | undefined
}

/** The error for a rejected message. `id` is the raw id for the response, if the id could be read. */
export class MessageError extends GatehouseError {
  readonly id: string | undefined

  constructor(code: ErrorCode, id: string | undefined, options: ErrorOptions = {}) {
    super(code, options)
    this.name = 'MessageError'
    this.id = id
  }
}

/** Returns the error for a server's protocol violation. Clients receive fixed text. The log contains `what`. */
export function protocolError(what: string): GatehouseError {
  return new GatehouseError('BACKEND_PROTOCOL', { cause: new Error(what) })
}

/**
 * Maximum number of values in one member of a client's message. Scanning this number of values takes about 10 ms. The
 * virtual server reads a large message in several turns of the event loop. The proxy scans a large message in one turn.
 * The scans cover the message, its params and their `_meta`.
 */
export const maxClientValues = 250_000

/** A message from a client, with its params. */
export interface ClientMessage {
  readonly message: Message
  readonly params: JsonObject
}

export interface MessageRules {
  /** Maximum number of values in one member. By default, there is no limit. */
  readonly maxValues?: number
  /** If true, removes optional members that are null. */
  readonly dropNulls?: boolean
}

/** The rules for messages from remote clients. */
export const clientRules: MessageRules = { maxValues: maxClientValues, dropNulls: true }

/**
 * Reads a message. Throws MessageError PARSE_ERROR for a body that is not JSON or not UTF-8. Throws BATCH_REFUSED for a
 * batch. Throws INVALID_REQUEST for JSON that is not a JSON-RPC 2.0 message or exceeds a limit such as `maxValues`.
 */
export function scanMessage(body: Buffer, { maxValues, dropNulls }: MessageRules = {}): Message {
  if (body[0] !== openObject && isBatch(body)) throw new MessageError('BATCH_REFUSED', undefined)
  if (!isUtf8(body)) throw new MessageError('PARSE_ERROR', undefined)
  try {
    const object = new JsonObject(body, { ignoreCase: true, maxValues })
    return readMessage(dropNulls && body.includes('null') ? withoutNulls(object) : object)
  } catch (cause) {
    throw messageError(cause)
  }
}

/** Returns a message without the null members that may be removed. */
function withoutNulls(object: JsonObject): JsonObject {
  const isNull = (name: string): boolean => object.raw(name)?.[0] === nullByte
  const nulls = ['params', 'error'].filter(isNull)
  // Drop a null result only if the message has a method or an error. Never drop a request's id, because a request
  // without an id gets no response.
  if (isNull('result') && (object.raw('method') || (object.raw('error') && !isNull('error'))))
    nulls.push('result')
  if (isNull('id') && object.text('method')?.startsWith('notifications/')) nulls.push('id')
  return nulls.length === 0
    ? object
    : object.changed(Object.fromEntries(nulls.map((name) => [name, undefined])))
}

/** Matches the beginning of a string, and an integer. */
const usableIdText = /^(?:"|-?(?:0|[1-9]\d*)$)/
/** Maximum length of a method name. Method names are compared, looked up and included in messages. */
const maxMethodBytes = 1_024

/** Returns a raw id if the id is a string or an integer. */
export function usableId(id: string | undefined): string | undefined {
  return id !== undefined && usableIdText.test(id) ? id : undefined
}

/** Reads a message's members. Throws MessageError INVALID_REQUEST if a member is invalid. */
export function readMessage(object: JsonObject): Message {
  const id = object.raw('id')?.toString()
  const usable = usableId(id)
  if (object.text('jsonrpc') !== '2.0') throw invalid(usable, 'jsonrpc must be "2.0"')
  const rawMethod = object.raw('method')
  if (rawMethod === undefined) return readResponse(object, id, usable)
  if (rawMethod.length > maxMethodBytes) throw invalid(usable, `method has more than ${maxMethodBytes} bytes`)
  const method = object.text('method')
  if (method === undefined || method === '') throw invalid(usable, 'method must be a string')
  if (id !== undefined && usable === undefined) throw invalid(undefined, 'id must be a string or an integer')
  const params = object.raw('params')
  if (params !== undefined && params[0] !== openObject) throw invalid(usable, 'params must be an object')
  if (object.raw('result') ?? object.raw('error')) {
    throw invalid(usable, 'a message must have a method, a result or an error')
  }
  return {
    kind: id === undefined ? 'notification' : 'request',
    bytes: object.bytes,
    id,
    method,
    params,
    result: undefined,
    error: undefined,
  }
}

/** Converts a JSON reading error to a MessageError. Returns any other error unchanged. */
export function messageError(cause: unknown): unknown {
  if (!(cause instanceof JsonError)) return cause
  const why = whyUnread(cause)
  return why === undefined
    ? new MessageError('PARSE_ERROR', undefined, { cause })
    : new MessageError('INVALID_REQUEST', undefined, { detail: `Invalid Request: ${why}`, cause })
}

/** Describes the violation in an object that is valid JSON. Returns undefined for other errors. */
export function whyUnread(cause: unknown): string | undefined {
  if (cause instanceof DuplicateMember) return 'a member occurs twice'
  return cause instanceof JsonBoundError ? cause.bound : undefined
}

function readResponse(object: JsonObject, id: string | undefined, usable: string | undefined): Message {
  const result = object.raw('result')
  const error = object.raw('error')
  if ((result === undefined) === (error === undefined)) {
    throw invalid(usable, 'a message must have a method, a result or an error')
  }
  if (result !== undefined && result[0] !== openObject) throw invalid(usable, 'result must be an object')
  if (error !== undefined && error[0] !== openObject) throw invalid(usable, 'error must be an object')
  if (result !== undefined && usable === undefined) throw invalid(undefined, 'a result requires an id')
  return {
    kind: result === undefined ? 'error' : 'result',
    bytes: object.bytes,
    id: id === 'null' ? undefined : usable,
    method: '',
    params: undefined,
    result,
    error,
  }
}

export function invalid(id: string | undefined, detail: string): MessageError {
  return new MessageError('INVALID_REQUEST', id, { detail: `Invalid Request: ${detail}` })
}
