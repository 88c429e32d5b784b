/**
 * Reads a message of a server, which may be large: a result in as many turns of the event loop as it takes. Everything else
 * in a message is read further on at once, and is held to what can be read at once.
 */
import { JsonError } from './json/scan.ts'
import { checkUtf8, inTurns, largeBytes, membersOf, readMembers, type TurnWork } from './json/turns.ts'
import { blankLineEnds } from './sse.ts'
import { invalid, type Message, MessageError, readMessage, readObject, scanMessage } from './message.ts'

const mib = 1024 * 1024
/** As in messages of clients. */
const maxParamsBytes = 8 * mib
const maxErrorBytes = mib
const maxMetaBytes = mib
const lineSlice = mib

/** As scanMessage; of a large message the result comes later, without line ends. */
export function readServerMessage(body: Buffer | Promise<Buffer>): Message | Promise<Message> {
  if (body instanceof Promise) return body.then(readServerMessage)
  return body.length < largeBytes ? scanMessage(body) : inTurns(read(body))
}

function* read(body: Buffer): TurnWork<Message> {
  if (!(yield* checkUtf8(body))) throw new MessageError('PARSE_ERROR', undefined)
  yield* members(body)
  const message = readMessage(readObject(body))
  const { id, params, error, result } = message
  if (params && params.length > maxParamsBytes)
    throw invalid(id, `params have more than ${maxParamsBytes} bytes`)
  if (error && error.length > maxErrorBytes)
    throw invalid(id, `an error has more than ${maxErrorBytes} bytes`)
  if (params) yield* members(params)
  if (result) yield* members(result)
  yield* putOnOneLine(body)
  if (!result) return message
  if (membersOf(result).members.some(({ name, from, to }) => name === '_meta' && to - from > maxMetaBytes))
    throw invalid(id, `_meta of a result has more than ${maxMetaBytes} bytes`)
  return message
}

/** Event streams want it so, and a writer of them has no turns for it. */
function* putOnOneLine(json: Buffer): TurnWork<void> {
  for (let from = 0; from < json.length; from += lineSlice) {
    const slice = json.subarray(from, from + lineSlice)
    if (slice.includes('\n') || slice.includes('\r')) blankLineEnds(slice)
    yield
  }
}

function* members(bytes: Buffer): TurnWork<void> {
  try {
    yield* readMembers(bytes)
  } catch (cause) {
    if (cause instanceof JsonError) throw new MessageError('PARSE_ERROR', undefined, { cause })
    throw cause
  }
}
