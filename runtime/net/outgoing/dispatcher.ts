/**
 * Makes the pooled dispatchers that every outgoing HTTP call goes through.
 *
 * Two kinds: for addresses an operator wrote down (targets, typed endpoints), where only metadata and link-local
 * addresses are refused, and guarded, for backends and for URLs that somebody else named (challenges, metadata, client
 * documents). Streams are never cut for being quiet.
 * A guarded dispatcher does not use the HTTP proxy of the environment: the proxy would dial in its place, unchecked.
 */
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { getCACertificates } from 'node:tls'
import { Agent, type buildConnector, Dispatcher, Pool, ProxyAgent } from './undici.ts'
import { type ConnectorOptions, makeConnector } from './connector.ts'
import { dialTimeoutMs } from '../limits.ts'
import { serviceViolation } from '../../../schemas/index.ts'
import { type ProxyEnvironment, proxyFor } from './proxy-environment.ts'

export type { Dispatcher }
export type DispatchHandler = Dispatcher.DispatchHandler
export type DispatchController = Dispatcher.DispatchController

export interface DispatcherOptions extends Partial<ConnectorOptions> {
  /** The one origin that all requests go to; saves a look-up per request. Without it any origin is possible. */
  readonly origin?: string | undefined
  /** Gives ready sockets in place of dialling (tunnels). Everything about addresses and TLS is then the giver's. */
  readonly dial?: (() => Promise<Duplex>) | undefined
  /** Outgoing HTTP proxies; not used together with `guard`. */
  readonly proxy?: ProxyEnvironment | undefined
  /** Connections per origin; unlimited when absent. */
  readonly connections?: number | undefined
  /** Time until the response headers; 0 waits for ever. Default 60 s. A single request may override it. */
  readonly headersTimeoutMs?: number | undefined
  /** False opens a new connection per request (OAuth calls to hosts that somebody else named). */
  readonly keepAlive?: boolean | undefined
}

/**
 * Pools connections per origin. Every method of an undici Dispatcher works on the result; `close()` waits for requests
 * in flight, `destroy()` does not.
 */
export function makeDispatcher(options: DispatcherOptions = {}): Dispatcher {
  const guard = options.guard ?? false
  const reuse = options.keepAlive !== false
  const pool = {
    connections: options.connections ?? null,
    pipelining: reuse ? 1 : 0,
    bodyTimeout: 0,
    headersTimeout: options.headersTimeoutMs ?? 60_000,
    // Shorter than what servers and balancers usually keep, so that an idle connection is rarely closed under us.
    keepAliveTimeout: 30_000,
    keepAliveMaxTimeout: 600_000,
    allowH2: false,
  } as const
  const connect = options.dial ? dialWith(options.dial) : makeConnector({ ...options, guard })
  const direct =
    options.origin === undefined
      ? new Agent({ ...pool, connect })
      : new Pool(options.origin, { ...pool, connect })
  if (guard || options.proxy === undefined) return direct
  return new ProxyRoutes(direct, options.proxy, options.ca, pool)
}

/** undici needs of a socket what every duplex stream has; what only real sockets have, it asks for first. */
function isUsable(stream: Duplex): stream is Socket {
  return stream.writable && stream.readable
}

/** A connector in undici's callback form. */
function dialWith(dial: () => Promise<Duplex>): buildConnector.connector {
  async function connect(callback: buildConnector.Callback): Promise<void> {
    let socket: Duplex
    try {
      socket = await dial()
    } catch (error) {
      return callback(error instanceof Error ? error : new Error('no socket'), null)
    }
    if (isUsable(socket)) callback(null, socket)
    else callback(new Error('the tunnel gave no usable socket'), null)
  }
  return (_target, callback) => void connect(callback)
}

/** Sends each origin directly or through the HTTP proxy that the environment names for it. */
class ProxyRoutes extends Dispatcher {
  readonly #direct: Dispatcher
  readonly #environment: ProxyEnvironment
  readonly #make: (uri: string) => Dispatcher
  readonly #proxies = new Map<string, Dispatcher>()

  constructor(
    direct: Dispatcher,
    environment: ProxyEnvironment,
    ca: string | undefined,
    pool: Omit<ProxyAgent.Options, 'uri'>,
  ) {
    super()
    this.#direct = direct
    this.#environment = environment
    const tls = ca === undefined ? {} : { ca: [...getCACertificates('default'), ca] }
    const make = (uri: string) =>
      new ProxyAgent({
        ...pool,
        uri,
        requestTls: { timeout: dialTimeoutMs, ...tls },
        proxyTls: { timeout: dialTimeoutMs, ...tls },
      })
    this.#make = make
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const { origin } = options
    const uri = origin === undefined ? undefined : proxyFor(origin, this.#environment)
    // What nobody may reach is dialled directly: the connector refuses it, a proxy would not.
    if (uri === undefined || serviceViolation(String(origin)) !== undefined)
      return this.#direct.dispatch(options, handler)
    let proxy = this.#proxies.get(uri)
    if (!proxy) {
      // At most two: one per scheme of the environment.
      proxy = this.#make(uri)
      this.#proxies.set(uri, proxy)
    }
    return proxy.dispatch(options, handler)
  }

  override async close(): Promise<void> {
    await Promise.all([this.#direct, ...this.#proxies.values()].map((dispatcher) => dispatcher.close()))
  }

  override async destroy(): Promise<void> {
    await Promise.all([this.#direct, ...this.#proxies.values()].map((dispatcher) => dispatcher.destroy()))
  }
}
