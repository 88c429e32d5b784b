/**
 * Computes the pause before an event stream is reopened after it ended or could not be opened. The interval that the
 * server requested applies if its streams stay open for a while; otherwise, the pause grows.
 */
export const defaultRetryMs = 1_000
const minRetryMs = 20
const maxRetryMs = 30_000
/** A stream that stays open for this long is considered to be kept open. */
const keptMs = 5_000
/** Number of consecutive short streams after which the server is assumed to keep no stream open. */
const notKeptCount = 3
/**
 * Longest pause between streams for a server that does not keep streams open. A server whose streams deliver messages
 * is polled every `maxRetryMs` instead.
 */
const rarePauseMs = 5 * 60_000
const maxDoublings = 14

export interface StreamPaceOptions {
  /**
   * Called when the server has closed several consecutive streams as soon as they opened, and again for each further
   * stream that is closed at once.
   */
  readonly onNotKept?: (() => void) | undefined
  /** Called when a stream has stayed open for long enough. */
  readonly onKept?: (() => void) | undefined
  /** Runs `work` once after `ms`; the returned function cancels it. */
  readonly after?: ((ms: number, work: () => void) => () => void) | undefined
}

export class StreamPace {
  readonly #options: StreamPaceOptions
  #failures = 0
  #notKept = 0
  #hasDelivered = false
  /** Set while a stream is open. */
  #cancel: (() => void) | undefined

  constructor(options: StreamPaceOptions = {}) {
    this.#options = options
  }

  opened(): void {
    if (this.#cancel) return
    this.#failures++
    this.#notKept++
    const { after = unrefTimer, onKept } = this.#options
    this.#cancel = after(keptMs, () => {
      this.#failures = 0
      this.#notKept = 0
      onKept?.()
    })
  }

  /**
   * Records that the open stream delivered a message. Some servers close each stream after sending its messages and
   * expect to be polled.
   */
  delivered(): void {
    this.#hasDelivered = true
  }

  /**
   * Records that a stream ended or could not be opened. Returns the pause before the next attempt, in milliseconds.
   * `retryMs` is the interval that the server requested between streams; `retryAfterMs` is the delay that it requested
   * when it rejected a stream.
   */
  ended({ retryMs = defaultRetryMs, retryAfterMs = 0 }: Readonly<StreamWishes> = {}): number {
    if (this.#cancel) this.#cancel()
    else this.#failures++
    this.#cancel = undefined
    const keepsNone = this.#notKept >= notKeptCount
    if (keepsNone) this.#options.onNotKept?.()
    const doublings = Math.min(Math.max(this.#failures - 1, 0), maxDoublings)
    const longestMs = keepsNone && !this.#hasDelivered ? rarePauseMs : maxRetryMs
    this.#hasDelivered = false
    const pauseMs = Math.min(clampRetry(retryMs) * 2 ** doublings, longestMs)
    return Math.min(Math.max(pauseMs, retryAfterMs), rarePauseMs)
  }

  /** Cancels the timer. No further stream will be opened. */
  close(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }
}

function unrefTimer(ms: number, work: () => void): () => void {
  const timer = setTimeout(work, ms).unref()
  return () => clearTimeout(timer)
}

export interface StreamWishes {
  retryMs?: number | undefined
  retryAfterMs?: number | undefined
}

/** Clamps a pause that a server requested. */
export function clampRetry(retryMs: number): number {
  return Math.min(Math.max(retryMs, minRetryMs), maxRetryMs)
}

/** Returns the `Retry-After` header in milliseconds, or undefined when it is absent or not a number of seconds. */
export function retryAfterOf(header: string | undefined): number | undefined {
  return header !== undefined && /^\s*\d{1,9}\s*$/.test(header) ? Number(header) * 1_000 : undefined
}
