/**
 * The interface through which the proxy and the virtual server use the embedded authorization server, and the rules
 * for their settings. The server is implemented in another feature, and runtime/cli passes it in.
 * Source: docs/reference/specification/external-auth.md#embeddedAuthServer, spec.embeddedAuthServer;
 * docs/reference/specification/virtual-server.md, spec.authServerConfig.
 */
import { type Dpop, dpopModeViolation } from '../../schemas/index.ts'
import type { AuthServerConfig } from '../config/index.ts'
import type { Caller, Exchange, Stage } from '../net/index.ts'
import type { Keys } from '../oauth/index.ts'
import type { UpstreamTokens } from '../outgoing/index.ts'
import type { DpopParts } from './dpop.ts'
import { type OidcConfig, requiredAudience } from './config.ts'

/** Settings of the embedded server that its host reads. */
export type AuthServerFacts = Pick<
  AuthServerConfig,
  | 'issuer'
  | 'allowedAudiences'
  | 'upstreams'
  | 'primaryUpstreamProvider'
  | 'disableUpstreamTokenInjection'
  | 'dpop'
  | 'bindsCertificates'
>

/** Number of records and tokens that still use an older HMAC secret of the server. */
export interface SecretUse {
  /** Index in hmacSecretRefs; 0 is the current secret. */
  readonly position: number
  readonly records: number
  readonly refreshTokens: number
}

export interface EmbeddedAuthServer {
  readonly config: AuthServerFacts
  /** Returns the stage that handles this path (without its query); undefined if the path belongs to the host. */
  routes(path: string): Stage<Exchange> | undefined
  /** URL of the page where users manage their connected accounts. */
  readonly accountsUrl: string
  /** Keys that verify the server's tokens without a network request. */
  readonly keys: Keys
  readonly upstreamTokens: UpstreamTokens
  /** The store in which the host marks DPoP proofs as used, and the secrets for its nonces. */
  readonly dpop: DpopParts
  /** Returns false if the grant behind the caller's token was revoked. Throws STORE_DOWN. */
  isLive(caller: Caller): Promise<boolean>
  /** Returns the reasons why the server is not ready; empty when it is ready. */
  notReady(): Promise<readonly string[]>
  /** Returns the number of uses of each older HMAC secret; undefined until they have been counted. */
  secretUses(): readonly SecretUse[] | undefined
}

/** True if a strategy adds a credential even though `disableUpstreamTokenInjection` is set. */
export function addsCredentialAgain(type: string | undefined, server: AuthServerFacts | undefined): boolean {
  return server?.disableUpstreamTokenInjection === true && (type === 'token_exchange' || type === 'cloud_sts')
}

/**
 * Returns the errors in an OIDC block that is combined with an embedded server, as "field: rule" lines under `field`.
 * The server is the issuer, and its tokens are issued for the resource named in the protected-resource document.
 */
export function pairingViolations(
  { issuer, allowedAudiences }: Pick<AuthServerFacts, 'issuer' | 'allowedAudiences'>,
  oidc: OidcConfig,
  field: string,
): readonly string[] {
  const audience = requiredAudience(oidc)
  return [
    ...(oidc.issuer === issuer
      ? []
      : [`${field}.issuer: must be ${issuer}, the issuer of the embedded authorization server`]),
    ...(allowedAudiences.includes(audience)
      ? []
      : [
          `${field}.audience: must be one of the embedded authorization server's allowedAudiences, which are ${allowedAudiences.join(', ')}`,
        ]),
    ...(oidc.resource === undefined || oidc.resource === audience
      ? []
      : [`${field}.resource: must equal the audience, because tokens are issued for the resource`]),
  ]
}

/**
 * Returns the error as a "field: rule" line if the host would reject the tokens that the embedded server issues. `own`
 * is the host's `dpop` setting.
 */
export function dpopViolations(
  { dpop }: Pick<AuthServerFacts, 'dpop'>,
  own: Dpop | undefined,
  field: string,
): readonly string[] {
  const violation = dpopModeViolation(dpop, own)
  return violation === undefined ? [] : [`${field}.mode: ${violation}`]
}

/**
 * Returns the error if the embedded server binds tokens to certificates, but the listener does not request
 * certificates.
 */
export function certificateViolations(
  { bindsCertificates }: Pick<AuthServerFacts, 'bindsCertificates'>,
  { clientCertificates }: { readonly clientCertificates: boolean },
): readonly string[] {
  if (bindsCertificates !== true || clientCertificates) return []
  return [
    'tlsClientCertificateBoundAccessTokens: requires --tls-client-ca-file, because only this listener can check certificates',
  ]
}

/** Returns upstream tokens that have no values, for checks that need only the provider names. */
export function providersOnly({ upstreams }: Pick<AuthServerFacts, 'upstreams'>): UpstreamTokens {
  return { providers: upstreams.map(({ name }) => name), get: async () => undefined }
}

/** Returns the lines for /readyz about older secrets that can be removed. */
export function secretNotes(uses: readonly SecretUse[] | undefined): readonly string[] {
  if (uses === undefined) return ['counting the remaining uses of older HMAC secrets']
  return uses.map(({ position, records, refreshTokens }) =>
    records + refreshTokens === 0
      ? `hmacSecretRefs[${position}] can be removed`
      : `hmacSecretRefs[${position}] is still used by ${records} stored records and ${refreshTokens} refresh tokens`,
  )
}
