/**
 * Reads an event stream as it arrives, in as many turns of the event loop as it takes: the bytes in slices, and the events
 * one after the other.
 */
import { type Handle, type SseEvent, type SseReader, sseReader, TurnQueue } from '../../../mcp/index.ts'

/** Read within one turn, some milliseconds at most. */
const sliceBytes = 16 * 1024

export interface EventFeedOptions {
  /** Bounds the data of one event. */
  readonly maxBytes: number
  readonly onEvent: Handle<SseEvent>
  readonly onRetry: ((retryMs: number) => void) | undefined
  /** Gets what reading failed with; nothing is read after it. */
  readonly onError: (error: unknown) => void
}

export class EventFeed {
  readonly #reader: SseReader
  readonly #slices: TurnQueue<Buffer>
  readonly #events: TurnQueue<SseEvent>

  constructor({ maxBytes, onEvent, onRetry, onError }: EventFeedOptions) {
    const fail = (error: unknown): void => {
      this.close()
      onError(error)
    }
    this.#events = new TurnQueue(onEvent, fail)
    this.#reader = sseReader(maxBytes, (event) => this.#events.push(event), onRetry)
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
    for (let from = 0; from < chunk.length; from += sliceBytes)
      this.#slices.push(chunk.subarray(from, from + sliceBytes))
  }

  /** What waits is not read any more. */
  close(): void {
    this.#slices.close()
    this.#events.close()
  }
}
