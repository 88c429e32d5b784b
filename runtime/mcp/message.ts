/**
 * Reads one JSON-RPC message: kind, id, method and the raw text of params, result or error.
 *
 * Decodes only what is needed: the id keeps its JSON text (numbers beyond 2^53 survive), and params, result and error
 * are slices of the message. Batches are rejected (removed in MCP 2025-06-18). Member names that differ only in case
 * are rejected in the message and in its params: some JSON readers ignore the case of names, and would act on another
 * member than the one that was checked here. Optional members that are null are treated as absent: scanClientMessage
 * removes them, and the reader of server messages repairs and reports them (large-message.ts).
 * Source: JSON-RPC 2.0; MCP 2025-11-25 and 2026-07-28, basic.
 */
import { isUtf8 } from 'node:buffer'
import { type ErrorCode, type ErrorOptions, GatehouseError } from '../../schemas/index.ts'
import { JsonObject } from './json/object.ts'
import { DuplicateMember, JsonError, maxMembers, TooManyMembers, TooManyValues } from './json/errors.ts'
import { isBatch } from './json/start.ts'

/** Members of a result that were sent to the client while the result was still arriving. */
export interface PassedMembers {
  readonly names: readonly string[]
  /** Bytes of their names and values. */
  readonly bytes: number
}

export type MessageKind = 'request' | 'notification' | 'result' | 'error'

export interface Message {
  readonly kind: MessageKind
  /** The whole message as received, without optional members that are null. */
  readonly bytes: Buffer
  /** Raw JSON text of the id (`7`, `"a"`); undefined for notifications and for errors without one. */
  readonly id: string | undefined
  /** Empty for responses. */
  readonly method: string
  /** Raw params object of a request or notification. */
  readonly params: Buffer | undefined
  /** Raw result object of a response. */
  readonly result: Buffer | undefined
  /** Raw error object of a response. */
  readonly error: Buffer | undefined
  /** Members that the client already has. `result` contains the other members, and a small stand-in for each of these. */
  readonly passed?: PassedMembers | undefined
}

/** An error in a message. `id` is the raw id where one could be read, so that the response can carry it. */
export class MessageError extends GatehouseError {
  readonly id: string | undefined

  constructor(code: ErrorCode, id: string | undefined, options: ErrorOptions = {}) {
    super(code, options)
    this.name = 'MessageError'
    this.id = id
  }
}

/** The error for a server that violates the protocol. Clients get the fixed text, the log gets `what`. */
export function protocolError(what: string): GatehouseError {
  return new GatehouseError('BACKEND_PROTOCOL', { cause: new Error(what) })
}

/**
 * How many values one member of a client's message may hold. The scan of a message happens in one turn of the event loop,
 * and on its way a message is scanned up to three times: so many values take some 10 ms each time.
 */
export const maxClientValues = 250_000

/**
 * Reads a message of a client. Throws like scanMessage, and throws INVALID_REQUEST when a member contains more than
 * `maxValues` values.
 */
export function scanClientMessage(body: Buffer, maxValues = maxClientValues): Message {
  requireSingleUtf8(body)
  const object = readObject(body, maxValues)
  const nulls = nullMembers(object)
  if (nulls.length === 0) return readMessage(object)
  const rest = object.with(Object.fromEntries(nulls.map((name) => [name, undefined])))
  return readMessage(readObject(rest, maxValues))
}

const nullByte = 0x6e

/** Returns the names of optional members that are null. The text is valid JSON, so the first byte identifies null. */
function nullMembers(object: JsonObject): readonly string[] {
  const method = object.text('method')
  const isNull = (name: string): boolean => object.raw(name)?.[0] === nullByte
  const nulls = ['params', 'error'].filter(isNull)
  // Drop a null result only when the message has a method or an error. Never drop a request's id: it would get no
  // response.
  if (isNull('result') && (method !== undefined || (object.raw('error') && !isNull('error'))))
    nulls.push('result')
  if (isNull('id') && method?.startsWith('notifications/')) nulls.push('id')
  return nulls
}

function requireSingleUtf8(body: Buffer): void {
  if (isBatch(body)) throw new MessageError('BATCH_REFUSED', undefined)
  if (!isUtf8(body)) throw new MessageError('PARSE_ERROR', undefined)
}

const integerText = /^-?(?:0|[1-9]\d*)$/
/** It is compared, looked up and repeated in messages. */
const maxMethodBytes = 1_024

/**
 * Reads a message. Throws MessageError: PARSE_ERROR (not JSON, not UTF-8), BATCH_REFUSED, INVALID_REQUEST (JSON, but
 * not a JSON-RPC 2.0 message).
 */
export function scanMessage(body: Buffer): Message {
  requireSingleUtf8(body)
  return readMessage(readObject(body))
}

/** What scanMessage does once the text is known to be UTF-8. */
export function readMessage(object: JsonObject): Message {
  const rawId = object.raw('id')
  const id = rawId === undefined ? undefined : rawId.toString()
  const usable = id !== undefined && (id.startsWith('"') || integerText.test(id)) ? id : undefined
  if (object.text('jsonrpc') !== '2.0') throw invalid(usable, 'jsonrpc must be "2.0"')
  const method = object.raw('method')
  if (method !== undefined) return readCall(object, id, usable)
  return readResponse(object, id, usable)
}

/** Throws MessageError. */
export function readObject(body: Buffer, maxValues = Infinity): JsonObject {
  try {
    return new JsonObject(body, { ignoreCase: true, maxValues })
  } catch (cause) {
    const why = whyUnread(cause)
    if (why !== undefined)
      throw new MessageError('INVALID_REQUEST', undefined, { detail: `Invalid Request: ${why}`, cause })
    if (cause instanceof JsonError) throw new MessageError('PARSE_ERROR', undefined, { cause })
    throw cause
  }
}

/** What is wrong with an object that is valid JSON. */
export function whyUnread(cause: unknown): string | undefined {
  if (cause instanceof DuplicateMember) return 'a member occurs twice'
  if (cause instanceof TooManyValues) return `a member has more than ${maxClientValues} values`
  return cause instanceof TooManyMembers ? `an object has more than ${maxMembers} members` : undefined
}

function readCall(object: JsonObject, id: string | undefined, usable: string | undefined): Message {
  if ((object.raw('method')?.length ?? 0) > maxMethodBytes)
    throw invalid(usable, `method has more than ${maxMethodBytes} bytes`)
  const method = object.text('method')
  if (method === undefined || method === '') throw invalid(usable, 'method must be a string')
  if (id !== undefined && usable === undefined) throw invalid(undefined, 'id must be a string or an integer')
  const params = object.raw('params')
  if (params !== undefined && params[0] !== 0x7b) throw invalid(usable, 'params must be an object')
  if (object.raw('result') ?? object.raw('error')) {
    throw invalid(usable, 'a message has a method, a result or an error')
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

function readResponse(object: JsonObject, id: string | undefined, usable: string | undefined): Message {
  const result = object.raw('result')
  const error = object.raw('error')
  if ((result === undefined) === (error === undefined)) {
    throw invalid(usable, 'a message has a method, a result or an error')
  }
  if (result !== undefined && result[0] !== 0x7b) throw invalid(usable, 'result must be an object')
  if (error !== undefined && error[0] !== 0x7b) throw invalid(usable, 'error must be an object')
  if (result !== undefined && usable === undefined) throw invalid(undefined, 'a result needs an id')
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
