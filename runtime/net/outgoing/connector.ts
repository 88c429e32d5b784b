/**
 * Opens the sockets of outgoing HTTP connections: TCP to the target or to the HTTP proxy (route.ts decides), then TLS,
 * each with its own timeout.
 *
 * The connector never dials an address that the policy rejects (schemas/addresses.ts), for http or https. The policy
 * covers literals in any notation and addresses resolved from a name. The connector tries only the allowed addresses of
 * a name, and dials exactly the checked address, which prevents rebinding.
 */
import { connect as connectTcp, isIPv6, type Socket } from 'node:net'
import { getCACertificates } from 'node:tls'
import { buildConnector } from './undici.ts'
import { type DialPolicy, isRefusedAddress } from '../../../schemas/index.ts'
import { unbracket } from '../addresses.ts'
import { dialTimeoutMs, tlsTimeoutMs } from '../limits.ts'
import { AddressRefusedError, guardedLookup, type LookupAll, resolveAll } from './address-rule.ts'
import type { ProxyEnvironment } from './proxy-environment.ts'
import { openTunnel, type ProxyServer, proxyUnreachable } from './proxy-server.ts'
import { makeRoutes, type OperatorUrls, type Routes } from './route.ts'

/**
 * The trusted certificates and the identity of a TLS client, in PEM format. The function must return the same object
 * until the contents change.
 */
export interface TlsMaterial {
  /** Certificates trusted in addition to the system's. */
  readonly ca?: string | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
  /** True to skip certificate verification. */
  readonly insecureSkipVerify?: boolean | undefined
}

export interface ConnectorOptions {
  /**
   * Address policy. `true` means `public`; `false` means `operator`, which rejects only link-local and metadata
   * addresses.
   */
  readonly guard: boolean | DialPolicy
  /** PEM certificates trusted in addition to the system's. */
  readonly ca?: string | undefined
  /** TLS material to use instead of `ca`. The connector rereads it for each new connection. */
  readonly tls?: (() => TlsMaterial) | undefined
  /** HTTP proxies. Default: the HTTP proxies in this process's environment variables. */
  readonly proxy?: ProxyEnvironment | undefined
  /**
   * URLs from the operator's configuration; see route.ts. Default: all URLs if `guard` is absent; otherwise, no URLs.
   */
  readonly operatorUrls?: OperatorUrls | undefined
  /** Replaces the system's resolver (for tests). */
  readonly lookup?: LookupAll | undefined
  readonly dialTimeoutMs?: number | undefined
  readonly tlsTimeoutMs?: number | undefined
}

function policyOf(guard: boolean | DialPolicy): DialPolicy {
  return typeof guard === 'string' ? guard : guard ? 'public' : 'operator'
}

/** Returns the routes for a connector with these options. */
export function routesOf(options: ConnectorOptions): Routes {
  return makeRoutes({
    policy: policyOf(options.guard),
    proxy: options.proxy,
    operatorUrls: options.operatorUrls,
    resolve: options.lookup ?? resolveAll,
    timeoutMs: options.dialTimeoutMs ?? dialTimeoutMs,
  })
}

/**
 * Creates an undici connector. Its callback receives AddressRefusedError, HttpProxyError, a system error or a TLS
 * error.
 */
export function makeConnector(
  options: ConnectorOptions,
  routes: Routes = routesOf(options),
): buildConnector.connector {
  const policy = policyOf(options.guard)
  const resolve = options.lookup ?? resolveAll
  const timeoutMs = options.dialTimeoutMs ?? dialTimeoutMs
  const tls = tlsOf(options)
  const trust = tlsOf(options, ({ ca }) => ({ ca }))

  async function throughProxy(proxy: ProxyServer, origin: URL): Promise<Socket> {
    const { url } = proxy
    let socket: Socket
    try {
      socket = await dial({
        host: unbracket(url.hostname),
        port: portOf(url),
        policy: 'operator',
        resolve,
        timeoutMs,
      })
      if (url.protocol === 'https:') socket = await secured(trust(), url, socket)
    } catch (error) {
      throw proxyUnreachable(proxy, error instanceof Error ? error : new Error(String(error)))
    }
    if (origin.protocol === 'http:') return socket
    return openTunnel(proxy, socket, `${origin.hostname}:${portOf(origin)}`, timeoutMs)
  }

  async function open(origin: URL): Promise<Socket> {
    const proxy = routes.proxyOf(origin)
    await routes.check(origin, proxy)
    if (proxy) return throughProxy(proxy, origin)
    return dial({ host: unbracket(origin.hostname), port: portOf(origin), policy, resolve, timeoutMs })
  }

  async function connect(target: buildConnector.Options, callback: buildConnector.Callback): Promise<void> {
    const { protocol, hostname, port } = target
    // Adds brackets, which undici removes from IPv6 addresses.
    const host = isIPv6(hostname) ? `[${hostname}]` : hostname
    let socket: Socket
    try {
      socket = await open(new URL(`${protocol}//${host}${port ? `:${port}` : ''}`))
    } catch (error) {
      return callback(error instanceof Error ? error : new Error(String(error)), null)
    }
    if (protocol === 'https:') tls()({ ...target, httpSocket: socket }, callback)
    else callback(null, socket)
  }
  return (target, callback) => void connect(target, callback)
}

function portOf(url: URL): number {
  return Number(url.port || (url.protocol === 'https:' ? 443 : 80))
}

interface Dial {
  readonly host: string
  readonly port: number
  readonly policy: DialPolicy
  readonly resolve: LookupAll
  readonly timeoutMs: number
}

/** Opens a TCP connection to an allowed address of the host. */
function dial({ host, port, policy, resolve, timeoutMs }: Dial): Promise<Socket> {
  return new Promise((done, reject) => {
    const socket = connectTcp({
      host,
      port,
      lookup: guardedLookup(policy, resolve),
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: 60_000,
    })
    const timer = setTimeout(() => socket.destroy(dialTimeout(host)), timeoutMs)

    function onError(error: Error): void {
      clearTimeout(timer)
      reject(error)
    }
    socket.once('error', onError)
    socket.once('connect', () => {
      clearTimeout(timer)
      socket.off('error', onError)
      // Checks the peer's actual address. The lookup has checked only the name.
      if (isRefusedAddress(socket.remoteAddress ?? '', policy)) {
        socket.destroy()
        reject(new AddressRefusedError(host))
      } else done(socket)
    })
  })
}

/** Starts TLS with an HTTP proxy over a socket. */
function secured(
  connect: buildConnector.connector,
  { hostname, host, port }: URL,
  httpSocket: Socket,
): Promise<Socket> {
  return new Promise((done, reject) => {
    connect({ hostname, host, protocol: 'https:', port, httpSocket }, (error, socket) => {
      if (socket) done(socket)
      else reject(error ?? new Error('no TLS connection'))
    })
  })
}

/** Returns a getter for the TLS connector, which is rebuilt when the TLS material has changed. */
function tlsOf(
  options: Pick<ConnectorOptions, 'ca' | 'tls' | 'tlsTimeoutMs'>,
  select: (from: TlsMaterial) => TlsMaterial = (from) => from,
) {
  const fixed: TlsMaterial = { ca: options.ca }
  let made: { readonly from: TlsMaterial; readonly connect: buildConnector.connector } | undefined
  return function connector(): buildConnector.connector {
    const from = options.tls?.() ?? fixed
    if (made?.from !== from) {
      const { ca, cert, key, insecureSkipVerify } = select(from)
      const connect = buildConnector({
        timeout: options.tlsTimeoutMs ?? tlsTimeoutMs,
        allowH2: false,
        minVersion: 'TLSv1.2',
        ...(ca === undefined ? {} : { ca: [...getCACertificates('default'), ca] }),
        ...(cert === undefined || key === undefined ? {} : { cert, key }),
        ...(insecureSkipVerify ? { rejectUnauthorized: false } : {}),
      })
      made = { from, connect }
    }
    return made.connect
  }
}

function dialTimeout(host: string): Error {
  return Object.assign(new Error(`connection to ${host} timed out`), { code: 'ETIMEDOUT' })
}
