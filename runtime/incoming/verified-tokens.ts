/**
 * Remembers callers of tokens that were verified a moment ago.
 *
 * Keyed by the token's SHA-256, for at most a minute and never beyond the token's expiry, bounded in entries and in
 * memory. Only good tokens enter, so an untrusted client cannot grow it. An entry made under an older key set does not count.
 */
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Caller } from '../net/index.ts'

export const maxAgeMs = 60_000
const maxEntries = 10_000
const maxBytes = 33_554_432

interface Entry {
  readonly caller: Caller
  readonly until: number
  readonly version: number
}

export class VerifiedTokens {
  readonly #entries = new LRUCache<string, Entry>({ max: maxEntries, maxSize: maxBytes })
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  static key(token: string): string {
    return hash('sha256', token, 'base64url')
  }

  get(key: string, version: number): Caller | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    if (entry.version === version && this.#now() < entry.until) return entry.caller
    this.#entries.delete(key)
    return undefined
  }

  /** `expSec` is the token's expiry in Unix seconds, without one the minute alone counts; `bytes` of token and claims. */
  set(key: string, caller: Caller, version: number, expSec: number | undefined, bytes: number): void {
    const now = this.#now()
    const until = Math.min(now + maxAgeMs, expSec === undefined ? Number.POSITIVE_INFINITY : expSec * 1000)
    if (until > now) this.#entries.set(key, { caller, until, version }, { size: 512 + bytes })
  }

  get size(): number {
    return this.#entries.size
  }
}
