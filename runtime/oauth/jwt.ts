/**
 * Verifies an issuer's signed tokens: access tokens (runtime/incoming) and ID tokens from a login.
 *
 * jose checks the signature, the algorithm and the times. Only asymmetric algorithms are accepted, with a clock skew of
 * 60 s, and `exp` is required. The `typ` must match the kind of token, so that a logout token or an assertion is not
 * accepted as an access token.
 * Source: RFC 7519, RFC 8725, RFC 9068 section 4, OpenID Connect Core section 3.1.3.7.
 */
import { ModuleError } from '../../schemas/index.ts'
import { createHash } from 'node:crypto'
import { decodeProtectedHeader, errors, type JWTPayload, jwtVerify, type JWTVerifyOptions } from 'jose'
import type { Keys } from './keys.ts'

const signatureAlgorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
] as const

export const skewSec = 60

/** Maximum length of a token or an assertion in characters. Documented in docs/reference/limits.md. */
export const maxTokenLength = 16_384

export type RefusalReason =
  | 'malformed'
  | 'type'
  | 'algorithm'
  | 'key'
  | 'signature'
  | 'expired'
  | 'not_yet_valid'
  | 'too_long'
  | 'issuer'
  | 'audience'
  | 'claims'
  | 'inactive'
  | 'id_token'
  | 'subject'
  | 'bearer'
  | 'bound'
  | 'unbound'
  | 'confirmation'
  | 'certificate'

/** Thrown when the token must not be accepted. `reason` is for logs and for choosing a fixed text. */
export class TokenRefused extends ModuleError {
  readonly reason: RefusalReason
  constructor(reason: RefusalReason, cause?: unknown) {
    super(`token refused: ${reason}`, cause === undefined ? {} : { cause })
    this.reason = reason
  }
}

export interface JwtRules {
  readonly keys: Keys
  /** Compared exactly. Undefined accepts any issuer that uses these keys. */
  readonly issuer?: string | undefined
  readonly audience: string
  /** Accepted `typ` values, in lower case without `application/`. A missing typ is accepted too. */
  readonly types: readonly string[]
  /** Returns Unix milliseconds. Default: Date.now. */
  readonly now?: (() => number) | undefined
}

export const accessTokenTypes = ['jwt', 'at+jwt'] as const

/**
 * Returns the claims of a valid token. Rejects with TokenRefused, or with OAuthClientError when the keys are
 * unavailable.
 */
export async function verifyJwt(token: string, rules: JwtRules): Promise<JWTPayload> {
  checkType(token, rules.types)
  const options: JWTVerifyOptions = {
    algorithms: [...signatureAlgorithms],
    audience: rules.audience,
    requiredClaims: ['exp'],
    clockTolerance: skewSec,
    currentDate: new Date((rules.now ?? Date.now)()),
    ...(rules.issuer === undefined ? {} : { issuer: rules.issuer }),
  }
  try {
    return (await jwtVerify(token, rules.keys.find, options)).payload
  } catch (error) {
    if (error instanceof errors.JWKSMultipleMatchingKeys) return verifyWithEachKey(token, error, options)
    throw toTokenRefused(error)
  }
}

/** Tries each key, because a token without `kid` may match several keys, for instance during a rotation. */
async function verifyWithEachKey(
  token: string,
  candidates: errors.JWKSMultipleMatchingKeys,
  options: JWTVerifyOptions,
): Promise<JWTPayload> {
  let left = 4
  for await (const key of candidates) {
    if (left-- === 0) break
    try {
      return (await jwtVerify(token, key, options)).payload
    } catch (error) {
      if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw toTokenRefused(error)
    }
  }
  throw new TokenRefused('signature')
}

function checkType(token: string, types: readonly string[]): void {
  let typ: unknown
  try {
    typ = decodeProtectedHeader(token).typ
  } catch (error) {
    throw new TokenRefused('malformed', error)
  }
  if (typ === undefined) return
  const name = typeof typ === 'string' ? typ.toLowerCase().replace(/^application\//, '') : ''
  if (!types.includes(name)) throw new TokenRefused('type')
}

/** Converts a jose error to a TokenRefused. Returns other errors (such as unavailable keys) unchanged. */
function toTokenRefused(error: unknown): unknown {
  if (error instanceof errors.JWTExpired) return new TokenRefused('expired', error)
  if (error instanceof errors.JWTClaimValidationFailed) {
    const reasons: Record<string, RefusalReason> = { iss: 'issuer', aud: 'audience', nbf: 'not_yet_valid' }
    return new TokenRefused(reasons[error.claim] ?? 'claims', error)
  }
  if (error instanceof errors.JOSEAlgNotAllowed) return new TokenRefused('algorithm', error)
  if (error instanceof errors.JWKSNoMatchingKey) return new TokenRefused('key', error)
  if (error instanceof errors.JWSSignatureVerificationFailed) return new TokenRefused('signature', error)
  if (error instanceof errors.JOSEError) return new TokenRefused('malformed', error)
  return error
}

/** Claims that only ID tokens have (OpenID Connect Core section 3.3.2.11). */
const idTokenClaims = ['at_hash', 'c_hash', 's_hash'] as const

/** True for an ID token that was presented as an access token. */
export function hasIdTokenClaims(claims: object): boolean {
  return idTokenClaims.some((name) => Object.hasOwn(claims, name))
}

export interface IdTokenRules {
  readonly keys: Keys
  readonly issuer: string
  readonly clientId: string
  /** Expected nonce. Undefined skips the comparison. */
  readonly nonce?: string | undefined
  /** Compared with `at_hash` if the token has one. */
  readonly accessToken?: string | undefined
  readonly now?: (() => number) | undefined
}

/** Returns the claims of a valid ID token. Rejects like verifyJwt. */
export async function verifyIdToken(token: string, rules: IdTokenRules): Promise<JWTPayload> {
  const claims = await verifyJwt(token, {
    keys: rules.keys,
    issuer: rules.issuer,
    audience: rules.clientId,
    types: ['jwt'],
    now: rules.now,
  })
  const { azp, nonce, at_hash: hash, sub } = claims
  const several = Array.isArray(claims.aud) && claims.aud.length > 1
  if (typeof sub !== 'string' || sub === '') throw new TokenRefused('claims')
  if ((several || azp !== undefined) && azp !== rules.clientId) throw new TokenRefused('claims')
  if (rules.nonce !== undefined && nonce !== rules.nonce) throw new TokenRefused('claims')
  if (
    rules.accessToken !== undefined &&
    hash !== undefined &&
    hash !== accessTokenHash(token, rules.accessToken)
  ) {
    throw new TokenRefused('claims')
  }
  return claims
}

/** Returns the left half of the hash for the token's algorithm (OpenID Connect Core section 3.1.3.6). */
function accessTokenHash(idToken: string, accessToken: string): string {
  const { alg = '' } = decodeProtectedHeader(idToken)
  const size = /(256|384|512)$/.exec(alg)?.[1] ?? '512'
  const digest = createHash(alg === 'Ed25519' ? 'sha512' : `sha${size}`)
    .update(accessToken, 'ascii')
    .digest()
  return digest.subarray(0, digest.length / 2).toString('base64url')
}
