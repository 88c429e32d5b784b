/**
 * Reads one JSON-RPC message: kind, id, method and the raw text of params, result or error.
 *
 * Decodes only what is needed: the id keeps its JSON text (numbers beyond 2^53 survive), and params, result and error
 * are slices of the message. Batches are rejected (removed in MCP 2025-06-18). Member names that differ only in case
 * are rejected in the message and in its params. Some JSON readers ignore case and would use a different member than
 * the one that was checked here. Optional members that are null are treated as absent. scanMessage removes them from a
 * client's message; the reader of server messages repairs and reports them (large-message.ts).
 * Source: JSON-RPC 2.0; MCP 2025-11-25 and 2026-07-28, basic.
 */
import { isUtf8 } from 'node:buffer'
import { type ErrorCode, type ErrorOptions, GatehouseError } from '../../schemas/index.ts'
import { nullByte, openObject } from './json/bytes.ts'
import { JsonObject } from './json/object.ts'
import { DuplicateMember, JsonBoundError, JsonError } from './json/errors.ts'
import { readMembers } from './json/read.ts'
import { isBatch } from './json/start.ts'
import { atOnce, type TurnWork } from './json/turns.ts'

/** The members of a result that were sent to the client while the rest was still arriving. */
export interface PassedMembers {
  readonly names: readonly string[]
  /** Total size of their names and values in bytes. */
  readonly bytes: number
}

export type MessageKind = 'request' | 'notification' | 'result' | 'error'

export interface Message {
  readonly kind: MessageKind
  /** The message as received, without optional members that are null. */
  readonly bytes: Buffer
  /** Raw JSON text of the id (`7`, `"a"`); undefined for notifications and for errors that have no id. */
  readonly id: string | undefined
  /** Empty for responses. */
  readonly method: string
  /** Raw params object of a request or notification. */
  readonly params: Buffer | undefined
  /** Raw result object of a response. */
  readonly result: Buffer | undefined
  /** Raw error object of a response. */
  readonly error: Buffer | undefined
  /**
   * Members that were already sent to the client. `result` contains the other members and a small placeholder for each
   * of these.
   */
  readonly passed?: PassedMembers | undefined
}

/** An error in a message. `id` is the raw id for the response, if the id could be read. */
export class MessageError extends GatehouseError {
  readonly id: string | undefined

  constructor(code: ErrorCode, id: string | undefined, options: ErrorOptions = {}) {
    super(code, options)
    this.name = 'MessageError'
    this.id = id
  }
}

/** Returns the error for a server's protocol violation. Clients receive a fixed text; the log contains `what`. */
export function protocolError(what: string): GatehouseError {
  return new GatehouseError('BACKEND_PROTOCOL', { cause: new Error(what) })
}

/**
 * Maximum number of values in one member of a client's message. Scanning this many values takes about 10 ms. The
 * virtual server reads a large message in several turns of the event loop. The proxy scans it in one turn, up to three
 * times: the message, its params and their `_meta`.
 */
export const maxClientValues = 250_000

export interface MessageRules {
  /** Maximum number of values in one member. Default: no limit. */
  readonly maxValues?: number
  /** If true, removes optional members that are null. */
  readonly dropNulls?: boolean
}

/** The rules for messages from remote clients. */
export const clientRules: MessageRules = { maxValues: maxClientValues, dropNulls: true }

/**
 * Reads a message. Throws MessageError: PARSE_ERROR (not JSON or not UTF-8), BATCH_REFUSED, or INVALID_REQUEST (JSON
 * that is not a JSON-RPC 2.0 message or exceeds a limit such as `maxValues`).
 */
export function scanMessage(body: Buffer, rules?: MessageRules): Message {
  return atOnce(scanInTurns(body, rules))
}

/** Like `scanMessage`, but in slices. */
export function* scanInTurns(body: Buffer, { maxValues, dropNulls }: MessageRules = {}): TurnWork<Message> {
  if (body[0] !== openObject && isBatch(body)) throw new MessageError('BATCH_REFUSED', undefined)
  if (!isUtf8(body)) throw new MessageError('PARSE_ERROR', undefined)
  try {
    yield* readMembers(body, maxValues)
    const object = new JsonObject(body, { ignoreCase: true, maxValues })
    const nulls = dropNulls ? removableNulls(object) : []
    if (nulls.length === 0) return readMessage(object)
    const rest = object.with(Object.fromEntries(nulls.map((name) => [name, undefined])))
    yield* readMembers(rest)
    return readMessage(new JsonObject(rest, { ignoreCase: true }))
  } catch (cause) {
    throw messageError(cause)
  }
}

/** Returns the names of null members that may be removed. */
function removableNulls(object: JsonObject): string[] {
  const isNull = (name: string): boolean => object.raw(name)?.[0] === nullByte
  const nulls = ['params', 'error'].filter(isNull)
  // Drop a null result only if the message has a method or an error. Never drop a request's id, because the request
  // would then get no response.
  if (isNull('result') && (object.raw('method') || (object.raw('error') && !isNull('error'))))
    nulls.push('result')
  if (isNull('id') && object.text('method')?.startsWith('notifications/')) nulls.push('id')
  return nulls
}

const integerText = /^-?(?:0|[1-9]\d*)$/
/** Method names are compared, looked up and included in messages. */
const maxMethodBytes = 1_024

/** Returns a raw id if it is a string or an integer. */
export function usableId(id: string | undefined): string | undefined {
  return id !== undefined && (id.startsWith('"') || integerText.test(id)) ? id : undefined
}

/** Reads a message's members. Throws MessageError INVALID_REQUEST. */
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

/** Converts a JSON reading error to a MessageError; returns any other error unchanged. */
export function messageError(cause: unknown): unknown {
  if (!(cause instanceof JsonError)) return cause
  const why = whyUnread(cause)
  return why === undefined
    ? new MessageError('PARSE_ERROR', undefined, { cause })
    : new MessageError('INVALID_REQUEST', undefined, { detail: `Invalid Request: ${why}`, cause })
}

/** Returns what is wrong with an object that is valid JSON; undefined for other errors. */
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
