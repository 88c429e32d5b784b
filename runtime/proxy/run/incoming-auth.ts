/**
 * Builds the proxy's incoming authentication from its settings once the port is known.
 *
 * Source: docs/reference/specification/proxy-command.md#incoming, "Incoming (OIDC) flags" and --resource-url.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { type ProxySettings, type IncomingOidc, rotatingSecret } from '../../config/index.ts'
import {
  type Authenticator,
  type EmbeddedAuthServer,
  type IncomingFetches,
  makeAuthenticator,
} from '../../incoming/index.ts'
import {
  type Caller,
  followCaBundle,
  type Log,
  makeFetch,
  type ProxyEnvironment,
  type TlsMaterial,
} from '../../net/index.ts'
import type { ProxyAddress } from '../server/server.ts'

/**
 * Returns the authenticator of the --oidc-* settings, if any. `resourceUrl` overrides the derived URL. With an embedded
 * authorization server, nothing is fetched, and revoked grants are rejected.
 */
export function incomingFor(
  { oidc, resourceUrl, host, proxyEnvironment }: ProxySettings,
  log: Log,
  authServer?: EmbeddedAuthServer,
): ((address: ProxyAddress) => Authenticator) | undefined {
  if (!oidc) return undefined
  const tls = followCaBundle(oidc.caBundlePath, oidc.caBundleSetting)
  return ({ port, url }) => {
    const own = `${new URL(url).protocol}//${host.includes(':') ? `[${host}]` : host}:${port}/mcp`
    const resource = resourceUrl ?? oidc.resource ?? own
    if (resourceUrl === undefined && oidc.resource === undefined) {
      log.info('no --resource-url set; using the listening address', { resource })
    }
    const fetches = keyFetches(oidc, proxyEnvironment, tls)
    const authenticator = makeAuthenticator(
      {
        type: 'oidc',
        oidc: {
          issuer: oidc.issuer,
          audience: oidc.audience,
          clientId: oidc.clientId,
          clientSecret: oidc.clientSecret?.reveal(),
          introspectionUrl: oidc.introspectionUrl,
          jwksUrl: oidc.jwksUrl,
          resource,
          scopes: oidc.scopes,
          tls,
          insecureAllowHttp: oidc.insecureAllowHttp,
          jwksAllowPrivateIp: oidc.allowPrivateIp,
          protectedResourceAllowPrivateIp: oidc.introspectionAllowPrivateIp,
        },
      },
      {
        log,
        proxy: proxyEnvironment,
        keys: authServer?.keys,
        isLive: authServer?.isLive,
        fetches,
      },
    )
    return oidc.subject === undefined ? authenticator : onlySubject(authenticator, oidc.subject)
  }
}

/**
 * Returns fetch functions for a key set that requires a token itself (an API server's). The token is read again for
 * each call.
 */
function keyFetches(
  oidc: IncomingOidc,
  proxy: ProxyEnvironment,
  tls: (() => TlsMaterial) | undefined,
): IncomingFetches | undefined {
  const path = oidc.jwksAuthTokenPath
  if (path === undefined) return undefined
  const operatorUrls = [oidc.issuer, oidc.jwksUrl, oidc.introspectionUrl]
  const shared = { tls, proxy, operatorUrls, allowHttp: oidc.insecureAllowHttp }
  const keys = makeFetch({ ...shared, guard: !oidc.allowPrivateIp, timeoutMs: 5_000 })
  const introspection = makeFetch({
    ...shared,
    guard: !oidc.introspectionAllowPrivateIp,
    timeoutMs: 10_000,
  })
  const token = rotatingSecret(path)
  return {
    keys: (url, init) => {
      const headers = new Headers(init?.headers)
      headers.set('authorization', `Bearer ${token().reveal()}`)
      return keys(url, { ...init, headers })
    },
    introspection,
    close: async () => {
      await Promise.all([keys.close(), introspection.close()])
    },
  }
}

/** Only accepts one subject's tokens. */
function onlySubject(authenticator: Authenticator, subject: string): Authenticator {
  function check(caller: Caller): Caller {
    if (caller.subject === subject) return caller
    throw new GatehouseError('INVALID_TOKEN')
  }
  return {
    ...authenticator,
    async stage(exchange) {
      await authenticator.stage(exchange)
      if (exchange.caller) check(exchange.caller)
    },
    async authenticate(authorization) {
      return check(await authenticator.authenticate(authorization))
    },
  }
}
