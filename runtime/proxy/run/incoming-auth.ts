/**
 * Builds the proxy's incoming authentication from its settings, once the port is known.
 *
 * Source: docs/reference/specification/proxy-command.md#incoming, "Incoming (OIDC) flags" and --resource-url.
 */
import type { IncomingOidc, ProxySettings } from '../../config/index.ts'
import {
  type Authenticator,
  type DpopParts,
  type EmbeddedAuthServer,
  makeAuthenticator,
} from '../../incoming/index.ts'
import { followCaBundle, type Log } from '../../net/index.ts'
import { roleClaimsOf } from '../../outgoing/index.ts'
import type { ProxyAddress } from '../server/server.ts'

/**
 * Returns the authenticator for the --oidc-* settings, if any. `resourceUrl` overrides the derived URL. If the
 * authorization server is embedded, its keys are not fetched, and revoked grants are rejected.
 */
export function incomingFor(
  { oidc, issuers, dpop, resourceUrl, host, tls, proxyEnvironment, strategy }: ProxySettings,
  log: Log,
  parts: { readonly authServer?: EmbeddedAuthServer | undefined; readonly dpop?: DpopParts | undefined } = {},
): ((address: ProxyAddress) => Authenticator) | undefined {
  if (!oidc) return undefined
  const first = configOf(oidc, log)
  const others = issuers?.map((issuer) => ({
    ...configOf(issuer, log),
    issuer: issuer.issuer,
    audience: issuer.audience,
    subjectPrefix: issuer.subjectPrefix,
    groupPrefix: issuer.groupPrefix,
  }))
  return ({ port, url }) => {
    const own = `${new URL(url).protocol}//${host.includes(':') ? `[${host}]` : host}:${port}/mcp`
    const resource = resourceUrl ?? oidc.resource ?? own
    if (resourceUrl === undefined && oidc.resource === undefined) {
      log.info('no --resource-url set; using the listening address', { resource })
    }
    return makeAuthenticator(
      {
        type: 'oidc',
        oidc: { ...first, resource, scopes: oidc.scopes, dpop },
        issuers: others,
        groupClaims: roleClaimsOf([strategy]),
      },
      {
        log,
        proxy: proxyEnvironment,
        keys: parts.authServer?.keys,
        isLive: parts.authServer?.isLive,
        dpop: parts.dpop,
        clientCertificates: tls?.clientCaFile !== undefined,
      },
    )
  }
}

function configOf(oidc: IncomingOidc, log: Log) {
  return {
    issuer: oidc.issuer,
    audience: oidc.audience,
    clientId: oidc.clientId,
    clientSecret: oidc.clientSecret?.reveal(),
    introspectionUrl: oidc.introspectionUrl,
    jwksUrl: oidc.jwksUrl,
    tls: followCaBundle(oidc.caBundlePath, oidc.caBundleSetting, log),
    insecureAllowHttp: oidc.insecureAllowHttp,
    jwksAllowPrivateIp: oidc.allowPrivateIp,
    protectedResourceAllowPrivateIp: oidc.introspectionAllowPrivateIp,
    jwksAuthTokenPath: oidc.jwksAuthTokenPath,
    subject: oidc.subject,
    advertise: oidc.advertise,
  }
}
