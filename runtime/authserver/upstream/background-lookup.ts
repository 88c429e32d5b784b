/**
 * Looks up a value over the network, and retries in the background until it succeeds.
 *
 * One attempt runs at a time. Until there is a value, callers wait for the running attempt or get the last failure
 * immediately. The old value stays in use while its renewal fails.
 */
import type { Log } from '../../net/index.ts'

/** The state reported for a provider whose endpoints are unknown. */
export const notDiscovered = 'has not been discovered yet'

interface LookupOptions<T> {
  readonly find: () => Promise<T>
  /** Age at which a value is looked up again in the background. Infinity disables this. */
  readonly freshMs: number
  readonly now: () => number
  readonly log: Log
  /** Name of the value, for the log. */
  readonly what: string
}

const firstMs = 1_000
const longestMs = 60_000

export class BackgroundLookup<T> {
  readonly #options: LookupOptions<T>
  #value: { readonly value: T; readonly atMs: number } | undefined
  #running: Promise<T> | undefined
  #failure: { readonly error: unknown; readonly untilMs: number } | undefined
  #timer: NodeJS.Timeout | undefined
  #tries = 0
  #closed = false

  constructor(options: LookupOptions<T>) {
    this.#options = options
  }

  get current(): T | undefined {
    return this.#value?.value
  }

  /** Looks up the value, and retries until it succeeds. */
  start(): void {
    if (!this.#value) this.#attempt().catch(() => this.#retryLater())
  }

  async get(): Promise<T> {
    const { now, freshMs } = this.#options
    if (this.#value) {
      if (now() - this.#value.atMs > freshMs) this.#renewQuietly()
      return this.#value.value
    }
    if (!this.#running && this.#failure && now() < this.#failure.untilMs) throw this.#failure.error
    return this.#attempt()
  }

  /** Discards the value, so that the next `get` looks it up again. */
  drop(): void {
    this.#value = undefined
    this.#failure = undefined
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }

  #renewQuietly(): void {
    if (this.#running || (this.#failure && this.#options.now() < this.#failure.untilMs)) return
    this.#attempt().catch(() => {})
  }

  #attempt(): Promise<T> {
    this.#running ??= this.#once().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  async #once(): Promise<T> {
    const { find, now, log, what } = this.#options
    try {
      const value = await find()
      this.#value = { value, atMs: now() }
      this.#failure = undefined
      this.#tries = 0
      return value
    } catch (error) {
      this.#failure = { error, untilMs: now() + Math.min(5_000, this.#pauseMs()) }
      log.warn('not available yet; retrying', { what, err: error })
      throw error
    }
  }

  #pauseMs(): number {
    return Math.min(longestMs, firstMs * 2 ** Math.min(this.#tries, 6))
  }

  #retryLater(): void {
    if (this.#closed) return
    this.#timer = setTimeout(() => this.start(), this.#pauseMs() * (0.5 + Math.random() / 2))
    this.#timer.unref()
    this.#tries += 1
  }
}
