/**
 * The embedded authorization server as the features that host it see it, and the rules that tie it to their own
 * settings. The server itself is another feature; runtime/cli hands it over.
 * Source: docs/reference/specification/external-auth.md#embeddedAuthServer, spec.embeddedAuthServer; docs/reference/specification/virtual-server.md, spec.authServerConfig.
 */
import type { AuthServerConfig } from '../config/index.ts'
import type { Caller, Exchange, Stage } from '../net/index.ts'
import type { Keys } from '../oauth/index.ts'
import type { UpstreamTokens } from '../outgoing/index.ts'
import { type OidcConfig, requiredAudience } from './config.ts'

/** What a host must know of the server's settings. */
export type AuthServerFacts = Pick<
  AuthServerConfig,
  'issuer' | 'allowedAudiences' | 'upstreams' | 'primaryUpstreamProvider' | 'disableUpstreamTokenInjection'
>

/** What still needs an older HMAC secret of the server. */
export interface SecretUse {
  /** Place in hmacSecretRefs; 0 is the current one. */
  readonly position: number
  readonly records: number
  readonly refreshTokens: number
}

export interface EmbeddedAuthServer {
  readonly config: AuthServerFacts
  /** The stage that handles this path (without query), or undefined when the path is the host's own. */
  routes(path: string): Stage<Exchange> | undefined
  /** Where users see and end what they have connected. */
  readonly accountsUrl: string
  /** Verify the server's tokens without asking anybody. */
  readonly keys: Keys
  readonly upstreamTokens: UpstreamTokens
  /** False when the grant behind the caller's token was revoked. Throws STORE_DOWN. */
  isLive(caller: Caller): Promise<boolean>
  /** What keeps the server from working right now; empty when it is ready. */
  notReady(): Promise<readonly string[]>
  /** One for each older HMAC secret; undefined while it is not known. */
  secretUses(): readonly SecretUse[] | undefined
}

/** True when a strategy adds a credential where `disableUpstreamTokenInjection` says that none is added. */
export function addsCredentialAgain(type: string | undefined, server: AuthServerFacts | undefined): boolean {
  return server?.disableUpstreamTokenInjection === true && (type === 'token_exchange' || type === 'cloud_sts')
}

/**
 * Errors of an OIDC block that stands beside an embedded server, as "field: rule" lines below `field`. The server is
 * the issuer, and its tokens are good for the resource that clients read in the protected-resource document.
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

/** Upstream tokens of nobody, for checks: only the names of the providers are known. */
export function providersOnly({ upstreams }: Pick<AuthServerFacts, 'upstreams'>): UpstreamTokens {
  return { providers: upstreams.map(({ name }) => name), get: async () => undefined }
}

/** Lines for whoever looks at /readyz: which older secrets may go. */
export function secretNotes(uses: readonly SecretUse[] | undefined): readonly string[] {
  if (uses === undefined) return ['older HMAC secrets: what still needs them is being counted']
  return uses.map(({ position, records, refreshTokens }) =>
    records + refreshTokens === 0
      ? `hmacSecretRefs[${position}] can be dropped`
      : `hmacSecretRefs[${position}] is still needed by ${records} stored records and ${refreshTokens} refresh tokens`,
  )
}
