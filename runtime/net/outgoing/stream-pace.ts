/**
 * How soon an event stream is opened again after it ended or could not be opened: at the pace that the server asks for while
 * its streams stay open for a while, and ever later while they do not.
 */
export const defaultRetryMs = 1_000
const minRetryMs = 20
const maxRetryMs = 30_000
/** A stream that stays open for this long is kept. */
const keptMs = 5_000
/** Streams in a row that were not kept before the server counts as one that keeps none. */
const notKeptCount = 3
/** Longest pause for such a server, unless its streams deliver messages: then it is polled every `maxRetryMs`. */
const rarePauseMs = 5 * 60_000
const maxDoublings = 14

export interface StreamPaceOptions {
  /** Called when the server has closed several streams in a row as soon as they were open, and each time after that. */
  readonly onNotKept?: (() => void) | undefined
  /** Called when a stream has stayed open for a while. */
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

  /** A stream was opened. */
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

  /** The open stream delivered a message. Some servers close each stream after its messages, and expect to be polled. */
  delivered(): void {
    this.#hasDelivered = true
  }

  /**
   * A stream ended, or could not be opened. Returns the milliseconds to wait before the next attempt: `retryMs` is what the
   * server asks for between streams, `retryAfterMs` what it asks for after a refusal.
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

  /** No stream is opened any more. */
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

/** The pause that a server asks for, within bounds. */
export function clampRetry(retryMs: number): number {
  return Math.min(Math.max(retryMs, minRetryMs), maxRetryMs)
}

/** The seconds of a `Retry-After` header, in milliseconds; undefined without a usable one. */
export function retryAfterOf(header: string | undefined): number | undefined {
  return header !== undefined && /^\s*\d{1,9}\s*$/.test(header) ? Number(header) * 1_000 : undefined
}
