/**
 * The public keys of clients that authenticate with assertions: inline, or fetched from a client's `jwks_uri`.
 *
 * An untrusted client can choose the address, and any client can present an unknown `kid`. Fetches are therefore
 * guarded, limited per host and caller, and merged. Fetches from one address are at least 30 s apart, whether they
 * succeed or fail.
 * Source: RFC 7517; OpenID Connect Core section 10.1.1 (rotation).
 */
import { createLocalJWKSet, errors, type JWTVerifyGetKey } from 'jose'
import { LRUCache } from 'lru-cache'
import { clientKeyViolations, GatehouseError, isFields } from '../../../schemas/index.ts'
import {
  type AssertionAlg,
  assertionAlgs,
  isTransient,
  type JsonRecord,
  OAuthClientError,
} from '../../oauth/index.ts'

/** The keys of one client. Exactly one of `jwks` and `jwksUri` is set. */
export interface AssertionKeys {
  readonly jwks?: readonly JsonRecord[]
  readonly jwksUri?: string
  readonly algs: readonly AssertionAlg[]
}

interface ClientKeySetParts {
  /** Fetches a JSON document, applying all protections against untrusted addresses. */
  readonly fetchKeys: (url: string) => Promise<JsonRecord>
  /** True when the limits allow another fetch from this host for this network address. */
  readonly mayFetch: (host: string, caller: string | undefined) => Promise<boolean>
  readonly now: () => number
}

export interface ClientKeySets {
  /**
   * Returns the function that finds a key for an assertion. The function rejects with jose's errors, with
   * OAuthClientError when the keys cannot be read, and with AUTH_UNAVAILABLE after too many fetches.
   */
  finder(keys: AssertionKeys, caller: string | undefined): JWTVerifyGetKey
}

interface Fetched {
  /** Finds a key in the fetched set. Absent when no fetch has succeeded within `maxAgeMs`. */
  readonly find?: JWTVerifyGetKey | undefined
  readonly fetchedAtMs: number
  readonly attemptedAtMs: number
  readonly failure?: OAuthClientError | undefined
}

/** Age after which keys are fetched again before use. */
const freshMs = 600_000
/** Age up to which keys are used while their host does not respond. */
const maxAgeMs = 3_600_000
/** Minimum time between two fetches from one address. */
const cooldownMs = 30_000
const maxSets = 256
const maxKeys = 100

export function makeClientKeySets(parts: ClientKeySetParts): ClientKeySets {
  const { now } = parts
  const sets = new LRUCache<string, Fetched>({ max: maxSets })
  const running = new Map<string, Promise<JWTVerifyGetKey>>()

  async function fetchNow(url: string, caller: string | undefined): Promise<JWTVerifyGetKey> {
    const known = sets.get(url)
    const usable = known && now() - known.fetchedAtMs <= maxAgeMs ? known.find : undefined
    if (!(await parts.mayFetch(new URL(url).hostname, caller))) {
      if (usable) return usable
      throw new GatehouseError('AUTH_UNAVAILABLE', { headers: { 'retry-after': '10' } })
    }
    const attemptedAtMs = now()
    try {
      const find = toKeySet((await parts.fetchKeys(url))['keys'])
      sets.set(url, { find, fetchedAtMs: attemptedAtMs, attemptedAtMs })
      return find
    } catch (error) {
      if (!(error instanceof OAuthClientError)) throw error
      // Old keys are used only while the host does not respond.
      const find = isTransient(error) ? usable : undefined
      sets.set(url, { find, fetchedAtMs: known?.fetchedAtMs ?? 0, attemptedAtMs, failure: error })
      if (find) return find
      throw error
    }
  }

  function fetchMerged(url: string, caller: string | undefined): Promise<JWTVerifyGetKey> {
    const pending = running.get(url)
    if (pending) return pending
    const mine = fetchNow(url, caller).finally(() => running.delete(url))
    running.set(url, mine)
    return mine
  }

  async function current(url: string, caller: string | undefined): Promise<JWTVerifyGetKey> {
    const known = sets.get(url)
    const age = now() - (known?.fetchedAtMs ?? 0)
    if (known?.find && age <= freshMs) return known.find
    if (known && now() - known.attemptedAtMs < cooldownMs) {
      if (known.find && age <= maxAgeMs) return known.find
      if (known.failure) throw known.failure
    }
    return fetchMerged(url, caller)
  }

  async function findRemote(
    url: string,
    caller: string | undefined,
    ...wanted: Parameters<JWTVerifyGetKey>
  ): Promise<Awaited<ReturnType<JWTVerifyGetKey>>> {
    const find = await current(url, caller)
    try {
      return await find(...wanted)
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
      // The client may have added a key since the last fetch.
      const known = sets.get(url)
      if (known?.find === find && now() - known.attemptedAtMs < cooldownMs) throw error
      return (await fetchMerged(url, caller))(...wanted)
    }
  }

  return {
    finder({ jwks, jwksUri }, caller) {
      if (jwksUri === undefined) return inlineKeys(jwks ?? [])
      return (header, token) => findRemote(jwksUri, caller, header, token)
    },
  }
}

/** One set per list, because a set caches its imported keys. */
const inlineSets = new WeakMap<readonly JsonRecord[], JWTVerifyGetKey>()

function inlineKeys(keys: readonly JsonRecord[]): JWTVerifyGetKey {
  const made = inlineSets.get(keys) ?? toKeySet(keys)
  inlineSets.set(keys, made)
  return made
}

/** Ignores unusable keys. Throws OAuthClientError `protocol` when there is no usable key. */
function toKeySet(keys: unknown): JWTVerifyGetKey {
  const usable = usableKeys(keys)
  if (usable.length === 0)
    throw new OAuthClientError('protocol', "the client's key set contains no usable key")
  return createLocalJWKSet({ keys: [...usable] })
}

/** Returns the public keys that can verify an assertion. */
export function usableKeys(keys: unknown): readonly (JsonRecord & { readonly kty: string })[] {
  if (!Array.isArray(keys)) return []
  return keys.slice(0, maxKeys).flatMap((key: unknown) => {
    if (!isFields(key) || typeof key['kty'] !== 'string') return []
    if (!assertionAlgs.some((alg) => clientKeyViolations(key, alg, 'key').length === 0)) return []
    const { alg, ...rest } = key
    // jose compares algorithm names, and this key type has two names for one algorithm.
    return [{ ...rest, kty: key['kty'], ...(key['kty'] === 'OKP' ? {} : { alg }) }]
  })
}
