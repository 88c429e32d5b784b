/**
 * Caches the credentials that strategies obtain for callers: exchanged tokens and temporary role credentials.
 *
 * Sends one request per key at a time and caches the credential until shortly before it expires. The cache is bounded.
 * A key is a digest of everything the credential depends on: caller, subject token, strategy, and configuration
 * including its secrets. Failures are not cached. Aborting one waiter does not cancel the request for the other
 * waiters.
 */
import { abortable } from '../net/index.ts'
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'

/** The credential's members, for instance `accessToken`. */
export type CredentialHeaders = Readonly<Record<string, string>>

/** The credential in a request. */
export interface UsedCredential<Credential extends object = CredentialHeaders> {
  readonly key: string
  readonly credential: Credential
}

export interface ObtainedCredential<Credential extends object = CredentialHeaders> {
  readonly credential: Credential
  /** Unix milliseconds; undefined when the issuer did not report an expiry. */
  readonly expiresAt?: number | undefined
}

const maxEntries = 10_000
/** Cache lifetime of a credential whose expiry is unknown. */
const unknownLifetimeMs = 60_000

/**
 * A rejected credential that is younger than this is not replaced. Its age cannot be the reason for the rejection, so
 * a new credential would also be rejected.
 */
const minAgeMs = 5_000

interface Entry<Credential extends object> {
  readonly credential: Credential
  readonly obtainedAt: number
  readonly until: number
}

export class CredentialCache<Credential extends object = CredentialHeaders> {
  readonly #entries = new LRUCache<string, Entry<Credential>>({ max: maxEntries })
  readonly #flights = new Map<string, Promise<Credential>>()
  readonly #now: () => number

  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  /** Returns a digest of everything that a credential depends on. JSON encoding keeps the parts unambiguous. */
  static key(...parts: readonly (string | undefined)[]): string {
    return hash('sha256', JSON.stringify(parts.map((part) => part ?? null)), 'base64url')
  }

  /** Returns the cached credential, or obtains one. Rejects with the error from `obtain`. */
  async get(
    key: string,
    marginMs: number,
    obtain: () => Promise<ObtainedCredential<Credential>>,
    signal?: AbortSignal,
  ): Promise<Credential> {
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
   * Reports that the backend rejected the credential. Removes the credential unless a newer one has already replaced
   * it. Returns true when the next `get` returns a different credential, and false when the current credential is too
   * new to be replaced.
   */
  refused(key: string, credential: Credential): boolean {
    const entry = this.#entries.get(key)
    if (entry?.credential !== credential) return true
    if (this.#now() - entry.obtainedAt < minAgeMs) return false
    return this.#entries.delete(key)
  }

  get size(): number {
    return this.#entries.size
  }

  async #obtain(
    key: string,
    marginMs: number,
    obtain: () => Promise<ObtainedCredential<Credential>>,
  ): Promise<Credential> {
    const { credential, expiresAt } = await obtain()
    const now = this.#now()
    const lifetime = expiresAt === undefined ? unknownLifetimeMs : expiresAt - now
    // A short-lived credential is used for at least half of its lifetime.
    const margin = Math.min(marginMs, lifetime / 2)
    if (lifetime > 0) {
      this.#entries.set(key, { credential, obtainedAt: now, until: now + lifetime - margin })
    }
    return credential
  }
}
