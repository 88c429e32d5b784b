/**
 * Reads the access tokens that a client gets for a user of an identity provider (ID-JAG).
 *
 * Such a token has no session. `binding_id` identifies the binding that the token depends on
 * (clients/assertion-policies.ts). The token is valid while the binding and its client are in the configuration, unless
 * the token's `jti` is revoked.
 * Source: RFC 9068; draft-ietf-oauth-identity-assertion-authz-grant.
 */
import type { Caller } from '../../net/index.ts'
import { isClientDocumentUrl } from '../../oauth/index.ts'

export interface AssertedClaims {
  /** The binding, and the client if it is declared. A client with a metadata document cannot be removed. */
  readonly dependsOn: readonly string[]
  readonly iat: number
  readonly jti: string
}

/** True for a token that belongs to another identity provider's user. Such a token belongs to the client. */
export function isAsserted(claims: object): boolean {
  return Object.hasOwn(claims, 'binding_id')
}

/** Returns the claims that determine whether the token is live; undefined for malformed claims. */
export function assertedClaims({ claims }: Pick<Caller, 'claims'>): AssertedClaims | undefined {
  const { binding_id: bindingId, client_id: clientId, iat, jti } = claims
  if (typeof bindingId !== 'string' || typeof clientId !== 'string') return undefined
  if (typeof iat !== 'number' || typeof jti !== 'string') return undefined
  return { dependsOn: isClientDocumentUrl(clientId) ? [bindingId] : [bindingId, clientId], iat, jti }
}
