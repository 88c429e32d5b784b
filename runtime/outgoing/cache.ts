/**
 * The one cache of credentials that strategies obtained for callers: exchanged tokens, temporary role credentials.
 *
 * One request per key whatever the load; cached until shortly before expiry; bounded. Keys are digests over everything
 * the credential depends on: caller, subject token, strategy, configuration with its secrets. Failures are not cached.
 * A waiter that goes away does not end the request that others wait for.
 */
import { abortable } from '../net/index.ts'
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'

/** Members of a credential, for instance `accessToken`. */
export type CredentialHeaders = Readonly<Record<string, string>>

/** Which credential a request carries. */
export interface Used {
  readonly key: string
  readonly credential: CredentialHeaders
}

export interface Obtained {
  readonly credential: CredentialHeaders
  /** Unix milliseconds; undefined when the issuer did not say. */
  readonly expiresAt?: number | undefined
}

const maxEntries = 10_000
/** How long a credential of unknown lifetime is used. */
const unknownLifetimeMs = 60_000

/** A credential younger than this was not refused for its age: another one would be refused as well. */
const minAgeMs = 5_000

interface Entry {
  readonly credential: CredentialHeaders
  readonly obtainedAt: number
  readonly until: number
}

export class CredentialCache {
  readonly #entries = new LRUCache<string, Entry>({ max: maxEntries })
  readonly #flights = new Map<string, Promise<CredentialHeaders>>()
  readonly #now: () => number

  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  /** The digest of everything a credential depends on. The parts cannot run into one another. */
  static key(...parts: readonly (string | undefined)[]): string {
    return hash('sha256', JSON.stringify(parts.map((part) => part ?? null)), 'base64url')
  }

  /** A credential that is good for a while, obtained now if need be. Rejects with what `obtain` rejects with. */
  async get(
    key: string,
    marginMs: number,
    obtain: () => Promise<Obtained>,
    signal?: AbortSignal,
  ): Promise<CredentialHeaders> {
    signal?.throwIfAborted()
    const entry = this.#entries.get(key)
    if (entry !== undefined && this.#now() < entry.until) return entry.credential
    let flight = this.#flights.get(key)
    if (flight === undefined) {
      flight = this.#obtain(key, marginMs, obtain).finally(() => this.#flights.delete(key))
      this.#flights.set(key, flight)
    }
    return abortable(flight, signal)
  }

  /**
   * The credential was refused. Forgets it, unless a newer one has taken its place. True when the next `get` gives
   * another one; false when this one was obtained only just now, which then stays.
   */
  refused(key: string, credential: CredentialHeaders): boolean {
    const entry = this.#entries.get(key)
    if (entry?.credential !== credential) return true
    if (this.#now() - entry.obtainedAt < minAgeMs) return false
    return this.#entries.delete(key)
  }

  get size(): number {
    return this.#entries.size
  }

  async #obtain(key: string, marginMs: number, obtain: () => Promise<Obtained>): Promise<CredentialHeaders> {
    const { credential, expiresAt } = await obtain()
    const now = this.#now()
    const lifetime = expiresAt === undefined ? unknownLifetimeMs : expiresAt - now
    // A short-lived credential is still worth half its life.
    const margin = Math.min(marginMs, lifetime / 2)
    if (lifetime > 0) {
      this.#entries.set(key, { credential, obtainedAt: now, until: now + lifetime - margin })
    }
    return credential
  }
}
