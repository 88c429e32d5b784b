/**
 * Reads a message of a server, which may be large: a result in as many turns of the event loop as it takes. Everything else
 * in a message is read further on at once, and is held to what can be read at once.
 */
import { JsonObject } from './json/object.ts'
import { JsonError } from './json/scan.ts'
import { bytesOf, checkUtf8, inTurns, largeBytes, readMembers, type Work } from './json/turns.ts'
import { invalid, type Message, MessageError, readMessage, readObject, scanMessage } from './message.ts'

const mib = 1024 * 1024
/** As in messages of clients. */
const maxParamsBytes = 8 * mib
const maxErrorBytes = mib
const maxMetaBytes = mib

/** As scanMessage; of a large message the result comes later. */
export function readServerMessage(body: Buffer | string): Message | Promise<Message> {
  if (body.length < largeBytes) return scanMessage(typeof body === 'string' ? Buffer.from(body) : body)
  return inTurns(typeof body === 'string' ? readText(body) : read(body))
}

function* readText(text: string): Work<Message> {
  return yield* read(yield* bytesOf(text))
}

function* read(body: Buffer): Work<Message> {
  if (!(yield* checkUtf8(body))) throw new MessageError('PARSE_ERROR', undefined)
  yield* members(body)
  const message = readMessage(readObject(body))
  const { id, params, error, result } = message
  if (params && params.length > maxParamsBytes)
    throw invalid(id, `params have more than ${maxParamsBytes} bytes`)
  if (error && error.length > maxErrorBytes)
    throw invalid(id, `an error has more than ${maxErrorBytes} bytes`)
  if (params) yield* members(params)
  if (!result) return message
  yield* members(result)
  const meta = new JsonObject(result).raw('_meta')
  if (meta && meta.length > maxMetaBytes)
    throw invalid(id, `_meta of a result has more than ${maxMetaBytes} bytes`)
  return message
}

function* members(bytes: Buffer): Work<void> {
  try {
    yield* readMembers(bytes)
  } catch (cause) {
    if (cause instanceof JsonError) throw new MessageError('PARSE_ERROR', undefined, { cause })
    throw cause
  }
}
