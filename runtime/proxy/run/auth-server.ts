/**
 * The embedded authorization server of a proxy: which settings it needs and excludes, and what becomes of the client's
 * credentials.
 *
 * By default the validated token is swapped for the person's token at the upstream provider. An outgoing strategy or a
 * login of the proxy replaces the swap. With disableUpstreamTokenInjection the client's credentials end here and none
 * is added.
 * Source: docs/reference/specification/external-auth.md, type embeddedAuthServer, disableUpstreamTokenInjection, Errors.
 */
import type { ProxySettings } from '../../config/index.ts'
import { addsCredentialAgain, type AuthServerFacts, pairingViolations } from '../../incoming/index.ts'
import type { StrategyConfig } from '../../outgoing/index.ts'

/** Credentials of the client that never travel on when the server strips them. */
export const strippedHeaders: readonly string[] = ['authorization', 'cookie', 'proxy-authorization']

/** Every error of these settings beside an embedded server, as "field: rule" lines. */
export function authServerViolations(config: ProxySettings, server: AuthServerFacts): readonly string[] {
  return [...incomingViolations(config, server), ...outgoingViolations(config, server)]
}

function incomingViolations(
  { oidc, resourceUrl }: ProxySettings,
  server: AuthServerFacts,
): readonly string[] {
  if (!oidc) return ['oidc: is required beside an embedded authorization server, which issues the tokens']
  const resource = resourceUrl ?? oidc.resource
  if (oidc.audience === undefined && resource === undefined) {
    return ['oidc.audience: set audience or resourceUrl, because tokens are issued for it']
  }
  return pairingViolations(server, { issuer: oidc.issuer, audience: oidc.audience, resource }, 'oidc')
}

function outgoingViolations(
  { exchange, strategy, passAuthorization, remote, workers }: ProxySettings,
  server: AuthServerFacts,
): readonly string[] {
  const { upstreams } = server
  const type = exchange ? 'token_exchange' : strategy?.type
  const provider = strategy?.upstreamInject?.providerName
  return [
    ...(upstreams.length > 1 ? ['upstreamProviders: a proxy supports one'] : []),
    ...(provider === undefined || upstreams.some(({ name }) => name === provider)
      ? []
      : [`outgoingAuth.upstreamInject.providerName: "${provider}" is not the name of an upstream provider`]),
    ...(addsCredentialAgain(type, server)
      ? [`disableUpstreamTokenInjection: excludes ${type}, which would add a credential again`]
      : []),
    ...(passAuthorization
      ? ['passAuthorization: the tokens of the embedded authorization server are for this proxy alone']
      : []),
    ...(remote.kind === 'oauth' && exchange
      ? ['tokenExchange: the token of a login and that of the upstream provider cannot both be exchanged']
      : []),
    ...(workers > 1 ? ['workers: an embedded authorization server needs a single process'] : []),
  ]
}

/** The swap for the upstream's token; undefined when the settings say otherwise. */
export function swapStrategy(config: ProxySettings, server: AuthServerFacts): StrategyConfig | undefined {
  const [upstream] = server.upstreams
  const own =
    config.exchange ?? config.strategy ?? (config.remote.kind === 'none' ? undefined : config.remote)
  if (own || config.unauthenticated || server.disableUpstreamTokenInjection || !upstream) return undefined
  return { type: 'upstream_inject', upstreamInject: { providerName: upstream.name } }
}
