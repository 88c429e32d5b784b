import { JsonError, type Message, MessageError, readServerMessage, SseEvent } from '../../../mcp/index.ts'
import type { StreamPaceOptions } from '../../../net/index.ts'
import type { ChannelTarget } from './target.ts'
import { ArrivingResult } from './arriving-result.ts'

type Reporter = Pick<ChannelTarget, 'deviations'>

/**
 * Reads a message from a backend and reports its repairs. Throws, or rejects with, MessageError for an invalid message.
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

/** Reads the message in an event. Part of it may already have been sent to the client. */
export function messageIn(event: SseEvent, reporter: Reporter): Message | Promise<Message> {
  const { receiver: taken } = event
  if (!(taken instanceof ArrivingResult)) return readBackendMessage(event.data(), reporter)
  return (
    taken.end() ?? readBackendMessage(new SseEvent(event, taken.buffered.take(), event.size).data(), reporter)
  )
}

/**
 * Forwards the message in an event from a stream that is not the response to one request. An invalid message is skipped
 * and reported, and the stream continues.
 */
export function receiveEvent(
  event: SseEvent,
  reporter: Reporter,
  onMessage: (message: Message) => void,
): void | Promise<void> {
  if (event.size === 0 || (event.event !== undefined && event.event !== 'message')) return undefined
  const skip = (): void => reporter.deviations?.note('event_unreadable')
  let message: Message | Promise<Message>
  try {
    message = messageIn(event, reporter)
  } catch {
    return skip()
  }
  const take = (read: Message): void => deliver(read, reporter, onMessage)
  return message instanceof Promise ? message.then(take, skip) : take(message)
}

/**
 * Forwards a message from an event stream. Drops and reports a notification whose params cannot be read, because the
 * stream's other messages do not depend on it.
 */
export function deliver(
  message: Message,
  { deviations }: Reporter,
  onMessage: (message: Message) => void,
): void {
  try {
    onMessage(message)
  } catch (error) {
    const isUnreadable = error instanceof JsonError || error instanceof MessageError
    if (message.kind !== 'notification' || !isUnreadable) throw error
    deviations?.note('event_unreadable')
  }
}

/** Reports whether a backend keeps open the stream that announces changes. */
export function streamReports({ deviations }: Reporter): StreamPaceOptions {
  return {
    onNotKept: () => deviations?.note('stream_not_kept'),
    onKept: () => deviations?.clear('stream_not_kept'),
  }
}

const numberInQuotes = /^"(0|[1-9]\d{0,15})"$/

/** Replaces an id that is a string of digits with the number. Gatehouse sends numeric request ids. */
function withNumericId(message: Message, deviations: Reporter['deviations']): Message {
  const digits = message.method === '' ? numberInQuotes.exec(message.id ?? '')?.[1] : undefined
  if (digits === undefined) return message
  deviations?.note('id_type')
  return { ...message, id: digits }
}
