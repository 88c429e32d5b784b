/**
 * Selects the route to an origin: directly, or through the HTTP proxy from the environment.
 *
 * Connections to loopback, NO_PROXY entries and local names are direct. Behind a proxy, our connector cannot check the
 * address, so the address rule applies before the connection to the proxy:
 * - URLs from the operator's configuration: the proxy resolves the name. Forbidden addresses are rejected if this
 *   process can identify them.
 * - URLs from other servers: local names are rejected; other names must resolve locally, and only to allowed addresses.
 *   `GATEHOUSE_PROXY_RESOLVES_NAMES=true` permits names that do not resolve locally.
 */
import { type DialPolicy, isLocalName, serviceViolation } from '../../../schemas/index.ts'
import { unbracket } from '../addresses.ts'
import { AddressRefusedError, isRefusedLiteral, type LookupAll, resolvesToAllowed } from './address-rule.ts'
import { processProxyEnvironment, type ProxyEnvironment, proxyFor } from './proxy-environment.ts'
import { parseProxy, type ProxyServer } from './proxy-server.ts'

export interface RouteOptions {
  readonly policy: DialPolicy
  /** HTTP proxies. Default: this process's environment variables. `directOnly` never uses a proxy. */
  readonly proxy?: ProxyEnvironment | undefined
  /**
   * URLs from the operator's configuration, compared by host and port. Default: all URLs if there is no guard;
   * otherwise, no URLs.
   */
  readonly operatorUrls?: OperatorUrls | undefined
  readonly resolve: LookupAll
  readonly timeoutMs: number
}

export type OperatorUrls = 'all' | readonly (string | undefined)[]

export interface Routes {
  /** False if requests to http origins never use a proxy. */
  readonly hasHttpProxy: boolean
  /**
   * Returns the proxy for this origin; undefined for a direct connection. Throws HttpProxyError for an invalid
   * variable.
   */
  proxyOf(origin: URL): ProxyServer | undefined
  /** Rejects with AddressRefusedError if the rule forbids this origin on the given route. */
  check(origin: URL, proxy: ProxyServer | undefined): Promise<void> | undefined
}

export function makeRoutes({ policy, resolve, timeoutMs, ...options }: RouteOptions): Routes {
  const environment = options.proxy ?? processProxyEnvironment()
  const isFromOperator = operatorCheck(options.operatorUrls ?? (policy === 'operator' ? 'all' : []))

  async function checkBehindProxy(origin: URL): Promise<void> {
    const host = unbracket(origin.hostname)
    if (await resolvesToAllowed(host, policy, { resolve, timeoutMs })) return
    if (isFromOperator(origin) || environment.resolvesNames === true) return
    throw new AddressRefusedError(
      host,
      'the name does not resolve locally, so its address cannot be checked before the HTTP proxy connects; set GATEHOUSE_PROXY_RESOLVES_NAMES=true to rely on the proxy',
    )
  }

  return {
    hasHttpProxy: environment.http !== undefined,
    proxyOf(origin) {
      const url = proxyFor(origin, environment)
      return url === undefined ? undefined : parseProxy(url, origin.protocol)
    },
    check(origin, proxy) {
      const host = unbracket(origin.hostname)
      if (isRefusedLiteral(host, policy)) throw new AddressRefusedError(host)
      if (policy === 'public' && isLocalName(host) && !isFromOperator(origin))
        throw new AddressRefusedError(host, 'the URL comes from another server and contains a local name')
      const violation = proxy && serviceViolation(origin.href)
      if (violation !== undefined) throw new AddressRefusedError(host, `it ${violation}`)
      // Skips the lookup under other policies, which allow private networks and would accept every name that an
      // operator can reach.
      const isChecked = policy === 'public' || policy === 'private'
      return proxy && isChecked ? checkBehindProxy(origin) : undefined
    },
  }
}

function operatorCheck(urls: OperatorUrls): (origin: URL) => boolean {
  if (urls === 'all') return () => true
  const hosts = new Set(urls.flatMap((url) => (url === undefined ? [] : [new URL(url).host])))
  return ({ host }) => hosts.has(host)
}
