/**
 * Caches the callers identified by recently verified tokens.
 *
 * Entries are keyed by the token's SHA-256. An entry is valid for at most a minute, but never beyond the token's
 * expiry. The number of entries and their memory are limited. Only valid tokens are stored, so an untrusted client
 * cannot fill the cache. An entry from an older key set is ignored.
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

  /**
   * Stores a caller. `expSec` is the token's expiry in Unix seconds. Without `expSec`, only the one-minute limit
   * applies. `bytes` is the size of the token and its claims.
   */
  set(key: string, caller: Caller, version: number, expSec: number | undefined, bytes: number): void {
    const now = this.#now()
    const until = Math.min(now + maxAgeMs, expSec === undefined ? Number.POSITIVE_INFINITY : expSec * 1000)
    if (until > now) this.#entries.set(key, { caller, until, version }, { size: 512 + bytes })
  }

  get size(): number {
    return this.#entries.size
  }
}
