/**
 * Reads a message from a server. The message may be large. A large result is read over as many turns of the event loop
 * as necessary. All other members are read in one turn, so the size of these members is limited.
 */
import { readMembers, scannedMembers } from './json/read.ts'
import { JsonObject } from './json/object.ts'
import { JsonScanner } from './json/scanner.ts'
import { atOnce, checkUtf8, inTurns, joined, largeBytes, type TurnWork } from './json/turns.ts'
import { type EnvelopeRepair, type OnRepair, repairsOf, unwrapMessage } from './json/envelope-repair.ts'
import { blankLineEnds } from './sse.ts'
import {
  invalid,
  type Message,
  MessageError,
  messageError,
  readMessage,
  scanMessage,
  usableId,
} from './message.ts'

const mib = 1024 * 1024
/** Maximum size of params, as for messages from clients. */
const maxParamsBytes = 8 * mib
const maxErrorBytes = mib
const maxMetaBytes = mib
const lineSlice = mib

/**
 * Reads a message from a server. Throws the same MessageError as scanMessage if the message cannot be repaired. Calls
 * `onRepair` with each repair. For a large message, returns a promise, and removes the line breaks.
 */
export function readServerMessage(
  body: Buffer | Promise<Buffer>,
  onRepair: OnRepair = () => {},
): Message | Promise<Message> {
  if (body instanceof Promise) return body.then((read) => readServerMessage(read, onRepair))
  return body.length < largeBytes ? readSmall(body, onRepair) : inTurns(readLarge(body, onRepair))
}

function readSmall(body: Buffer, onRepair: OnRepair): Message {
  try {
    return scanMessage(body)
  } catch (error) {
    // Scan the message again only after an error, because almost all messages are well-formed.
    return atOnce(readRepaired(body, onRepair, error))
  }
}

/** Number of bytes that is enough for the members before a result. */
const headBytes = 4_096

/**
 * Returns the raw id of an unreadable response. Returns undefined unless the id and `"jsonrpc":"2.0"` precede the
 * result or error, because a log line may also have an id and a result.
 */
export function responseIdIn(body: Buffer): string | undefined {
  const scanner = new JsonScanner({ watched: 1 })
  scanner.feed(body.subarray(0, headBytes))
  let id: string | undefined
  let hasVersion = false
  let from = 0
  try {
    for (let stop = scanner.advance(); stop !== 'chunk'; stop = scanner.advance()) {
      const { at, name, depth } = scanner
      if (stop === 'name' && (name === 'result' || name === 'error'))
        return hasVersion ? usableId(id) : undefined
      if (stop === 'name' && name === 'method') return undefined
      if (stop === 'value') from = at
      else if (stop === 'end' && depth === 1 && name === 'id') id = body.toString('utf8', from, at)
      else if (stop === 'end' && depth === 1 && name === 'jsonrpc')
        hasVersion = body.toString('utf8', from, at) === '"2.0"'
    }
  } catch {
    // A line with an unreadable beginning cannot be attributed to a request.
  }
  return undefined
}

function* readLarge(body: Buffer, onRepair: OnRepair): TurnWork<Message> {
  const message = yield* readEnvelope(body, onRepair)
  const { id, params, error, result } = message
  if (params && params.length > maxParamsBytes)
    throw invalid(id, `params have more than ${maxParamsBytes} bytes`)
  if (error && error.length > maxErrorBytes)
    throw invalid(id, `an error has more than ${maxErrorBytes} bytes`)
  if (params) yield* members(params)
  if (result) yield* members(result)
  yield* putOnOneLine(message.bytes)
  if (!result) return message
  if (scannedMembers(result).some(({ name, from, to }) => name === '_meta' && to - from > maxMetaBytes))
    throw invalid(id, `_meta of a result has more than ${maxMetaBytes} bytes`)
  return message
}

function* readEnvelope(body: Buffer, onRepair: OnRepair): TurnWork<Message> {
  if (!(yield* checkUtf8(body))) throw new MessageError('PARSE_ERROR', undefined)
  try {
    return readMessage(yield* envelope(body))
  } catch (error) {
    return yield* readRepaired(body, onRepair, error)
  }
}

/** Reads a message and repairs it. Throws `cause` if no repair applies. */
function* readRepaired(body: Buffer, onRepair: OnRepair, cause: unknown): TurnWork<Message> {
  const repairs = new Set<EnvelopeRepair>()
  const note = (repair: EnvelopeRepair): void => void repairs.add(repair)
  const json = unwrapMessage(body, note)
  if (!(yield* checkUtf8(json))) throw cause
  const object = yield* envelope(json)
  const changes = repairsOf(object, note)
  if (repairs.size === 0) throw cause
  const message = readMessage(yield* envelope(yield* joined(object.parts(changes))))
  for (const repair of repairs) onRepair(repair)
  return message
}

/**
 * Removes line breaks. Event streams require a single line, and the writers of event streams cannot yield to the event
 * loop.
 */
function* putOnOneLine(json: Buffer): TurnWork<void> {
  for (let from = 0; from < json.length; from += lineSlice) {
    const slice = json.subarray(from, from + lineSlice)
    if (slice.includes('\n') || slice.includes('\r')) blankLineEnds(slice)
    yield
  }
}

function* envelope(bytes: Buffer): TurnWork<JsonObject> {
  yield* members(bytes)
  try {
    return new JsonObject(bytes, { ignoreCase: true })
  } catch (cause) {
    throw messageError(cause)
  }
}

function* members(bytes: Buffer): TurnWork<void> {
  try {
    yield* readMembers(bytes)
  } catch (cause) {
    throw messageError(cause)
  }
}
