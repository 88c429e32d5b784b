/**
 * Verifies an assertion of a trusted issuer: a JWT that the issuer signed for this server, used as a grant or to
 * authenticate a client.
 *
 * The unverified `iss` only selects the issuer, by exact comparison. The caller of this module finds the binding and
 * marks the assertion as used.
 * Source: RFC 7523 sections 2.1 and 3; draft-ietf-oauth-rfc7523bis-10 (audience, typ); RFC 8725.
 */
import { decodeJwt, type JWTPayload } from 'jose'
import { serviceAccountOf, isFields } from '../../../schemas/index.ts'
import type { TrustedIssuerSettings } from '../../config/index.ts'
import { type Keys, TokenRefused, verifyJwt } from '../../oauth/index.ts'
import { sha256 } from '../model/identifiers.ts'
import { lifeViolation, readAssertionHeader, soleAudience } from './client-assertion.ts'

export interface GrantAssertionRules {
  /** Undefined: the keys alone identify the issuer, and `iss` is ignored. */
  readonly issuer: TrustedIssuerSettings | undefined
  readonly audiences: readonly string[]
  readonly maxAgeMs: number
  /** Accepted values of `typ`. A missing `typ` is also accepted. */
  readonly types: readonly string[]
  readonly keys: Keys
  readonly now: () => number
}

export interface VerifiedGrantAssertion {
  readonly subject: string
  readonly claims: Readonly<Record<string, unknown>>
  /** Identifies the assertion at its issuer: its `jti`, or a hash if it has no `jti`. */
  readonly jti: string
  readonly expSec: number
}

export const maxSubjectLength = 1024

/** Returns the issuer in an unverified assertion, or the reason for the assertion's rejection. */
export function claimedIssuer(assertion: string): { readonly issuer: string } | string {
  const header = readAssertionHeader(assertion)
  if (typeof header === 'string') return header
  const { iss } = decodeUnverified(assertion)
  return typeof iss === 'string' ? { issuer: iss } : 'the assertion has no issuer'
}

function decodeUnverified(assertion: string): JWTPayload {
  try {
    return decodeJwt(assertion)
  } catch {
    return {}
  }
}

/**
 * Returns the verified assertion, or the reason for its rejection, in fixed wording. Rejects with OAuthClientError when
 * the keys are unavailable.
 */
export async function verifyGrantAssertion(
  assertion: string,
  rules: GrantAssertionRules,
): Promise<VerifiedGrantAssertion | string> {
  const claims = await verifyIssuerJwt(assertion, rules)
  return typeof claims === 'string' ? claims : checkClaims(assertion, claims, rules)
}

/**
 * Returns the claims of a JWT that an issuer signed for this server alone, or the reason for its rejection, in fixed
 * wording. Rejects with OAuthClientError when the keys are unavailable.
 */
export async function verifyIssuerJwt(
  assertion: string,
  { issuer, audiences, keys, types, now }: Omit<GrantAssertionRules, 'maxAgeMs'>,
): Promise<JWTPayload | string> {
  const header = readAssertionHeader(assertion)
  if (typeof header === 'string') return header
  // verifyJwt accepts additional audiences, so this function first checks that there is only one audience.
  const audience = soleAudience(decodeUnverified(assertion).aud)
  if (typeof audience !== 'string' || !audiences.includes(audience))
    return "the assertion's only audience must be this server"
  try {
    return await verifyJwt(assertion, { keys, issuer: issuer?.issuerUrl, audience, types, now })
  } catch (error) {
    if (error instanceof TokenRefused) return reasons[error.reason] ?? 'the assertion is malformed'
    throw error
  }
}

const reasons: Readonly<Partial<Record<TokenRefused['reason'], string>>> = {
  type: "the assertion's header has an unsupported typ",
  algorithm: "the assertion's algorithm is not allowed",
  key: "none of the issuer's keys matches the assertion",
  signature: "the assertion's signature is invalid",
  expired: 'the assertion has expired',
  not_yet_valid: 'the assertion is not valid yet',
  claims: "the assertion's claim set is missing or invalid",
}

function checkClaims(
  assertion: string,
  claims: JWTPayload,
  { issuer, maxAgeMs, now }: GrantAssertionRules,
): VerifiedGrantAssertion | string {
  const { sub, exp, iat, jti } = claims
  if (typeof sub !== 'string' || sub === '' || sub.length > maxSubjectLength)
    return 'the assertion has no usable sub'
  if (exp === undefined) return 'the assertion has no exp'
  if (jti !== undefined && (typeof jti !== 'string' || jti === '')) return "the assertion's jti is invalid"
  // The sender does not prove possession of the key that the assertion is bound to.
  if (Object.hasOwn(claims, 'cnf')) return 'the assertion is bound to a key'
  const violation =
    lifeViolation({ exp, iat }, maxAgeMs / 1000, now()) ?? platformViolation(issuer?.preset, claims)
  return violation ?? { subject: sub, claims, jti: jti ?? hashOf(assertion), expSec: exp }
}

/** Covers only the signed part, because a signature can have several encodings. */
function hashOf(assertion: string): string {
  return `sha256:${sha256(assertion.slice(0, assertion.lastIndexOf('.')))}`
}

/** Returns the reason why an assertion does not come from the platform that is declared for its issuer. */
function platformViolation(preset: TrustedIssuerSettings['preset'], claims: JWTPayload): string | undefined {
  if (preset === 'kubernetes' && !isServiceAccount(claims))
    return 'the assertion is not from a ServiceAccount'
  if (preset === 'github' && typeof claims['repository_id'] !== 'string')
    return 'the assertion is not from a GitHub workflow'
  // The token of a pipeline for a merge request from a fork contains the fork's project, and its ref is not protected.
  if (preset === 'gitlab' && claims['ref_protected'] !== 'true')
    return 'the assertion is not from a protected ref'
  return undefined
}

function isServiceAccount({ sub = '', 'kubernetes.io': about }: JWTPayload): boolean {
  const account = serviceAccountOf(sub)
  if (!account || !isFields(about) || !isFields(about['serviceaccount'])) return false
  return about['namespace'] === account.namespace && about['serviceaccount']['name'] === account.name
}
