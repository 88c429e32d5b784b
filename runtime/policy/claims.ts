/**
 * Selects the claims for policies: from the presented token, or from the caller's access token for the primary upstream
 * provider.
 *
 * The upstream token's signature is not verified. The token came directly from the provider in this installation's
 * login, and the caller cannot choose it.
 * Source: docs/reference/specification/virtual-server.md#incomingAuth, incomingAuth.authz.primaryUpstreamProvider.
 */
import { type Caller, clientSubject, workloadSubject } from '../net/index.ts'

export type Claims = Readonly<Record<string, unknown>>

/** The callers' upstream tokens. */
export interface UpstreamTokenSource {
  /** Prefixes of the subjects from other issuers, which no upstream subject may have. */
  readonly reserved?: readonly string[] | undefined
  /** Removes groups that belong to other issuers from upstream claims. */
  readonly ownGroups?: ((claims: Claims) => Claims) | undefined
  /**
   * Returns the caller's token; undefined for a caller without a token. Rejects with GatehouseError when the token is
   * currently unavailable.
   */
  get(
    caller: Caller,
    provider: string,
    signal?: AbortSignal,
  ): Promise<{ readonly accessToken: string; readonly idToken?: string | undefined } | undefined>
}

/**
 * False for a caller who never has upstream tokens: a machine, or a user from another issuer. For such a caller,
 * policies read the claims in the presented token.
 */
export function hasUpstreams({ facts }: Caller): boolean {
  return facts?.hasUpstreams ?? true
}

/** ID token claims to add when the access token contains none of these claims. */
const lentClaims = ['name', 'email'] as const

/**
 * Returns the claims of an upstream access token, or `own` for an opaque token. Adds the name and email from the ID token
 * if the claims lack them, except an email address that the provider has not verified. Returns undefined for an invalid
 * JWT, and for a subject that could be another caller's principal: a declared client, a subject of a trusted issuer, or
 * a user from one of the `reserved` issuers.
 */
export function claimsOfUpstream(
  accessToken: string,
  idToken: string | undefined,
  own: Claims,
  { reserved = [], ownGroups = (all) => all }: Pick<UpstreamTokenSource, 'reserved' | 'ownGroups'> = {},
): Claims | undefined {
  const parts = accessToken.split('.')
  // Every JWT in base64url starts like this, because the header of a JWT is a JSON object.
  if (parts.length !== 3 || !parts[0]?.startsWith('eyJ')) return withLentClaims(own, idToken)
  const payload = payloadOf(accessToken)
  if (!payload) return undefined
  const claims = ownGroups(payload)
  const { sub } = claims
  if (typeof sub === 'string' && isForeignSubject(sub, reserved)) return undefined
  return withLentClaims(claims, idToken)
}

function withLentClaims(claims: Claims, idToken: string | undefined): Claims {
  const lent = idToken === undefined ? undefined : payloadOf(idToken)
  const added = lentClaims.filter(
    (name) =>
      claims[name] === undefined &&
      lent?.[name] !== undefined &&
      !(name === 'email' && lent['email_verified'] === false),
  )
  return added.length === 0
    ? claims
    : { ...claims, ...Object.fromEntries(added.map((name) => [name, lent?.[name]])) }
}

/**
 * For a trusted issuer, the authorization server's subject consists of the issuer's URL, "#" and the issuer's subject.
 */
const trustedSubject = /^https?:\/\/[^#]*#/

function isForeignSubject(sub: string, reserved: readonly string[]): boolean {
  return (
    trustedSubject.test(sub) ||
    [clientSubject, workloadSubject, ...reserved].some((prefix) => sub.startsWith(prefix))
  )
}

/** Returns the unverified payload of a JWT, or undefined. */
function payloadOf(token: string): Claims | undefined {
  const [, payload = ''] = token.split('.')
  try {
    const claims: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString())
    return typeof claims === 'object' && claims !== null && !Array.isArray(claims)
      ? (claims as Claims)
      : undefined
  } catch {
    return undefined
  }
}
