/**
 * The time limit of one request to a backend, joined with the client's own cancellation.
 *
 * The clock is paused while the backend waits for a response of the client, because users take longer than machines and
 * questions have their own limit.
 */
import { type AnySignal, LazySignal, reasonOf } from '../../../net/index.ts'
import { GatehouseError } from '../../../../schemas/index.ts'

export class Deadline extends LazySignal {
  readonly #outer: AnySignal
  readonly #onOuter = (): void => this.abort(reasonOf(this.#outer))
  readonly #onTimeout = (): void => this.abort(new GatehouseError('BACKEND_TIMEOUT'))
  #leftMs: number
  #startedAt = 0
  #timer: NodeJS.Timeout | undefined
  #paused = 0

  constructor(timeoutMs: number, outer: AnySignal) {
    super()
    this.#leftMs = timeoutMs
    this.#outer = outer
    if (outer.aborted) this.#onOuter()
    else {
      outer.addEventListener('abort', this.#onOuter, { once: true })
      this.#startedAt = performance.now()
      this.#timer = setTimeout(this.#onTimeout, timeoutMs)
    }
  }

  override abort(reason: Error): void {
    clearTimeout(this.#timer)
    super.abort(reason)
  }

  /** Stops the clock until the returned function is called. */
  pause(): () => void {
    if (this.#paused++ === 0) {
      clearTimeout(this.#timer)
      this.#leftMs = Math.max(1, this.#leftMs - (performance.now() - this.#startedAt))
    }
    let resumed = false
    return () => {
      if (resumed) return
      resumed = true
      if (--this.#paused > 0 || this.aborted) return
      this.#startedAt = performance.now()
      this.#timer = setTimeout(this.#onTimeout, this.#leftMs)
    }
  }

  /** Releases the timer and the listener. Call it when the request has ended. */
  end(): void {
    clearTimeout(this.#timer)
    this.#paused = Number.POSITIVE_INFINITY
    this.#outer.removeEventListener('abort', this.#onOuter)
  }
}
