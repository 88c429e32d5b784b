/**
 * Reads an event stream as it arrives, in as many turns of the event loop as it takes: the bytes in slices, and the events
 * one after the other.
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

/** Read within one turn, some milliseconds at most, where many events may be in it. */
const sliceBytes = 16 * 1024

export interface EventFeedOptions {
  /** Bounds the data of one event. */
  readonly maxBytes: number
  readonly onEvent: Handle<SseEvent>
  readonly onRetry: ((retryMs: number) => void) | undefined
  /** Asked once for each large event what takes it apart while it arrives; undefined: it is read whole. */
  readonly splitterFor: ((event: Pick<SseEvent, 'id'>) => ResultSplitter | undefined) | undefined
  /** Gets what reading failed with; nothing is read after it. */
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
      (item) => (item instanceof SseEvent ? onEvent(item) : item.of.take(item.bytes)),
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

  /** Set while something is being read; never rejects. */
  get reading(): Promise<void> | undefined {
    return this.#slices.busy ?? this.#events.busy
  }

  /** True once an event has exceeded the bound. */
  get overflowed(): boolean {
    return this.#reader.overflowed
  }

  push(chunk: Buffer): void {
    if (!hasLineEnd(chunk)) this.#slices.push(chunk)
    else
      for (let from = 0; from < chunk.length; from += sliceBytes)
        this.#slices.push(chunk.subarray(from, from + sliceBytes))
  }

  /** What waits is not read any more. */
  close(): void {
    this.#slices.close()
    this.#events.close()
  }
}

/** Without any, there is no event to be read. */
function hasLineEnd(chunk: Buffer): boolean {
  return chunk.includes(0x0a) || chunk.includes(0x0d)
}
