/**
 * Handles items one after the other, within the time that a turn of the event loop may take: what is left waits for the
 * next turn, and so does what comes while an item is handled that takes many turns.
 */
import { nextShare, shareIsOver, turnIsOver } from './json/turn-shares.ts'

/** The promise of an item that takes longer is settled when it has been handled. */
export type Handle<T> = (item: T) => void | Promise<void>

export class TurnQueue<T extends object> {
  readonly #handle: Handle<T>
  readonly #onError: (error: unknown) => void
  readonly #waiting: T[] = []
  #busy: Promise<void> | undefined
  #closed = false

  /** `onError` gets what an item failed with; nothing is handled after it. */
  constructor(handle: Handle<T>, onError: (error: unknown) => void) {
    this.#handle = handle
    this.#onError = onError
  }

  /** Set while items wait or are handled; never rejects. */
  get busy(): Promise<void> | undefined {
    return this.#busy
  }

  push(item: T): void {
    if (this.#closed) return
    if (this.#busy || turnIsOver()) {
      this.#waiting.push(item)
      this.#busy ??= this.#drain(undefined)
      return
    }
    try {
      const handling = this.#handle(item)
      if (handling) this.#busy = this.#drain(handling)
    } catch (error) {
      this.#fail(error)
    }
  }

  /** What waits is not handled any more. */
  close(): void {
    this.#closed = true
    this.#waiting.length = 0
  }

  async #drain(first: Promise<void> | undefined): Promise<void> {
    try {
      await first
      for (let item = this.#waiting.shift(); item !== undefined; item = this.#waiting.shift()) {
        if (shareIsOver()) await nextShare()
        const handling = this.#closed ? undefined : this.#handle(item)
        if (handling) await handling
      }
    } catch (error) {
      this.#fail(error)
    } finally {
      this.#busy = undefined
    }
  }

  #fail(error: unknown): void {
    this.close()
    this.#onError(error)
  }
}
