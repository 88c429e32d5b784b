/**
 * Workloads of SPIFFE trust domains that authenticate with a JWT-SVID, and the bundles that contain the keys to verify
 * it.
 *
 * A JWT-SVID needs no `iss` and no `jti`, so the trust domain in `sub` selects the keys, and a hash identifies the
 * JWT-SVID. The caller of this module marks the JWT-SVID as used.
 * Source: SPIFFE JWT-SVID sections 2 to 4; SPIFFE trust domain and bundle, section 4;
 * draft-ietf-oauth-spiffe-client-auth.
 */
import { readFileSync } from 'node:fs'
import type { JSONWebKeySet, JWK } from 'jose'
import {
  GatehouseError,
  hasPrivateMembers,
  isFields,
  isSpiffeId,
  matchesPrincipal,
} from '../../../schemas/index.ts'
import type { SpiffeSettings } from '../../config/index.ts'
import type { Log } from '../../net/index.ts'
import { type Keys, localKeys } from '../../oauth/index.ts'
import { replayKey, type VerifiedClientAssertion } from './client-assertion.ts'
import { verifyGrantAssertion } from './grant-assertion.ts'

export const spiffeAssertionType = 'urn:ietf:params:oauth:client-assertion-type:jwt-spiffe'

/** How often a bundle is reread. */
const rereadMs = 30_000
const maxBundleBytes = 1_048_576
const maxKeys = 100

interface BundlesParts {
  readonly now: () => number
  readonly log: Log
}

interface Bundle {
  keys: JSONWebKeySet
  readAtMs: number
  readonly found: Keys
}

/** The verification keys of trust domains, by bundle file. A file that becomes invalid keeps its last valid keys. */
export class SpiffeBundles {
  readonly #parts: BundlesParts
  readonly #bundles = new Map<string, Bundle>()

  constructor(parts: BundlesParts) {
    this.#parts = parts
  }

  /** Throws INVALID_CONFIG for an invalid file that was never valid. */
  keysOf(path: string): Keys {
    const { now, log } = this.#parts
    const known = this.#bundles.get(path)
    if (!known) {
      const bundle: Bundle = { keys: readBundle(path), readAtMs: now(), found: localKeys(() => bundle.keys) }
      this.#bundles.set(path, bundle)
      return bundle.found
    }
    if (now() - known.readAtMs < rereadMs) return known.found
    known.readAtMs = now()
    try {
      known.keys = readBundle(path)
    } catch (error) {
      log.error('the changed SPIFFE bundle is invalid; keeping the old one', { err: error })
    }
    return known.found
  }
}

/** Returns one sentence per bundle that cannot verify any JWT-SVID. */
export function bundleViolations(
  clients: readonly { readonly spiffe: SpiffeSettings | undefined }[],
): readonly string[] {
  const paths = new Set(clients.flatMap(({ spiffe }) => spiffe?.bundlePath ?? []))
  return [...paths].flatMap((path) => {
    try {
      return readBundle(path).keys.length > 0 ? [] : [`SPIFFE bundle ${path}: contains no key for JWT-SVIDs`]
    } catch (error) {
      if (error instanceof GatehouseError) return [error.message]
      throw error
    }
  })
}

/** Returns the keys of a bundle that verify JWT-SVIDs. Throws INVALID_CONFIG. */
function readBundle(path: string): JSONWebKeySet {
  const invalid = (reason: string, cause?: unknown): GatehouseError =>
    new GatehouseError('INVALID_CONFIG', { detail: `SPIFFE bundle ${path}: ${reason}`, cause })
  let bundle: unknown
  try {
    const text = readFileSync(path, 'utf8')
    if (text.length > maxBundleBytes) throw invalid('is larger than 1 MiB')
    bundle = JSON.parse(text)
  } catch (error) {
    throw error instanceof GatehouseError ? error : invalid('cannot be read as JSON', error)
  }
  const keys: unknown = isFields(bundle) ? bundle['keys'] : undefined
  if (!Array.isArray(keys) || keys.length > maxKeys)
    throw invalid(`must be a SPIFFE bundle with at most ${maxKeys} keys`)
  return { keys: keys.flatMap(verificationKey) }
}

/** Ignores the keys of X.509-SVIDs, and unusable keys. jose finds only keys whose use is `sig`. */
function verificationKey(key: unknown): readonly JWK[] {
  if (!isFields(key) || key['use'] !== 'jwt-svid' || typeof key['kid'] !== 'string') return []
  const { kty } = key
  if (typeof kty !== 'string' || kty === 'oct' || hasPrivateMembers(key)) return []
  return [{ ...key, kty, use: 'sig' }]
}

interface SpiffeRules {
  /** Issuer of this server, which must be the only audience. */
  readonly self: string
  readonly bundles: SpiffeBundles
  readonly now: () => number
}

/** Identity of a workload in its tokens. */
interface VerifiedSvid extends VerifiedClientAssertion {
  readonly spiffeId: string
}

/**
 * Returns the verified JWT-SVID, or the reason for its rejection, in fixed wording. Rejects with INVALID_CONFIG when
 * the bundle is unusable.
 */
export async function verifySvid(
  assertion: string,
  { trustDomain, bundlePath, principalPattern, maxAgeMs, replay }: SpiffeSettings,
  { self, bundles, now }: SpiffeRules,
): Promise<VerifiedSvid | string> {
  const verified = await verifyGrantAssertion(assertion, {
    issuer: undefined,
    audiences: [self],
    maxAgeMs,
    types: ['jwt', 'jose'],
    keys: bundles.keysOf(bundlePath),
    now,
  })
  if (typeof verified === 'string') return verified
  const { subject: spiffeId, jti, expSec } = verified
  if (!isSpiffeId(spiffeId) || !spiffeId.startsWith(`spiffe://${trustDomain}/`))
    return "the assertion's sub is not a SPIFFE ID of the trust domain"
  if (!matchesPrincipal(principalPattern, spiffeId))
    return "the assertion does not match the client's identity"
  const mark = replayKey({ purpose: 'client-authentication', issuer: trustDomain, subject: spiffeId, jti })
  const origin = { subject: spiffeId, issuer: `spiffe://${trustDomain}` }
  return { mark, expSec, isOnce: replay === 'once', origin, spiffeId }
}
