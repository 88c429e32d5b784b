/**
 * Verifies a client's assertion (private_key_jwt): a JWT that the client signed for this request.
 *
 * Only the keys that the client declared are used. An assertion whose header contains a key, or the URL of a key, is
 * rejected before anything is fetched. The caller marks the assertion as used (`mark`).
 * Source: RFC 7523 section 3; draft-ietf-oauth-rfc7523bis-10 (audience, typ); RFC 8725.
 */
import {
  decodeJwt,
  decodeProtectedHeader,
  errors,
  type JWTPayload,
  type JWTVerifyGetKey,
  jwtVerify,
  type ProtectedHeaderParameters,
} from 'jose'
import { type AssertionAlg, maxTokenLength, skewSec } from '../../oauth/index.ts'
import { compoundKey, sha256 } from '../model/identifiers.ts'

export const assertionType = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

const maxLifeSec = 300
const types: ReadonlySet<string> = new Set(['jwt', 'client-authentication+jwt'])
const keyMembers = ['jwk', 'jku', 'x5u', 'x5c'] as const
/** Maximum number of keys to try for an assertion without a `kid`. */
const maxCandidates = 4
const tooManyCandidates = `only the client's first ${maxCandidates} matching keys were tried; use a unique kid`

export interface AssertionRules {
  readonly clientId: string
  readonly issuer: string
  readonly algs: readonly AssertionAlg[]
  readonly find: JWTVerifyGetKey
  /** Unix milliseconds. */
  readonly nowMs: number
}

/** An assertion that authenticated a client. */
export interface VerifiedClientAssertion {
  /** Store key that marks the assertion as used. */
  readonly mark: string
  readonly expSec: number
  /** False: the assertion can be used until it expires. */
  readonly isOnce: boolean
  /** The subject, and its issuer or trust domain, for the rate limits. Undefined: only the client's rate is limited. */
  readonly origin?: { readonly subject: string; readonly issuer: string }
}

/** Returns the client id in an assertion, without verifying the assertion. */
export function claimedClient(assertion: string): string | undefined {
  if (assertion.length > maxTokenLength) return undefined
  try {
    const { sub } = decodeJwt(assertion)
    return typeof sub === 'string' && sub !== '' ? sub : undefined
  } catch {
    return undefined
  }
}

/** Runs the checks that require no keys. Returns the reason for a rejection; undefined if all checks pass. */
export function assertionViolation(assertion: string, algs: readonly AssertionAlg[]): string | undefined {
  const header = readAssertionHeader(assertion)
  if (typeof header === 'string') return header
  const type = typeof header.typ === 'string' ? header.typ.toLowerCase().replace(/^application\//, '') : ''
  if (header.typ !== undefined && !types.has(type)) return "the assertion's header has an unsupported typ"
  return header.alg !== undefined && headerAlgs(algs).includes(header.alg)
    ? undefined
    : "the assertion's algorithm is not allowed for this client"
}

/**
 * Returns the header of an assertion, or the reason for its rejection. Rejects a header that contains a key or the URL
 * of a key.
 */
export function readAssertionHeader(assertion: string): ProtectedHeaderParameters | string {
  if (assertion.length > maxTokenLength) return 'the assertion is larger than 16 KiB'
  let header
  try {
    header = decodeProtectedHeader(assertion)
  } catch {
    return 'the assertion is not a signed JWT'
  }
  return keyMembers.some((member) => header[member] !== undefined)
    ? "the assertion's header contains a key or a key URL"
    : header
}

/** `Ed25519` is another name for EdDSA with this curve, which is the only supported curve (RFC 9864). */
function headerAlgs(algs: readonly AssertionAlg[]): string[] {
  return algs.flatMap((alg) => (alg === 'EdDSA' ? [alg, 'Ed25519'] : [alg]))
}

/**
 * Returns the verified assertion, or the reason for its rejection in fixed wording. Rejects with errors from
 * `rules.find` when the keys are unavailable.
 */
export async function verifyAssertion(
  assertion: string,
  rules: AssertionRules,
): Promise<VerifiedClientAssertion | string> {
  const violation = assertionViolation(assertion, rules.algs)
  if (violation !== undefined) return violation
  try {
    const payload = await verifyWithKeys(assertion, rules)
    return typeof payload === 'string' ? payload : checkClaims(payload, rules)
  } catch (error) {
    if (error instanceof errors.JOSEError) return describe(error)
    throw error
  }
}

async function verifyWithKeys(assertion: string, rules: AssertionRules): Promise<JWTPayload | string> {
  const { clientId, algs, find, nowMs } = rules
  const options = {
    algorithms: headerAlgs(algs),
    issuer: clientId,
    subject: clientId,
    requiredClaims: ['aud', 'exp', 'jti'],
    clockTolerance: skewSec,
    currentDate: new Date(nowMs),
  }
  try {
    return (await jwtVerify(assertion, find, options)).payload
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error
    let left = maxCandidates
    for await (const key of error) {
      if (left-- === 0) return tooManyCandidates
      try {
        return (await jwtVerify(assertion, key, options)).payload
      } catch (failure) {
        if (!(failure instanceof errors.JWSSignatureVerificationFailed)) throw failure
      }
    }
    throw new errors.JWSSignatureVerificationFailed()
  }
}

function checkClaims(
  { aud, exp, iat, jti }: JWTPayload,
  { clientId, issuer, nowMs }: AssertionRules,
): VerifiedClientAssertion | string {
  if (soleAudience(aud) !== issuer) return "the assertion's only audience must be this issuer"
  if (typeof jti !== 'string' || jti === '') return 'the assertion has no jti'
  if (exp === undefined) return 'the assertion has no exp'
  const violation = lifeViolation({ exp, iat }, maxLifeSec, nowMs)
  if (violation !== undefined) return violation
  const mark = replayKey({ purpose: 'client-authentication', issuer: clientId, subject: clientId, jti })
  return { mark, expSec: exp, isOnce: true }
}

/** Returns the only audience. If an assertion had several audiences, one of the other servers could present it here. */
export function soleAudience(aud: unknown): unknown {
  return Array.isArray(aud) && aud.length === 1 ? aud[0] : aud
}

/**
 * Returns the reason why the times in an assertion are rejected; undefined for valid times. The limit also bounds how
 * long a replay mark is stored.
 */
export function lifeViolation(
  { exp, iat }: { readonly exp: number; readonly iat: unknown },
  limitSec: number,
  nowMs: number,
): string | undefined {
  const nowSec = Math.floor(nowMs / 1000)
  if (iat !== undefined && (typeof iat !== 'number' || iat > nowSec + skewSec))
    return 'the assertion was issued in the future'
  const begin = Math.min(iat ?? Number.POSITIVE_INFINITY, nowSec + skewSec)
  return exp - begin > limitSec ? `the assertion is valid for more than ${limitSec / 60} minutes` : undefined
}

function describe(error: errors.JOSEError): string {
  if (error instanceof errors.JWTExpired) return 'the assertion has expired'
  if (error instanceof errors.JWTClaimValidationFailed)
    return `the assertion's ${reportedClaims.has(error.claim) ? `${error.claim} claim` : 'claim set'} is missing or invalid`
  if (error instanceof errors.JWKSNoMatchingKey) return "none of the client's keys matches the assertion"
  if (error instanceof errors.JWSSignatureVerificationFailed) return "the assertion's signature is invalid"
  return 'the assertion is malformed'
}

const reportedClaims: ReadonlySet<string> = new Set(['iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti'])

interface AssertionIdentity {
  readonly purpose: 'client-authentication' | 'jwt-bearer'
  readonly issuer: string
  readonly subject: string
  /** Id of the assertion. */
  readonly jti: string
}

/** Returns the store key that marks an assertion as used. Assertions for other purposes have different keys. */
export function replayKey({ purpose, issuer, subject, jti }: AssertionIdentity): string {
  return `assertion:${sha256(compoundKey(purpose, issuer, subject, jti))}`
}

/**
 * Returns how long to remember a used assertion: until every replica rejects it as expired, even if a replica's clock is
 * up to `skewSec` behind this one.
 */
export function replayMs({ expSec }: Pick<VerifiedClientAssertion, 'expSec'>, nowMs: number): number {
  return Math.max(1, Math.ceil((expSec + 2 * skewSec) * 1000 - nowMs))
}
