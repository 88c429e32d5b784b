/**
 * Signs and reads the access tokens that a client gets for a user of an identity provider (ID-JAG).
 *
 * Such a token has no session. `binding_id` identifies the binding that it depends on (clients/assertion-policies.ts).
 * The token is valid while the binding and its client are in the configuration, unless its `jti` is revoked.
 * Source: RFC 9068; draft-ietf-oauth-identity-assertion-authz-grant.
 */
import { randomUUID } from 'node:crypto'
import type { Caller } from '../../net/index.ts'
import { isClientDocumentUrl } from '../../oauth/index.ts'
import type { MachineAuthMethod } from '../model/records.ts'
import { boundTo, signJwt } from './jwt.ts'
import type { KeyRing } from './key-ring.ts'

export interface AssertedClaims {
  /** Binding, and the client if it is declared. A client with a metadata document cannot be removed. */
  readonly dependsOn: readonly string[]
  readonly iat: number
  readonly jti: string
}

/** True for the token of a user of another identity provider. Its holder is the client. */
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

export function signAssertedToken(
  keys: KeyRing,
  request: {
    readonly bindingId: string
    readonly clientId: string
    readonly subject: string
    readonly authMethod: MachineAuthMethod
    readonly authTimeSec: number | undefined
    readonly scopes: readonly string[]
    readonly audience: string
    readonly issuer: string
    readonly nowSec: number
    readonly lifeSec: number
    /** Thumbprint of the key that the token is bound to. */
    readonly jkt: string | undefined
  },
): Promise<string> {
  const { scopes, nowSec, jkt } = request
  return signJwt(keys.signing, 'at+jwt', {
    iss: request.issuer,
    sub: request.subject,
    aud: [request.audience],
    exp: nowSec + request.lifeSec,
    iat: nowSec,
    jti: randomUUID(),
    client_id: request.clientId,
    auth_method: request.authMethod,
    auth_time: request.authTimeSec,
    scope: scopes.join(' '),
    scp: [...scopes],
    binding_id: request.bindingId,
    ...boundTo(jkt),
  })
}
