import {
  changedList,
  JsonObject,
  type Message,
  readServerMessage,
  SseEvent,
  withoutReservedMeta,
} from '../../../mcp/index.ts'
import type { StreamPaceOptions } from '../../../net/index.ts'
import type { ChannelTarget } from './target.ts'
import { ArrivingResult } from './arriving-result.ts'

type Reporter = Pick<ChannelTarget, 'deviations'>

/**
 * Reads a message from a backend and reports its repairs. Throws or rejects with MessageError if the message is
 * invalid.
 */
export function readBackendMessage(
  body: Buffer | Promise<Buffer>,
  { deviations }: Reporter,
): Message | Promise<Message> {
  const read = readServerMessage(body, (repair) => deviations?.note(repair))
  return read instanceof Promise
    ? read.then((message) => withNumericId(message, deviations))
    : withNumericId(read, deviations)
}

/** Reads the message in an event. A part of the message may already have been sent to the client. */
export function messageIn(event: SseEvent, reporter: Reporter): Message | Promise<Message> {
  const result = event.receiver
  if (!(result instanceof ArrivingResult)) return readBackendMessage(event.data(), reporter)
  return (
    result.end() ??
    readBackendMessage(new SseEvent(event, result.buffered.take(), event.size).data(), reporter)
  )
}

/**
 * Forwards the message in an event from a stream that is not the response to a request. An invalid message is skipped
 * and reported, and the stream continues.
 */
export function receiveEvent(
  event: SseEvent,
  reporter: Reporter,
  onMessage: (message: Message) => void,
): void | Promise<void> {
  if (event.size === 0 || (event.event !== undefined && event.event !== 'message')) return undefined
  return forwardMessageIn(event, reporter, onMessage, () => reporter.deviations?.note('event_unreadable'))
}

/**
 * Forwards the message in an event. Drops and reports a notification with unreadable params, because the stream's other
 * messages do not depend on it. By default, throws or rejects if the message is invalid.
 */
export function forwardMessageIn(
  event: SseEvent,
  reporter: Reporter,
  onMessage: (message: Message) => void,
  onInvalid: (error: unknown) => void = rethrow,
): void | Promise<void> {
  const forward = (message: Message): void => {
    if (hasReadableParams(message)) onMessage(message)
    else reporter.deviations?.note('event_unreadable')
  }
  let message: Message | Promise<Message>
  try {
    message = messageIn(event, reporter)
  } catch (error) {
    return onInvalid(error)
  }
  return message instanceof Promise ? message.then(forward, onInvalid) : forward(message)
}

function rethrow(error: unknown): never {
  throw error
}

/** Returns false for a notification if its params cannot be forwarded to a client unchanged. */
function hasReadableParams({ kind, method, params }: Message): boolean {
  // The params of a list-changed notification are not used.
  if (kind !== 'notification' || !params || changedList(method)) return true
  try {
    // Some JSON parsers ignore case and could select a different member than Gatehouse does.
    const read = new JsonObject(params, { ignoreCase: true })
    withoutReservedMeta(read.bytes)
    return true
  } catch {
    return false
  }
}

/** Reports whether a backend keeps the stream for change announcements open. */
export function streamReports({ deviations }: Reporter): StreamPaceOptions {
  return {
    onNotKept: () => deviations?.note('stream_not_kept'),
    onKept: () => deviations?.clear('stream_not_kept'),
  }
}

const numberInQuotes = /^"(0|[1-9]\d{0,15})"$/

/** Converts a string id that consists of digits to a number, because Gatehouse sends numeric request ids. */
function withNumericId(message: Message, deviations: Reporter['deviations']): Message {
  const digits = message.method === '' ? numberInQuotes.exec(message.id ?? '')?.[1] : undefined
  if (digits === undefined) return message
  deviations?.note('id_type')
  return { ...message, id: digits }
}
