/**
 * Individual failures in the last hour: one entry for each kind, with a count. The number of entries is limited; the
 * kind whose last failure is the oldest is dropped first.
 */
import type { EventType } from './fields.ts'

export interface RecentFailure {
  readonly type: EventType
  readonly backend?: string | undefined
  /** Cause, from a fixed set of words. */
  readonly reason?: string | undefined
  readonly message: string
  /** Short explanation from the backend, without credentials. */
  readonly detail?: string | undefined
  readonly fix: string
  readonly count: number
  /** Milliseconds since the epoch. */
  readonly first: number
  readonly last: number
}

const memoryMs = 60 * 60_000
const maxEntries = 200

export class RecentFailures {
  /** Entries keyed by kind. The most recent entry is last. */
  readonly #entries = new Map<string, RecentFailure>()

  note(key: string, failure: Omit<RecentFailure, 'count' | 'first' | 'last'>, at: number): void {
    const known = this.#entries.get(key)
    const goesOn = known !== undefined && at - known.last <= memoryMs
    this.#entries.delete(key)
    const [oldest] = this.#entries.keys()
    if (oldest !== undefined && this.#entries.size >= maxEntries) this.#entries.delete(oldest)
    const { count, first } = goesOn ? known : { count: 0, first: at }
    this.#entries.set(key, { ...failure, count: count + 1, first, last: at })
  }

  forget(backends: readonly string[]): void {
    for (const [key, { backend }] of this.#entries)
      if (backend !== undefined && backends.includes(backend)) this.#entries.delete(key)
  }

  /** Returns the entries, most recent first. */
  all(now: number): readonly RecentFailure[] {
    return [...this.#entries.values()].filter(({ last }) => now - last <= memoryMs).toReversed()
  }
}
