/**
 * What ties a virtual server's configuration to the embedded authorization server that it hosts.
 *
 * Names of providers in outgoing strategies are checked where strategies are made (runtime/outgoing).
 * Source: docs/reference/specification/virtual-server.md, spec.authServerConfig;
 * docs/reference/specification/external-auth.md, disableUpstreamTokenInjection and Errors.
 */
import type { VmcpConfig } from '../../config/index.ts'
import {
  type AuthServerFacts,
  type EmbeddedAuthServer,
  pairingViolations,
  secretNotes,
} from '../../incoming/index.ts'
import type { Metrics } from '../../observe/index.ts'

/** Every error of the configuration beside this server, as "field: rule" lines. */
export function embeddedViolations(config: VmcpConfig, server: AuthServerFacts): readonly string[] {
  const { oidc, type } = config.incomingAuth
  return [
    ...(type === 'oidc' && oidc
      ? pairingViolations(server, oidc, 'incomingAuth.oidc')
      : ['incomingAuth.type: must be oidc beside an embedded authorization server, which issues the tokens']),
    ...primaryViolations(config, server),
  ]
}

function primaryViolations({ incomingAuth }: VmcpConfig, { upstreams }: AuthServerFacts): readonly string[] {
  const primary = incomingAuth.authz?.primaryUpstreamProvider
  if (!primary || upstreams.some(({ name }) => name === primary)) return []
  return [
    `incomingAuth.authz.primaryUpstreamProvider: "${primary}" is not the name of an upstream provider, which are ${upstreams.map(({ name }) => name).join(', ')}`,
  ]
}

/** The configuration with the provider that policies read claims from, when only the authorization server names it. */
export function withPrimary(config: VmcpConfig, server: AuthServerFacts | undefined): VmcpConfig {
  const { authz } = config.incomingAuth
  const primary = server?.primaryUpstreamProvider
  if (!authz || !primary || authz.primaryUpstreamProvider) return config
  return {
    ...config,
    incomingAuth: { ...config.incomingAuth, authz: { ...authz, primaryUpstreamProvider: primary } },
  }
}

/** What an operator who looks at readiness should know of the server's keys. */
export function notesOf(server: EmbeddedAuthServer | undefined): readonly string[] {
  return server ? secretNotes(server.secretUses()) : []
}

/** Tells the metrics what still needs older HMAC secrets. */
export function countSecretUses(server: EmbeddedAuthServer | undefined, metrics: Metrics): void {
  for (const { position, records, refreshTokens } of server?.secretUses() ?? []) {
    metrics.authServerSecretUses(records, { secret: position, kind: 'records' })
    metrics.authServerSecretUses(refreshTokens, { secret: position, kind: 'refresh_tokens' })
  }
}
