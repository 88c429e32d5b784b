/**
 * Signs access tokens (RFC 9068) and ID tokens (OpenID Connect Core section 2).
 *
 * An access token names the session (`tsid`) whose upstream tokens it opens and the grant (`gid`, a hash) that keeps
 * it alive. Names and e-mail addresses stay out of it: they would travel to every backend's log. `scp` repeats the
 * scopes as a list for policies written for it.
 */
import { createHash, randomUUID } from 'node:crypto'
import type { Grant } from '../model/records.ts'
import type { KeyRing } from './key-ring.ts'
import { signJwt } from './signature.ts'
import { sha256 } from '../model/identifiers.ts'

export interface AccessTokenRequest {
  readonly grant: Grant
  readonly scopes: readonly string[]
  readonly audience: readonly string[]
  readonly issuer: string
  readonly nowSec: number
  readonly lifeSec: number
}

export async function signAccessToken(keys: KeyRing, request: AccessTokenRequest): Promise<string> {
  const { grant, scopes, audience, issuer, nowSec, lifeSec } = request
  return signJwt(keys.signing, 'at+jwt', {
    iss: issuer,
    sub: grant.userId,
    aud: [...audience],
    exp: nowSec + lifeSec,
    iat: nowSec,
    jti: randomUUID(),
    client_id: grant.clientId,
    scope: scopes.join(' '),
    scp: [...scopes],
    auth_time: grant.authTimeSec,
    tsid: grant.sessionId,
    gid: sha256(grant.grantId),
  })
}

export interface IdTokenRequest {
  readonly grant: Grant
  readonly scopes: readonly string[]
  readonly issuer: string
  readonly nowSec: number
  readonly lifeSec: number
  readonly accessToken: string
  readonly nonce?: string | undefined
  readonly name?: string | undefined
  readonly email?: string | undefined
}

export async function signIdToken(keys: KeyRing, request: IdTokenRequest): Promise<string> {
  const { grant, scopes, nowSec } = request
  return signJwt(keys.signing, 'JWT', {
    iss: request.issuer,
    sub: grant.userId,
    aud: grant.clientId,
    exp: nowSec + request.lifeSec,
    iat: nowSec,
    auth_time: grant.authTimeSec,
    at_hash: leftHalf(keys.signing.alg, request.accessToken),
    ...(request.nonce === undefined ? {} : { nonce: request.nonce }),
    ...personal(scopes, request),
  })
}

/** Claims that a scope opens (OpenID Connect Core section 5.4). */
export function personal(
  scopes: readonly string[],
  user: { readonly name?: string | undefined; readonly email?: string | undefined },
): { name?: string; email?: string } {
  return {
    ...(scopes.includes('profile') && user.name !== undefined ? { name: user.name } : {}),
    ...(scopes.includes('email') && user.email !== undefined ? { email: user.email } : {}),
  }
}

/** OpenID Connect Core section 3.1.3.6; EdDSA with Ed25519 hashes by SHA-512. */
function leftHalf(alg: string, token: string): string {
  const bits = /\d+$/.exec(alg)?.[0] ?? '512'
  const digest = createHash(`sha${bits}`).update(token, 'ascii').digest()
  return digest.subarray(0, digest.length / 2).toString('base64url')
}
