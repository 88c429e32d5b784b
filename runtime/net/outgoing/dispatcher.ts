/**
 * Creates the connection pools for all outgoing HTTP requests.
 *
 * There are two kinds. Unguarded dispatchers are for addresses from the operator's configuration (targets, typed
 * endpoints), and reject only metadata and link-local addresses. Guarded dispatchers are for backends and for URLs from
 * other servers (challenges, metadata, client documents). Idle streams stay open. All dispatchers use the HTTP proxy
 * from the environment; see route.ts.
 */
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Agent, type buildConnector, Dispatcher, Pool } from './undici.ts'
import { type ConnectorOptions, makeConnector, routesOf } from './connector.ts'
import { proxyRefused, type ProxyServer } from './proxy-server.ts'
import type { Routes } from './route.ts'

export type { Dispatcher }
export type DispatchHandler = Dispatcher.DispatchHandler
export type DispatchController = Dispatcher.DispatchController

export interface DispatcherOptions extends Partial<ConnectorOptions> {
  /**
   * Origin of all requests, which saves a lookup for each request. Without an origin, requests may go to any origin.
   */
  readonly origin?: string | undefined
  /**
   * Provides connected sockets instead of dialing (tunnels). The provider is then responsible for address checks and
   * TLS.
   */
  readonly dial?: (() => Promise<Duplex>) | undefined
  /** Maximum number of connections per origin. Default: unlimited. */
  readonly connections?: number | undefined
  /** Timeout for the response headers; 0 disables it. Default: 60 s. Individual requests may override it. */
  readonly headersTimeoutMs?: number | undefined
  /** If false, opens a new connection for each request (OAuth requests to hosts that other servers specify). */
  readonly keepAlive?: boolean | undefined
}

/**
 * Returns a dispatcher with a connection pool per origin. `close()` waits for requests in flight; `destroy()` does
 * not.
 */
export function makeDispatcher(options: DispatcherOptions = {}): Dispatcher {
  const reuse = options.keepAlive !== false
  const pool = {
    connections: options.connections ?? null,
    pipelining: reuse ? 1 : 0,
    bodyTimeout: 0,
    headersTimeout: options.headersTimeoutMs ?? 60_000,
    // Idle timeout. Shorter than the usual idle timeout of servers and load balancers, which then rarely close an idle
    // connection first.
    keepAliveTimeout: 30_000,
    keepAliveMaxTimeout: 600_000,
    allowH2: false,
  } as const
  const connector = { ...options, guard: options.guard ?? false }
  const routes = routesOf(connector)
  const connect = options.dial ? dialWith(options.dial) : makeConnector(connector, routes)
  const pooled =
    options.origin === undefined
      ? new Agent({ ...pool, connect })
      : new Pool(options.origin, { ...pool, connect })
  return options.dial || !routes.hasHttpProxy ? pooled : new AbsoluteForm(pooled, routes, options.origin)
}

/**
 * The cast is safe, because undici requires only the duplex stream methods of a socket and checks for the other
 * methods.
 */
function isUsable(stream: Duplex): stream is Socket {
  return stream.writable && stream.readable
}

/** A connector with undici's callback signature. */
function dialWith(dial: () => Promise<Duplex>): buildConnector.connector {
  async function connect(callback: buildConnector.Callback): Promise<void> {
    let socket: Duplex
    try {
      socket = await dial()
    } catch (error) {
      return callback(error instanceof Error ? error : new Error('no socket'), null)
    }
    if (isUsable(socket)) callback(null, socket)
    else callback(new Error('the tunnel returned no usable socket'), null)
  }
  return (_target, callback) => void connect(callback)
}

/**
 * Sends requests for http origins to an HTTP proxy in absolute form. The connector opens the connection to the proxy.
 */
class AbsoluteForm extends Dispatcher {
  readonly #inner: Dispatcher
  readonly #routes: Routes
  readonly #origin: string | undefined

  constructor(inner: Dispatcher, routes: Routes, origin: string | undefined) {
    super()
    this.#inner = inner
    this.#routes = routes
    this.#origin = origin
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const origin = new URL(options.origin ?? this.#origin ?? '')
    const proxy = origin.protocol === 'http:' ? this.#proxyOf(origin) : undefined
    if (!proxy) return this.#inner.dispatch(options, handler)
    const headers = proxy.authorization === undefined ? options.headers : authorized(options.headers, proxy)
    const request = { ...options, path: origin.origin + options.path, ...(headers ? { headers } : {}) }
    return this.#inner.dispatch(request, new ProxyAwareHandler(handler, proxy, origin.host))
  }

  /** Ignores an invalid variable, which the connector reports. */
  #proxyOf(origin: URL): ProxyServer | undefined {
    try {
      return this.#routes.proxyOf(origin)
    } catch {
      return undefined
    }
  }

  override close(): Promise<void> {
    return this.#inner.close()
  }

  override destroy(): Promise<void> {
    return this.#inner.destroy()
  }
}

/** Adds the proxy credentials to headers, in any format that undici accepts. */
function authorized(headers: Dispatcher.DispatchOptions['headers'], { authorization = '' }: ProxyServer) {
  const name = 'proxy-authorization'
  if (Array.isArray(headers)) return [...headers, name, authorization]
  if (!headers || !(Symbol.iterator in headers)) return { ...headers, [name]: authorization }
  const entries: [string, string | string[] | undefined][] = [...headers, [name, authorization]]
  return entries
}

/** Converts a 407 response, which only the proxy sends, to an error. */
class ProxyAwareHandler implements DispatchHandler {
  readonly #inner: DispatchHandler
  readonly #proxy: ProxyServer
  readonly #target: string
  #hasFailed = false

  constructor(inner: DispatchHandler, proxy: ProxyServer, target: string) {
    this.#inner = inner
    this.#proxy = proxy
    this.#target = target
  }

  onRequestStart(controller: DispatchController, context: unknown): void {
    this.#inner.onRequestStart?.(controller, context)
  }

  onRequestUpgrade(...args: Parameters<NonNullable<DispatchHandler['onRequestUpgrade']>>): void {
    this.#inner.onRequestUpgrade?.(...args)
  }

  onResponseStarted(): void {
    this.#inner.onResponseStarted?.()
  }

  onResponseStart(...args: Parameters<NonNullable<DispatchHandler['onResponseStart']>>): void {
    const [controller, status] = args
    if (status !== 407) return this.#inner.onResponseStart?.(...args)
    this.#hasFailed = true
    controller.abort(proxyRefused(this.#proxy, this.#target, status))
  }

  onResponseData(controller: DispatchController, chunk: Buffer): void {
    if (!this.#hasFailed) this.#inner.onResponseData?.(controller, chunk)
  }

  onResponseEnd(...args: Parameters<NonNullable<DispatchHandler['onResponseEnd']>>): void {
    if (!this.#hasFailed) this.#inner.onResponseEnd?.(...args)
  }

  onResponseError(controller: DispatchController, error: Error): void {
    this.#inner.onResponseError?.(controller, error)
  }

  onBodySent(chunk: Buffer): void {
    this.#inner.onBodySent?.(chunk)
  }

  onRequestSent(): void {
    this.#inner.onRequestSent?.()
  }
}
