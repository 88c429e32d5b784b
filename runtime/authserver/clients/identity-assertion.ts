/**
 * Verifies an identity assertion (ID-JAG): a JWT in which an identity provider allows a client to act for a user at
 * this server.
 *
 * The caller of this module authenticates the client, finds the binding and marks the assertion as used.
 * Source: draft-ietf-oauth-identity-assertion-authz-grant, section 4.4.1; MCP enterprise-managed authorization,
 * sections 7.2 to 7.4; RFC 9449 section 6.1 (cnf).
 */
import { decodeProtectedHeader, type JWTPayload } from 'jose'
import { isFields } from '../../../schemas/index.ts'
import { lifeViolation } from './client-assertion.ts'
import { type GrantAssertionRules, maxSubjectLength, verifyIssuerJwt } from './grant-assertion.ts'

/** Profile of the jwt-bearer grant, as listed in the metadata. */
export const identityAssertionProfile = 'urn:ietf:params:oauth:grant-profile:id-jag'

const type = 'oauth-id-jag+jwt'
const maxAgeSec = 300
const maxResources = 100
const maxScopeLength = 8_192

interface IdentityAssertionRules extends Omit<GrantAssertionRules, 'audiences' | 'maxAgeMs' | 'types'> {
  /** Issuer of this server, which must be the only audience. */
  readonly self: string
  /** The authenticated client. */
  readonly clientId: string
  /** Thumbprint of the key whose possession the request proves (DPoP). */
  readonly jkt: string | undefined
}

export interface VerifiedIdentityAssertion {
  readonly subject: string
  /** The user's tenant at a multi-tenant identity provider. */
  readonly tenant: string | undefined
  readonly claims: Readonly<Record<string, unknown>>
  readonly jti: string
  readonly expSec: number
  readonly authTimeSec: number | undefined
  /** Undefined if the assertion contains no scopes. */
  readonly scope: string | undefined
  /** Undefined if the assertion contains no resources. */
  readonly resources: readonly string[] | undefined
}

/** True if the unverified header declares an identity assertion. */
export function isIdentityAssertion(assertion: string): boolean {
  try {
    const { typ } = decodeProtectedHeader(assertion)
    return typeof typ === 'string' && typ.toLowerCase().replace(/^application\//, '') === type
  } catch {
    return false
  }
}

/**
 * Returns the verified assertion, or the reason for its rejection in fixed wording. Rejects with OAuthClientError when
 * the keys are unavailable.
 */
export async function verifyIdentityAssertion(
  assertion: string,
  rules: IdentityAssertionRules,
): Promise<VerifiedIdentityAssertion | string> {
  if (!isIdentityAssertion(assertion)) return "the assertion's header has an unsupported typ"
  const claims = await verifyIssuerJwt(assertion, { ...rules, audiences: [rules.self], types: [type] })
  if (typeof claims === 'string') return claims
  return claimViolation(claims, rules) ?? readClaims(claims)
}

function claimViolation(
  claims: JWTPayload,
  { clientId, jkt, now }: IdentityAssertionRules,
): string | undefined {
  const { exp, iat, client_id: client, cnf } = claims
  if (client !== clientId) return 'the assertion was issued to another client'
  if (exp === undefined || iat === undefined) return 'the assertion has no exp or no iat'
  if (Object.hasOwn(claims, 'cnf') && !(jkt !== undefined && isBoundTo(cnf, jkt)))
    return 'the assertion is bound to a key that the request does not prove'
  return lifeViolation({ exp, iat }, maxAgeSec, now())
}

/** Treats an unknown confirmation method as unproven. */
function isBoundTo(cnf: unknown, jkt: string): boolean {
  return isFields(cnf) && cnf['jkt'] === jkt && Object.keys(cnf).length === 1
}

function readClaims(claims: JWTPayload): VerifiedIdentityAssertion | string {
  const { sub, jti, exp = 0, tenant, scope, resource, auth_time: authTimeSec } = claims
  if (!isName(sub)) return 'the assertion has no usable sub'
  if (!isName(jti)) return 'the assertion has no usable jti'
  if (tenant !== undefined && !isName(tenant)) return "the assertion's tenant is invalid"
  if (scope !== undefined && (typeof scope !== 'string' || scope.length > maxScopeLength))
    return "the assertion's scope is invalid"
  const resources = typeof resource === 'string' ? [resource] : resource
  if (resources !== undefined && !isResourceList(resources)) return "the assertion's resource is invalid"
  if (authTimeSec !== undefined && !Number.isSafeInteger(authTimeSec))
    return "the assertion's auth_time is invalid"
  return {
    subject: sub,
    tenant,
    claims,
    jti,
    expSec: exp,
    authTimeSec: typeof authTimeSec === 'number' ? authTimeSec : undefined,
    scope,
    resources,
  }
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= maxSubjectLength && value.isWellFormed()
}

function isResourceList(value: unknown): value is readonly string[] {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.length <= maxResources &&
    value.every((item) => typeof item === 'string')
  )
}
