/**
 * A value that is found out over the network, lazily, and tried again in the background until it is there.
 *
 * One attempt at a time. While there is no value, askers wait for the running attempt or get the last failure at once.
 * An old value stays in use while its renewal fails.
 */
import type { Log } from '../../net/index.ts'

/** Of a provider whose endpoints are not known. */
export const notDiscovered = 'has not been discovered yet'

export interface RetriedOptions<T> {
  readonly find: () => Promise<T>
  /** After this a value is looked up again in the background; Infinity: never. */
  readonly freshMs: number
  readonly now: () => number
  readonly log: Log
  /** Fixed wording of what is being looked for. */
  readonly what: string
}

const firstMs = 1_000
const longestMs = 60_000

export class Retried<T> {
  readonly #options: RetriedOptions<T>
  #value: { readonly value: T; readonly atMs: number } | undefined
  #running: Promise<T> | undefined
  #failure: { readonly error: unknown; readonly untilMs: number } | undefined
  #timer: NodeJS.Timeout | undefined
  #tries = 0
  #closed = false

  constructor(options: RetriedOptions<T>) {
    this.#options = options
  }

  /** The value, if it is there. */
  get current(): T | undefined {
    return this.#value?.value
  }

  /** Tries now and, as long as it fails, again later. */
  start(): void {
    if (!this.#value) this.#attempt().catch(() => this.#later())
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

  /** Forgets the value, so that the next `get` looks again. */
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
      log.warn('not available yet, will be tried again', { what, err: error })
      throw error
    }
  }

  #pauseMs(): number {
    return Math.min(longestMs, firstMs * 2 ** Math.min(this.#tries, 6))
  }

  #later(): void {
    if (this.#closed) return
    this.#timer = setTimeout(() => this.start(), this.#pauseMs() * (0.5 + Math.random() / 2))
    this.#timer.unref()
    this.#tries += 1
  }
}
