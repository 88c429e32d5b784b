/** Waiting that a signal can end: for a promise, or for some time. */
import { GatehouseError } from '../../schemas/index.ts'

/** Waits for a promise no longer than the signal allows; then rejects with the signal's reason. The work goes on. */
export function abortable<T>(promise: Promise<T>, signal: AnySignal | undefined): Promise<T> {
  if (!signal) return promise
  if (signal.aborted) {
    // Nobody waits any more, so nobody is to be surprised by how it ends.
    promise.catch(() => {})
    return Promise.reject(reasonOf(signal))
  }
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(reasonOf(signal))
    signal.addEventListener('abort', onAbort, { once: true })
    void promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}

/** Waits, unless the signal fires first; then it rejects with the signal's reason. The timer never keeps a process alive. */
export function pause(ms: number, signal: AnySignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(reasonOf(signal))
      return
    }
    function onAbort(): void {
      clearTimeout(timer)
      reject(reasonOf(signal))
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    timer.unref()
    signal.addEventListener('abort', onAbort, { once: true })
  })
}

/**
 * Waits for `work` for at most `ms`, then goes on with what `late` returns or throws. The work goes on too, and the timer
 * keeps the process alive.
 */
export async function atMost<T, L>(ms: number, work: Promise<T>, late: () => L): Promise<T | L> {
  let timer: NodeJS.Timeout | undefined
  const elapsed = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  try {
    return await Promise.race([work, elapsed.then(late)])
  } finally {
    clearTimeout(timer)
  }
}

/** Why a signal fired. */
export function reasonOf({ reason }: AnySignal): Error {
  return reason instanceof Error ? reason : new Error('cancelled')
}

/**
 * Stands for an AbortSignal that nearly nobody asks for: one is made with the first use of `signal`. Listeners cost an entry in a
 * list, where those of an AbortSignal, a controller included, cost each call of a tool some microseconds.
 */
export class LazySignal {
  aborted = false
  #reason: Error | undefined
  #controller: AbortController | undefined
  readonly #listeners: (() => void)[] = []

  get reason(): Error | undefined {
    return this.#reason
  }

  /** Fires together with this one. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.aborted) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }

  /** The first reason counts. */
  abort(reason: Error): void {
    if (this.aborted) return
    this.aborted = true
    this.#reason = reason
    this.#controller?.abort(reason)
    for (const listener of this.#listeners.splice(0)) listener()
  }

  /** Called once, when it fires; never when it has fired already. */
  addEventListener(_type: 'abort', listener: () => void, _options?: { readonly once: true }): void {
    if (!this.aborted) this.#listeners.push(listener)
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    const at = this.#listeners.lastIndexOf(listener)
    if (at >= 0) this.#listeners.splice(at, 1)
  }
}

/**
 * The time limit of one request to a backend, joined with the client's own cancellation.
 *
 * The clock is paused while the backend waits for a response of the client, because users take longer than machines and
 * questions have their own limit.
 */
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

export type AnySignal = AbortSignal | LazySignal

/** For what takes nothing but an AbortSignal. */
export function signalOf(signal: AnySignal): AbortSignal {
  return signal instanceof LazySignal ? signal.signal : signal
}
