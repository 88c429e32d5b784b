/**
 * Which claims the policies see: those of the token that the caller presented, or those of the access token that the
 * caller has at the primary upstream provider.
 *
 * The upstream token is read without checking its signature: it came straight from the provider, over the login that
 * this installation made, and is not the caller's to choose.
 * Source: docs/specification/virtual-server.md#incomingAuth, incomingAuth.authz.primaryUpstreamProvider.
 */
import type { Caller } from '../net/index.ts'

export type Claims = Readonly<Record<string, unknown>>

/** Tokens that callers have at upstream providers. */
export interface UpstreamTokenSource {
  /** Undefined when the caller has none. Rejects with GatehouseError when it cannot be had now. */
  get(
    caller: Caller,
    provider: string,
    signal?: AbortSignal,
  ): Promise<{ readonly accessToken: string; readonly idToken?: string | undefined } | undefined>
}

/** Claims that the ID token lends when the access token has none of them. */
const lentClaims = ['name', 'email'] as const

/**
 * The claims of an upstream access token, with name and email of the ID token where it has none; `own` when the token
 * is opaque; undefined when it looks like a JWT and is none.
 */
export function claimsOfUpstream(
  accessToken: string,
  idToken: string | undefined,
  own: Claims,
): Claims | undefined {
  const parts = accessToken.split('.')
  // A header of a JWT is an object, which in base64url begins like this.
  if (parts.length !== 3 || !parts[0]?.startsWith('eyJ')) return own
  const claims = payloadOf(accessToken)
  if (!claims) return undefined
  const lent = idToken === undefined ? undefined : payloadOf(idToken)
  const added = lentClaims.filter((name) => claims[name] === undefined && lent?.[name] !== undefined)
  return added.length === 0
    ? claims
    : { ...claims, ...Object.fromEntries(added.map((name) => [name, lent?.[name]])) }
}

/** The payload of a JWT, unverified; undefined when there is none. */
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
