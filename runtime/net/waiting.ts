/** Helpers for waiting on promises and timers until a signal aborts. */
import { GatehouseError } from '../../schemas/index.ts'

/** Waits for a promise. Rejects with the signal's reason if the signal aborts first. The work itself continues. */
export function abortable<T>(promise: Promise<T>, signal: AnySignal | undefined): Promise<T> {
  if (!signal) return promise
  if (signal.aborted) {
    // Ignores the result, which is no longer needed, to avoid an unhandled rejection.
    promise.catch(() => {})
    return Promise.reject(reasonOf(signal))
  }
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(reasonOf(signal))
    signal.addEventListener('abort', onAbort, { once: true })
    void promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}

/**
 * Waits for `ms`. Rejects with the signal's reason if the signal aborts first. The timer does not keep the process
 * alive.
 */
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
 * Waits at most `ms` for `work`, then returns or throws the result of `late`. The work itself continues, and the timer
 * keeps the process alive.
 */
export async function withTimeout<T, L>(ms: number, work: Promise<T>, late: () => L): Promise<T | L> {
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

/** Returns the abort reason as an Error. */
export function reasonOf({ reason }: AnySignal): Error {
  return reason instanceof Error ? reason : new Error('cancelled')
}

/**
 * A cheap replacement for an AbortSignal. Creates a real AbortSignal on the first use of `signal`. Its listeners are
 * entries in a list, because a real AbortSignal and its controller would add a few microseconds to each tool call.
 */
export class LazySignal {
  aborted = false
  #reason: Error | undefined
  #controller: AbortController | undefined
  readonly #listeners: (() => void)[] = []

  get reason(): Error | undefined {
    return this.#reason
  }

  /** A real AbortSignal that aborts together with this signal. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.aborted) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }

  /** Aborts the signal. Further calls have no effect. */
  abort(reason: Error): void {
    if (this.aborted) return
    this.aborted = true
    this.#reason = reason
    this.#controller?.abort(reason)
    for (const listener of this.#listeners.splice(0)) listener()
  }

  /** Adds a listener that is called at most once, and not at all if the signal has already aborted. */
  addEventListener(_type: 'abort', listener: () => void, _options?: { readonly once: true }): void {
    if (!this.aborted) this.#listeners.push(listener)
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    const at = this.#listeners.lastIndexOf(listener)
    if (at >= 0) this.#listeners.splice(at, 1)
  }
}

/**
 * The time limit for one request to a backend, combined with the client's cancellation.
 *
 * The clock stops while the backend waits for the client, because users take longer than machines and prompts have
 * their own time limit.
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

  /** Releases the timer and the listener. Call this method when the request has ended. */
  end(): void {
    clearTimeout(this.#timer)
    this.#paused = Number.POSITIVE_INFINITY
    this.#outer.removeEventListener('abort', this.#onOuter)
  }
}

export type AnySignal = AbortSignal | LazySignal

/** Returns an AbortSignal, for APIs that require one. */
export function signalOf(signal: AnySignal): AbortSignal {
  return signal instanceof LazySignal ? signal.signal : signal
}
