/**
 * Decides how each origin is reached: directly, or through the HTTP proxy of the environment.
 *
 * Loopback, NO_PROXY entries and names that only the local resolver knows are reached directly. A proxy opens the
 * connection where our connector cannot check it, so the address rule applies before the proxy is asked:
 * - URLs that the operator wrote: the proxy resolves the name. Addresses that are known here and forbidden are refused.
 * - URLs that another server named: local names are refused; other names must resolve here, to allowed addresses only.
 *   `GATEHOUSE_PROXY_RESOLVES_NAMES=true` permits names that do not resolve here.
 */
import { type DialPolicy, isLocalName, serviceViolation } from '../../../schemas/index.ts'
import { unbracket } from '../addresses.ts'
import { AddressRefusedError, isRefusedLiteral, type LookupAll, resolvesToAllowed } from './address-rule.ts'
import { processProxyEnvironment, type ProxyEnvironment, proxyFor } from './proxy-environment.ts'
import { parseProxy, type ProxyServer } from './proxy-server.ts'

export interface RouteOptions {
  readonly policy: DialPolicy
  /** Default: the variables of this process. `directOnly` never uses a proxy. */
  readonly proxy?: ProxyEnvironment | undefined
  /** URLs that the operator wrote, compared by host and port. Default: all without a guard, none with one. */
  readonly operatorUrls?: OperatorUrls | undefined
  readonly resolve: LookupAll
  readonly timeoutMs: number
}

export type OperatorUrls = 'all' | readonly (string | undefined)[]

export interface Routes {
  /** False when requests to http origins are never sent through a proxy. */
  readonly hasHttpProxy: boolean
  /** The proxy for this origin; undefined for a direct connection. Throws HttpProxyError for an invalid variable. */
  proxyOf(origin: URL): ProxyServer | undefined
  /** Rejects with AddressRefusedError when the rule forbids this origin on the given route. */
  check(origin: URL, proxy: ProxyServer | undefined): Promise<void> | undefined
}

export function makeRoutes({ policy, resolve, timeoutMs, ...options }: RouteOptions): Routes {
  const environment = options.proxy ?? processProxyEnvironment()
  const isOperators = operatorCheck(options.operatorUrls ?? (policy === 'operator' ? 'all' : []))

  async function checkBehindProxy(origin: URL): Promise<void> {
    const host = unbracket(origin.hostname)
    if (await resolvesToAllowed(host, policy, { resolve, timeoutMs })) return
    if (isOperators(origin) || environment.resolvesNames === true) return
    throw new AddressRefusedError(
      host,
      'the name does not resolve here, so its address cannot be checked before the HTTP proxy connects to it; set GATEHOUSE_PROXY_RESOLVES_NAMES=true to rely on the proxy',
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
      if (policy === 'public' && isLocalName(host) && !isOperators(origin))
        throw new AddressRefusedError(host, 'another server named it, and it is a name of the local network')
      const violation = proxy && serviceViolation(origin.href)
      if (violation !== undefined) throw new AddressRefusedError(host, `it ${violation}`)
      // The other policies allow private networks: the lookup would refuse nothing that an operator can reach by name.
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
