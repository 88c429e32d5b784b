/**
 * Handles items one at a time, within the time limit for a turn of the event loop. The remaining items wait for the
 * next turn. While an item is processed over several turns, newly arrived items wait too.
 */
import { nextShare, shareIsOver, turnIsOver } from './json/turn-shares.ts'

/** Handles an item. For an item that takes several turns, the promise settles when the item is done. */
export type Handle<T> = (item: T) => void | Promise<void>

export class TurnQueue<T extends object> {
  readonly #handle: Handle<T>
  readonly #onError: (error: unknown) => void
  readonly #waiting: T[] = []
  #busy: Promise<void> | undefined
  #closed = false

  /** `onError` receives an error that an item throws. No further items are handled after an error. */
  constructor(handle: Handle<T>, onError: (error: unknown) => void) {
    this.#handle = handle
    this.#onError = onError
  }

  /** A promise that is pending while items wait or are being handled. Never rejects. */
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

  /** Drops the waiting items. */
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
