/**
 * An issuer's public keys: fetches, caches and renews the key set, and selects the key for a token.
 *
 * Runs one fetch at a time. A key set is renewed in the background after ten minutes. The set is fetched again
 * immediately for an unknown key (at most every 30 s), and used for up to an hour while the issuer is down. jose
 * selects the key: type, curve, `kid`, `alg`, `use` and `key_ops` must all match, so a key cannot be used with another
 * algorithm. Source: RFC 7517, OpenID Connect Core section 10.1.1 (rotation).
 */
import { isFields } from '../../schemas/index.ts'
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose'
import { type OAuthCallOptions, readJson, send } from './call.ts'
import { OAuthClientError } from './client-error.ts'

/** The keys for verifying tokens. */
export interface Keys {
  /**
   * For jose's verify functions. Rejects with jose's JWKSNoMatchingKey, or OAuthClientError when the keys are
   * unavailable.
   */
  readonly find: JWTVerifyGetKey
  /** Increases with every change to the key set. Results from an older version must be verified again. */
  readonly version: number
}

/** Keys in this process. Calls `read` for every verification. A different object means a different key set. */
export function localKeys(read: () => JSONWebKeySet): Keys {
  let set: JSONWebKeySet | undefined
  let local: JWTVerifyGetKey | undefined
  let version = 0
  const current = () => {
    const now = read()
    if (now !== set || local === undefined) {
      set = now
      local = createLocalJWKSet(now)
      version += 1
    }
    return local
  }
  return {
    find: async (header, token) => current()(header, token),
    get version() {
      current()
      return version
    },
  }
}

export interface RemoteKeysOptions extends OAuthCallOptions {
  /** Returns the key set's URL, for instance by discovery. Called before every fetch. */
  readonly locate: () => Promise<string>
  /** Returns Unix milliseconds. Default: Date.now. */
  readonly now?: (() => number) | undefined
}

export const keySetTimes = {
  /** Age after which the set is renewed in the background. */
  freshMs: 600_000,
  /** Age after which the set is not used. */
  maxAgeMs: 3_600_000,
  /** Minimum time between two fetches for unknown keys. */
  cooldownMs: 30_000,
  /** Delay before the next fetch after a failed fetch. */
  retryMs: 5_000,
} as const

const what = 'the issuer’s key set'
const maxKeys = 100

export class RemoteKeys implements Keys {
  readonly #options: RemoteKeysOptions
  readonly #now: () => number
  #set: { readonly local: JWTVerifyGetKey; readonly fetchedAt: number } | undefined
  #text = ''
  #version = 0
  #flight: Promise<JWTVerifyGetKey> | undefined
  #attemptedAt = Number.NEGATIVE_INFINITY
  #failure: { readonly failure: OAuthClientError; readonly at: number } | undefined

  constructor(options: RemoteKeysOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
  }

  get version(): number {
    return this.#version
  }

  readonly find: JWTVerifyGetKey = async (header, token) => {
    const local = await this.#current()
    try {
      return await local(header, token)
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
      const renewed = await this.#afterUnknownKey(local)
      if (renewed === undefined) throw error
      return await renewed(header, token)
    }
  }

  /** Returns the current keys. Waits for a fetch only when no sufficiently recent keys exist. */
  #current(): JWTVerifyGetKey | Promise<JWTVerifyGetKey> {
    const age = this.#set === undefined ? Number.POSITIVE_INFINITY : this.#now() - this.#set.fetchedAt
    if (this.#set !== undefined && age <= keySetTimes.maxAgeMs) {
      if (age > keySetTimes.freshMs && this.#canFetch()) this.#renew().catch(() => {})
      return this.#set.local
    }
    if (this.#flight === undefined && this.#failure !== undefined && !this.#canFetch())
      throw this.#failure.failure
    return this.#renew()
  }

  /** Returns keys that are newer than `seen`, or undefined during the cooldown. Rejects when the fetch fails. */
  async #afterUnknownKey(seen: JWTVerifyGetKey): Promise<JWTVerifyGetKey | undefined> {
    if (this.#set !== undefined && this.#set.local !== seen) return this.#set.local
    if (this.#flight !== undefined) return this.#flight
    if (this.#now() - this.#attemptedAt < keySetTimes.cooldownMs) {
      // While the issuer is down, an unknown key cannot be distinguished from a new key.
      if (this.#failure !== undefined) throw this.#failure.failure
      return undefined
    }
    return this.#renew()
  }

  #canFetch(): boolean {
    return this.#failure === undefined || this.#now() - this.#failure.at >= keySetTimes.retryMs
  }

  #renew(): Promise<JWTVerifyGetKey> {
    this.#flight ??= this.#fetch().finally(() => {
      this.#flight = undefined
    })
    return this.#flight
  }

  async #fetch(): Promise<JWTVerifyGetKey> {
    this.#attemptedAt = this.#now()
    try {
      const keys = await this.#read()
      const text = JSON.stringify(keys)
      const local = text === this.#text && this.#set ? this.#set.local : createLocalJWKSet({ keys })
      if (text !== this.#text) this.#version += 1
      this.#text = text
      this.#set = { local, fetchedAt: this.#now() }
      this.#failure = undefined
      return local
    } catch (error) {
      const failure =
        error instanceof OAuthClientError
          ? error
          : new OAuthClientError('protocol', `${what} is malformed`, { cause: error })
      this.#failure = { failure, at: this.#now() }
      throw failure
    }
  }

  async #read(): Promise<JSONWebKeySet['keys']> {
    const url = await this.#options.locate()
    const accept = 'application/jwk-set+json, application/json'
    const body = await readJson(what, await send(what, url, { headers: { accept } }, this.#options))
    const keys = body['keys']
    if (!Array.isArray(keys) || keys.length > maxKeys || !keys.every(isFields)) {
      throw new OAuthClientError('protocol', `${what} is malformed`)
    }
    // Ignore symmetric keys: a secret in a public document is worthless.
    return keys.filter((key) => typeof key['kty'] === 'string' && key['kty'] !== 'oct')
  }
}
