/**
 * A proxy's embedded authorization server: its required and conflicting settings, and how the client's credentials are
 * handled.
 *
 * By default, the validated token is replaced by the user's token from the upstream provider. An outgoing strategy or
 * the proxy's own login replaces this default. With disableUpstreamTokenInjection, the client's credentials are dropped
 * and none are added.
 * Source: docs/reference/specification/external-auth.md, type embeddedAuthServer, disableUpstreamTokenInjection,
 * Errors.
 */
import type { ProxySettings } from '../../config/index.ts'
import {
  addsCredentialAgain,
  type AuthServerFacts,
  certificateViolations,
  dpopViolations,
  pairingViolations,
} from '../../incoming/index.ts'
import type { StrategyConfig } from '../../outgoing/index.ts'

/** Client credentials that are dropped with disableUpstreamTokenInjection. */
export const strippedHeaders: readonly string[] = ['authorization', 'cookie', 'proxy-authorization']

/** Returns the conflicts between these settings and an embedded server, as "field: rule" lines. */
export function authServerViolations(config: ProxySettings, server: AuthServerFacts): readonly string[] {
  return [
    ...incomingViolations(config, server),
    ...certificateViolations(server, { clientCertificates: config.tls?.clientCaFile !== undefined }),
    ...outgoingViolations(config, server),
  ]
}

function incomingViolations(
  { oidc, dpop, resourceUrl }: ProxySettings,
  server: AuthServerFacts,
): readonly string[] {
  if (!oidc) return ['oidc: is required with an embedded authorization server, which issues the tokens']
  const resource = resourceUrl ?? oidc.resource
  if (oidc.audience === undefined && resource === undefined) {
    return ['oidc.audience: set audience or resourceUrl; tokens are issued for that value']
  }
  return [
    ...pairingViolations(server, { issuer: oidc.issuer, audience: oidc.audience, resource }, 'oidc'),
    ...dpopViolations(server, dpop, 'dpop'),
  ]
}

function outgoingViolations(
  { exchange, strategy, passAuthorization, remote, workers }: ProxySettings,
  server: AuthServerFacts,
): readonly string[] {
  const { upstreams } = server
  const type = exchange ? 'token_exchange' : strategy?.type
  const provider = strategy?.upstreamInject?.providerName
  return [
    ...(upstreams.length > 1 ? ['upstreamProviders: a proxy supports only one'] : []),
    ...(provider === undefined || upstreams.some(({ name }) => name === provider)
      ? []
      : [`outgoingAuth.upstreamInject.providerName: "${provider}" is not the name of an upstream provider`]),
    ...(addsCredentialAgain(type, server)
      ? [`disableUpstreamTokenInjection: conflicts with ${type}, which would add a credential again`]
      : []),
    ...(passAuthorization
      ? [
          'passAuthorization: must be off, because tokens from the embedded authorization server are only for this proxy',
        ]
      : []),
    ...(remote.kind === 'oauth' && exchange
      ? [
          'tokenExchange: the token from a login and the token from the upstream provider cannot both be exchanged',
        ]
      : []),
    ...(workers > 1 ? ['workers: an embedded authorization server requires a single process'] : []),
  ]
}

/** Returns the strategy that injects the upstream's token; undefined when the settings configure another strategy. */
export function swapStrategy(config: ProxySettings, server: AuthServerFacts): StrategyConfig | undefined {
  const [upstream] = server.upstreams
  const own =
    config.exchange ?? config.strategy ?? (config.remote.kind === 'none' ? undefined : config.remote)
  if (own || config.unauthenticated || server.disableUpstreamTokenInjection || !upstream) return undefined
  return { type: 'upstream_inject', upstreamInject: { providerName: upstream.name } }
}
