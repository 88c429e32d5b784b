/**
 * Connects the configuration of a virtual server to its embedded authorization server.
 *
 * Provider names in outgoing strategies are checked when the strategies are created (runtime/outgoing).
 * Source: docs/reference/specification/virtual-server.md, spec.authServerConfig;
 * docs/reference/specification/external-auth.md, disableUpstreamTokenInjection and Errors.
 */
import type { VmcpConfig } from '../../config/index.ts'
import {
  type AuthServerFacts,
  dpopViolations,
  type EmbeddedAuthServer,
  pairingViolations,
  secretNotes,
} from '../../incoming/index.ts'
import type { Metrics } from '../../observe/index.ts'

/** Lists settings that conflict with the embedded authorization server, as `field: rule` lines. */
export function embeddedViolations(config: VmcpConfig, server: AuthServerFacts): readonly string[] {
  const { dpop, oidc, type } = config.incomingAuth
  return [
    ...(type === 'oidc' && oidc
      ? pairingViolations(server, oidc, 'incomingAuth.oidc')
      : ['incomingAuth.type: must be oidc, because an embedded authorization server issues the tokens']),
    ...dpopViolations(server, dpop, 'incomingAuth.dpop'),
    ...primaryViolations(config, server),
  ]
}

function primaryViolations({ incomingAuth }: VmcpConfig, { upstreams }: AuthServerFacts): readonly string[] {
  const primary = incomingAuth.authz?.primaryUpstreamProvider
  if (!primary || upstreams.some(({ name }) => name === primary)) return []
  return [
    `incomingAuth.authz.primaryUpstreamProvider: unknown upstream provider "${primary}"; known providers: ${upstreams.map(({ name }) => name).join(', ')}`,
  ]
}

/**
 * Returns the configuration with the provider from which policies read claims. Adds this provider if it appears only
 * in the authorization server's configuration.
 */
export function withPrimaryProvider(config: VmcpConfig, server: AuthServerFacts | undefined): VmcpConfig {
  const { authz } = config.incomingAuth
  const primary = server?.primaryUpstreamProvider
  if (!authz || !primary || authz.primaryUpstreamProvider) return config
  return {
    ...config,
    incomingAuth: { ...config.incomingAuth, authz: { ...authz, primaryUpstreamProvider: primary } },
  }
}

/** Returns notes about the server's keys for `/readyz`. */
export function readinessNotes(server: EmbeddedAuthServer | undefined): readonly string[] {
  return server ? secretNotes(server.secretUses()) : []
}

/** Counts the records and tokens that still require an older HMAC secret. */
export function countSecretUses(server: EmbeddedAuthServer | undefined, metrics: Metrics): void {
  for (const { position, records, refreshTokens } of server?.secretUses() ?? []) {
    metrics.authServerSecretUses(records, { secret: position, kind: 'records' })
    metrics.authServerSecretUses(refreshTokens, { secret: position, kind: 'refresh_tokens' })
  }
}
