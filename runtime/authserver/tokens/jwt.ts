/**
 * Signs access tokens (RFC 9068) and ID tokens (OpenID Connect Core section 2). Verifies nothing.
 *
 * An access token identifies the session (`tsid`) and gives access to the session's upstream tokens. The token also
 * identifies the grant (`gid`, a hash) that keeps it valid. The token contains no names or email addresses, because
 * these would end up in every backend's log. `scp` repeats the scopes as a list, for policies that read it.
 *
 * Signs with node:crypto. jose signs through WebCrypto, which switches threads and makes OpenSSL split r and s. Those
 * steps take four times as long as the signature itself. Slow signatures are computed in another thread.
 * Source: RFC 7515 section 5.1; RFC 7518 sections 3.3 and 3.4; RFC 8037 section 3.1.
 */
import { createHash, randomUUID, sign } from 'node:crypto'
import { promisify } from 'node:util'
import { GatehouseError } from '../../../schemas/index.ts'
import { type TokenBinding, confirmationClaim } from '../../oauth/index.ts'
import { sha256 } from '../model/identifiers.ts'
import type { Grant, MachineAuthMethod } from '../model/records.ts'
import type { KeyRing, SigningKey } from './key-ring.ts'

interface AccessTokenRequest {
  readonly issuer: string
  readonly subject: string
  readonly clientId: string
  /** How the client authenticated, for policies. */
  readonly authMethod: MachineAuthMethod | 'jwt_bearer' | undefined
  readonly scopes: readonly string[]
  readonly audience: readonly string[]
  readonly nowSec: number
  readonly lifeSec: number
  /** Empty for a bearer token. */
  readonly binding: TokenBinding
  /** Claims that only some kinds of access tokens have. */
  readonly more?: Readonly<Record<string, unknown>>
}

/** Signs any access token of this server: for a user's client, for a machine, or for a client that acts for a user. */
export function signAccessToken(keys: KeyRing, request: AccessTokenRequest): Promise<string> {
  const { issuer, subject, clientId, authMethod, scopes, audience, nowSec, lifeSec, binding, more } = request
  return signJwt(keys.signing, 'at+jwt', {
    iss: issuer,
    sub: subject,
    aud: [...audience],
    exp: nowSec + lifeSec,
    iat: nowSec,
    jti: randomUUID(),
    client_id: clientId,
    auth_method: authMethod,
    scope: scopes.join(' '),
    scp: [...scopes],
    ...more,
    cnf: confirmationClaim(binding),
  })
}

/** Returns the claims of a user's grant. */
export function grantClaims({ authTimeSec, sessionId, grantId }: Grant): Readonly<Record<string, unknown>> {
  return { auth_time: authTimeSec, tsid: sessionId, gid: sha256(grantId) }
}

/** Returns the token_type of a response (RFC 9449 section 5). */
export function tokenType({ jkt }: TokenBinding): 'Bearer' | 'DPoP' {
  return jkt === undefined ? 'Bearer' : 'DPoP'
}

interface IdTokenRequest {
  readonly grant: Grant
  readonly scopes: readonly string[]
  readonly issuer: string
  readonly nowSec: number
  readonly lifeSec: number
  readonly accessToken: string
  readonly nonce: string | undefined
}

interface PersonalClaims {
  readonly name?: string | undefined
  readonly email?: string | undefined
}

export async function signIdToken(keys: KeyRing, request: IdTokenRequest & PersonalClaims): Promise<string> {
  const { grant, scopes, issuer, nowSec, lifeSec, accessToken, nonce } = request
  return signJwt(keys.signing, 'JWT', {
    iss: issuer,
    sub: grant.userId,
    aud: grant.clientId,
    exp: nowSec + lifeSec,
    iat: nowSec,
    auth_time: grant.authTimeSec,
    at_hash: hashLeftHalf(keys.signing.alg, accessToken),
    nonce,
    ...personalClaims(scopes, request),
  })
}

/** Returns the claims that the scopes allow (OpenID Connect Core section 5.4). */
export function personalClaims(scopes: readonly string[], { name, email }: PersonalClaims): PersonalClaims {
  return {
    name: scopes.includes('profile') ? name : undefined,
    email: scopes.includes('email') ? email : undefined,
  }
}

/** OpenID Connect Core section 3.1.3.6. EdDSA with Ed25519 uses SHA-512. */
function hashLeftHalf(alg: string, token: string): string {
  const bits = /\d+$/.exec(alg)?.[0] ?? '512'
  const digest = createHash(`sha${bits}`).update(token, 'ascii').digest()
  return digest.subarray(0, digest.length / 2).toString('base64url')
}

interface Algorithm {
  /** Null for an algorithm that has a built-in hash. */
  readonly hash: string | null
  /** Length in bytes of r and of s. */
  readonly partBytes?: number
  /** True when the signature can be computed fast enough to run on the event loop. */
  readonly fast?: true
}

const algorithms: Readonly<Record<string, Algorithm>> = {
  RS256: { hash: 'sha256' },
  ES256: { hash: 'sha256', partBytes: 32, fast: true },
  ES384: { hash: 'sha384', partBytes: 48 },
  ES512: { hash: 'sha512', partBytes: 66 },
  EdDSA: { hash: null, fast: true },
}

const signInThread = promisify(sign)

/** Returns a token with these claims (compact JWS). */
export async function signJwt(key: SigningKey, typ: string, claims: object): Promise<string> {
  const algorithm = algorithms[key.alg]
  if (!algorithm) throw new GatehouseError('INTERNAL')
  const input = `${encodeJson({ alg: key.alg, kid: key.kid, typ })}.${encodeJson(claims)}`
  const { hash, partBytes } = algorithm
  const data = Buffer.from(input)
  const signature = algorithm.fast
    ? sign(hash, data, key.privateKey)
    : await signInThread(hash, data, key.privateKey)
  return `${input}.${(partBytes === undefined ? signature : joinSignature(signature, partBytes)).toString('base64url')}`
}

function encodeJson(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/** Joins r and s of a DER signature, each with a fixed length (RFC 7518 section 3.4). */
function joinSignature(der: Buffer, partBytes: number): Buffer {
  const out = Buffer.alloc(2 * partBytes)
  // The enclosing sequence. A length of 128 or more takes two bytes.
  let at = (der[1] ?? 0) < 0x80 ? 2 : 3
  for (const end of [partBytes, 2 * partBytes]) {
    const length = der[at + 1] ?? 0
    // A number whose first bit is set is preceded by a zero byte.
    const surplus = Math.max(0, length - partBytes)
    der.copy(out, end - length + surplus, at + 2 + surplus, at + 2 + length)
    at += 2 + length
  }
  return out
}
