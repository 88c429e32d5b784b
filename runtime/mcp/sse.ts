/**
 * Server-sent events: the writer keeps bytes as they are, the reader is bounded.
 *
 * The writer splits data at every line end, so that no payload can end an event early or begin a second one.
 * Source: WHATWG HTML, "Server-sent events"; MCP 2025-11-25, transports.
 */
import { StringDecoder } from 'node:string_decoder'
import { createParser, type EventSourceMessage } from 'eventsource-parser'

export interface EventFields {
  readonly event?: string
  readonly id?: string
  readonly retryMs?: number
}

const lf = 0x0a
const cr = 0x0d
const eventEnd = Buffer.from('\n\n')
const dataField = Buffer.from('data: ')
const messageHead = Buffer.from('event: message\ndata: ')

/** Comment that keeps a quiet stream open. */
export const keepAliveComment: Buffer = Buffer.from(': keep-alive\n\n')

/** One event. Fields must not hold line ends; `data` may. */
export function encodeEvent(data: Buffer, fields: EventFields = {}): Buffer {
  const head = headOf(fields)
  if (data.indexOf(lf) < 0 && data.indexOf(cr) < 0) {
    return Buffer.concat(
      head === undefined ? [messageHead, data, eventEnd] : [head, dataField, data, eventEnd],
    )
  }
  const lines = data.toString('latin1').split(/\r\n|\n|\r/)
  const body = lines.map((line) => `data: ${line}\n`).join('')
  return Buffer.concat([head ?? Buffer.from('event: message\n'), Buffer.from(`${body}\n`, 'latin1')])
}

function headOf({ event, id, retryMs }: EventFields): Buffer | undefined {
  if (event === undefined && id === undefined && retryMs === undefined) return undefined
  let head = `event: ${event ?? 'message'}\n`
  if (id !== undefined) head += `id: ${id}\n`
  if (retryMs !== undefined) head += `retry: ${retryMs}\n`
  return Buffer.from(head)
}

export interface SseReader {
  /** Feeds a chunk; events are delivered before it returns. Throws RangeError when an event exceeds the bound. */
  push(chunk: Buffer): void
  /** True once an event has exceeded the bound. */
  readonly overflowed: boolean
}

/** Reads events from chunks of bytes. `maxBytes` bounds what an unfinished event may hold. */
export function sseReader(
  maxBytes: number,
  onEvent: (event: EventSourceMessage) => void,
  onRetry?: (retryMs: number) => void,
): SseReader {
  const decoder = new StringDecoder('utf8')
  let overflow = false
  const parser = createParser({
    onEvent,
    onRetry,
    maxBufferSize: maxBytes,
    onError(error) {
      overflow ||= error.type === 'max-buffer-size-exceeded'
    },
  })
  return {
    get overflowed() {
      return overflow
    },
    push(chunk) {
      parser.feed(decoder.write(chunk))
      if (overflow) throw new RangeError('an event is larger than allowed')
    },
  }
}

export type { EventSourceMessage }
