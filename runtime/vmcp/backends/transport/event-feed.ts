/**
 * Reads an event stream as it arrives. Bytes are read in slices, and events are handled one at a time, so a large chunk
 * does not block the event loop.
 */
import {
  type Handle,
  type OnLarge,
  type ResultSplitter,
  SseEvent,
  type SseReader,
  sseReader,
  TurnQueue,
} from '../../../mcp/index.ts'
import { type ArrivedPart, ArrivingResult } from './arriving-result.ts'

/** Maximum number of bytes that are read in one turn of the event loop if the bytes may contain many events. */
const sliceBytes = 16 * 1024

export interface EventFeedOptions {
  /** Maximum size of one event's data. */
  readonly maxBytes: number
  readonly onEvent: Handle<SseEvent>
  readonly onRetry: ((retryMs: number) => void) | undefined
  /**
   * Returns the splitter for a large event. The feed calls this function once for each large event. If the result is
   * undefined, the event is read as a whole.
   */
  readonly splitterFor: ((event: Pick<SseEvent, 'id'>) => ResultSplitter | undefined) | undefined
  /** Receives the error if reading fails. Reading then stops. */
  readonly onError: (error: unknown) => void
}

export class EventFeed {
  readonly #reader: SseReader
  readonly #slices: TurnQueue<Buffer>
  readonly #events: TurnQueue<SseEvent | ArrivedPart>

  constructor({ maxBytes, onEvent, onRetry, splitterFor, onError }: EventFeedOptions) {
    const fail = (error: unknown): void => {
      this.close()
      onError(error)
    }
    this.#events = new TurnQueue(
      (item) => (item instanceof SseEvent ? onEvent(item) : item.result.take(item.bytes)),
      fail,
    )
    const onLarge: OnLarge = (event) => {
      const isMessage = event.event === undefined || event.event === 'message'
      const splitter = isMessage ? splitterFor?.(event) : undefined
      return splitter && new ArrivingResult(splitter, (part) => this.#events.push(part))
    }
    this.#reader = sseReader(maxBytes, (event) => this.#events.push(event), onRetry, onLarge)
    this.#slices = new TurnQueue((slice) => this.#reader.push(slice), fail)
  }

  /** Settles when all data that has arrived has been handled. Undefined if nothing is pending. Never rejects. */
  get pending(): Promise<void> | undefined {
    return this.#slices.busy ?? this.#events.busy
  }

  /** True once an event has exceeded the limit. */
  get hasOverflowed(): boolean {
    return this.#reader.overflowed
  }

  push(chunk: Buffer): void {
    if (!hasLineEnd(chunk)) this.#slices.push(chunk)
    else
      for (let from = 0; from < chunk.length; from += sliceBytes)
        this.#slices.push(chunk.subarray(from, from + sliceBytes))
  }

  /** Drops all pending data. */
  close(): void {
    this.#slices.close()
    this.#events.close()
  }
}

/** True if a chunk may complete an event. */
function hasLineEnd(chunk: Buffer): boolean {
  return chunk.includes(0x0a) || chunk.includes(0x0d)
}
