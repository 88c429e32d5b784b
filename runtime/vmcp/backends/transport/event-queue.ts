/**
 * Events of one stream, one after the other: what comes while an event is being read, which may take many turns of the
 * event loop, waits.
 */
import type { EventSourceMessage } from '../../../mcp/index.ts'

/** Reads an event; the promise of one that takes longer is settled when it has been read. */
export type OnEvent = (event: EventSourceMessage) => void | Promise<void>

export class EventQueue {
  readonly #onEvent: OnEvent
  readonly #onError: (error: unknown) => void
  readonly #waiting: EventSourceMessage[] = []
  #reading: Promise<void> | undefined
  #closed = false

  /** `onError` gets what an event that took longer was rejected with. */
  constructor(onEvent: OnEvent, onError: (error: unknown) => void) {
    this.#onEvent = onEvent
    this.#onError = onError
  }

  /** Set while events are being read; never rejects. */
  get reading(): Promise<void> | undefined {
    return this.#reading
  }

  /** Throws what reading the event throws. */
  push(event: EventSourceMessage): void {
    if (this.#closed) return
    if (this.#reading) {
      this.#waiting.push(event)
      return
    }
    const reading = this.#onEvent(event)
    if (!reading) return
    this.#reading = this.#drain(reading).finally(() => {
      this.#reading = undefined
    })
  }

  /** What waits is not read any more. */
  close(): void {
    this.#closed = true
    this.#waiting.length = 0
  }

  async #drain(first: Promise<void>): Promise<void> {
    try {
      await first
      for (let event = this.#waiting.shift(); event; event = this.#waiting.shift()) await this.#onEvent(event)
    } catch (error) {
      this.close()
      this.#onError(error)
    }
  }
}
