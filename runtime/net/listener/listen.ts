/**
 * The HTTP/1.1 listener: socket limits, responses to malformed requests, upgrades and graceful shutdown. The listener
 * closes a connection in stages if it has not read the complete request.
 *
 * `handler` routes, authenticates and reads bodies (see pipeline.ts). With a certificate, the listener serves only TLS;
 * a new certificate applies to new connections. Shutdown has five steps: stop accepting connections; end event streams
 * and upgraded sockets; answer further requests on open connections with `Connection: close`; close connections that
 * stay idle after a short delay, because a request may be in transit; destroy the remaining connections at the end of
 * the grace period.
 * Source: docs/reference/specification/proxy-command.md#listener (listener flags), limits; RFC 9112 section 9.6.
 */
import { once } from 'node:events'
import { type IncomingMessage, type Server, ServerResponse } from 'node:http'
import { Server as NetServer, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { ServedCertificate } from '../../../schemas/certificate/index.ts'
import type { Exchange } from '../pipeline.ts'
import { type ListenerLimits, listenerLimits } from '../limits.ts'
import { type Log, limitToOncePerMinute } from '../log.ts'
import { type LocalTokens, requireToken } from './local-tokens.ts'
import { openServer } from './open-server.ts'
import { closeInStages } from './staged-close.ts'
import { closeStalledConnections } from './stalled.ts'
import { limitUnfinishedHeaders, type HeaderState } from './unfinished-headers.ts'

/** Handles a request. The listener ignores the returned value, and a returned promise never rejects. */
export type RequestHandler = (req: IncomingMessage, res: ServerResponse) => unknown
/**
 * Handles an upgrade. `res` writes an error response to the raw socket. A handler that takes over the socket calls
 * `res.detachSocket` first.
 */
export type UpgradeHandler = (req: IncomingMessage, res: ServerResponse, socket: Duplex, head: Buffer) => void

export interface ListenOptions {
  /** IP address or name to bind to. */
  readonly host: string
  /** Port to bind; 0 lets the kernel choose. */
  readonly port: number
  readonly handler: RequestHandler
  /**
   * Handles WebSocket upgrades. The listener ignores `Upgrade` for other protocols, and for all protocols without this
   * handler.
   */
  readonly onUpgrade?: UpgradeHandler
  readonly log: Log
  readonly limits?: Partial<ListenerLimits>
  /** Provides connections instead of binding an address. */
  readonly connections?: ConnectionSource | undefined
  /** Certificate for TLS. The caller must close the `ServedCertificate`. */
  readonly certificate?: ServedCertificate | undefined
  /**
   * `request`: asks clients for a certificate if `certificate` contains an authority for client certificates. The
   * listener also serves clients without a certificate, such as probes and browsers. See `certificateThumbprint`.
   * Default: clients are not asked for a certificate.
   */
  readonly clientCertificates?: 'request' | undefined
  /** Rejects requests without one of these tokens. Default: no token is required. */
  readonly localTokens?: LocalTokens | undefined
}

/** Supplies connections to an address that another process has bound. */
export interface ConnectionSource {
  readonly address: string
  readonly port: number
  /** Passes each connection to `accept` until the returned function is called. */
  take(accept: (socket: Socket) => void): () => void
}

export interface Listener {
  /** Origin of the listener: `http://host:port` or `https://host:port`, IPv6 in brackets. */
  readonly url: string
  readonly port: number
  /** The bound address. */
  readonly address: string
  /**
   * Resolves once every connection is closed, which takes at most `graceMs`. Repeated calls return the same promise.
   */
  close(options?: { graceMs?: number }): Promise<void>
}

/** State of one connection, accessible from any response on it. */
interface Connection extends HeaderState {
  /** Ends the long-lived response on this connection, or completes its staged close. */
  endStream: (() => void) | undefined
  /** Shared by all connections. While `isClosing` is true, each response is the last response on its connection. */
  readonly end: { isClosing: boolean }
  /** Request and response of the most recent exchange. */
  req: IncomingMessage | undefined
  res: ServerResponse | undefined
  /** Unanswered requests that arrived before the previous response was sent. */
  pipelined: number
  /** Bytes received before the first request, such as the TLS handshake. */
  readonly handshakeBytes: number
}

const connections = new WeakMap<Socket, Connection>()

/**
 * Registers a long-lived response (an event stream). A closing listener calls `end` immediately instead of waiting. The
 * registration ends when the response closes.
 */
export function registerStream(res: ServerResponse, end: () => void): void {
  const connection = res.socket ? connections.get(res.socket) : undefined
  if (!connection) return
  if (connection.end.isClosing) {
    // Runs after the caller has written the response head and the first message.
    setImmediate(end)
    return
  }
  connection.endStream = end
  res.once('close', () => {
    if (connection.endStream === end) connection.endStream = undefined
  })
}

/** Like `registerStream`, but also calls `end` when the caller's token expires or is revoked. */
export function registerCallerStream({ res, caller, callerStreams }: Exchange, end: () => void): void {
  registerStream(res, end)
  if (!caller || !callerStreams || res.destroyed) return
  res.once('close', callerStreams.add(caller, end))
}

/**
 * Binds the address and starts serving. Rejects with the system error (`code` EADDRINUSE, EACCES, …) when binding
 * fails.
 */
export async function listen(options: ListenOptions): Promise<Listener> {
  const limits: ListenerLimits = { ...listenerLimits, ...options.limits }
  const { log, certificate, localTokens } = options
  const handler = requireToken(localTokens, options.handler)
  const onUpgrade = options.onUpgrade && requireToken(localTokens, options.onUpgrade)
  const sockets = new Set<Socket>()
  const upgraded = new Set<Duplex>()
  const end = { isClosing: false }
  const reportPipelining = limitToOncePerMinute(() =>
    log.warn('connection closed: the client sent too many requests without waiting for responses', {
      requests: maxPipelined,
    }),
  )

  function onRequest(req: IncomingMessage, res: ServerResponse): void {
    const connection = connections.get(req.socket)
    if (connection) {
      if (connection.res?.writableFinished === false)
        limitPipelining(connection, req.socket, res, reportPipelining)
      connection.req = req
      connection.res = res
      if (end.isClosing) res.shouldKeepAlive = false
    }
    handler(req, res)
  }

  const server = openServer(options, limits, onRequest)
  server.on('connection', (socket: Socket) => {
    // With TLS, this socket is the underlying connection, which has no HTTP requests of its own.
    if (certificate) track(sockets, socket)
    else accept(sockets, socket, end)
  })
  server.on('secureConnection', (socket: Socket) => accept(sockets, socket, end))
  // The body reader sends "100 Continue" once the request has passed the earlier stages.
  server.on('checkContinue', onRequest)
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) =>
    rejectMalformed(error, socket, log),
  )
  if (onUpgrade) {
    server.on('upgrade', (req: IncomingMessage, socket: Duplex, head: Buffer) => {
      if (!(socket instanceof Socket)) {
        socket.destroy()
        return
      }
      upgraded.add(socket)
      socket.once('close', () => upgraded.delete(socket))
      // Handles errors, because Node removes its error listener on upgrade. A reset would otherwise be an uncaught
      // error.
      socket.on('error', () => socket.destroy())
      const res = new ServerResponse(req)
      res.shouldKeepAlive = false
      res.assignSocket(socket)
      res.once('finish', () => closeInStages(socket))
      onUpgrade(req, res, socket, head)
    })
  }

  const { address, port, stop } = await open(server, options)
  const stops = [
    closeStalledConnections(sockets, limits.stalledMs, log),
    limitUnfinishedHeaders(
      sockets,
      // An upgraded connection has no more header blocks.
      (socket) => (upgraded.has(socket) ? undefined : connections.get(socket)),
      { ...limits, maxBytes: limits.maxUnfinishedBytes, intervalMs: limits.headersLookMs },
      log,
    ),
  ]
  let closing: Promise<void> | undefined

  return {
    url: listenerUrl({ address, port, secure: certificate !== undefined }),
    port,
    address,
    close({ graceMs = 5_000 } = {}) {
      if ('setSecureContext' in server) certificate?.unfollow(server)
      end.isClosing = true
      stop?.()
      for (const stop of stops) stop()
      closing ??= shutDown(server, sockets, upgraded, graceMs)
      return closing
    },
  }
}

interface Opened {
  readonly address: string
  readonly port: number
  /** Stops accepting connections from the other process. */
  readonly stop?: () => void
}

async function open(
  server: Server,
  { host, port, connections: source, log }: ListenOptions,
): Promise<Opened> {
  if (source) {
    const stop = source.take((socket) => void server.emit('connection', socket))
    // Starts the server's internal timer, which enforces the timeouts.
    server.emit('listening')
    return { address: source.address, port: source.port, stop }
  }
  server.listen(port, host)
  await once(server, 'listening')
  server.on('error', (error) => log.error('listener failed', { err: error }))
  const bound = server.address()
  if (bound === null || typeof bound === 'string') throw new Error('the listener has no network address')
  return { address: bound.address, port: bound.port }
}

export interface BoundAddress {
  readonly address: string
  readonly port: number
  readonly secure: boolean
}

/** Origin of the listener: `http://host:port` or `https://host:port`, IPv6 in brackets. */
export function listenerUrl({ address, port, secure }: BoundAddress): string {
  return `${secure ? 'https' : 'http'}://${address.includes(':') ? `[${address}]` : address}:${port}`
}

function track(sockets: Set<Socket>, socket: Socket): void {
  sockets.add(socket)
  socket.once('close', () => sockets.delete(socket))
}

function accept(sockets: Set<Socket>, socket: Socket, end: Connection['end']): void {
  track(sockets, socket)
  connections.set(socket, {
    endStream: undefined,
    end,
    req: undefined,
    res: undefined,
    pipelined: 0,
    after: undefined,
    from: socket.bytesRead,
    handshakeBytes: socket.bytesRead,
  })
  const destroySoon = () => closeAfterResponse(socket)
  socket.destroySoon = destroySoon
}

/** Maximum number of unanswered requests. Clients that pipeline requests send only a few requests in advance. */
const maxPipelined = 512

/**
 * Closes a connection with too many unanswered requests. All requests that have arrived, possibly thousands, start in
 * one turn of the event loop. Each request stays in memory until all earlier requests have been answered.
 */
function limitPipelining(connection: Connection, socket: Socket, res: ServerResponse, log: () => void): void {
  if (++connection.pipelined > maxPipelined) {
    socket.destroy()
    log()
    return
  }
  res.once('close', () => {
    connection.pipelined--
  })
}

/** True if no byte of a request has arrived. */
function isUnused(socket: Socket): boolean {
  return socket.bytesRead <= (connections.get(socket)?.handshakeBytes ?? 0)
}

/** Replaces `destroySoon`, which Node uses to close a connection after its last response. */
function closeAfterResponse(socket: Socket): void {
  const connection = connections.get(socket)
  if (connection?.req?.complete !== false) {
    Socket.prototype.destroySoon.call(socket)
    return
  }
  const endStream = () => socket.destroy()
  connection.endStream = endStream
  closeInStages(socket)
}

/** Minimum time that a closing listener waits for the first byte on a connection. */
const unusedMs = 250
/** During shutdown, idle connections stay open for the grace period divided by this number. */
const idleShare = 20
const maxIdleMs = 2_500

async function shutDown(
  server: Server,
  sockets: ReadonlySet<Socket>,
  upgraded: ReadonlySet<Duplex>,
  graceMs: number,
): Promise<void> {
  const idleMs = Math.min(graceMs / idleShare, maxIdleMs)
  const closed = once(server, 'close')
  // Replaces the HTTP server's own method, which would close idle connections immediately and lose requests in transit.
  NetServer.prototype.close.call(server)
  for (const socket of sockets) {
    const connection = connections.get(socket)
    if (!connection) continue
    if (connection.res?.headersSent === false) connection.res.shouldKeepAlive = false
    connection.endStream?.()
  }
  for (const socket of upgraded) socket.end()
  let timer: NodeJS.Timeout | undefined
  const idle = setTimeout(() => {
    timer = setInterval(() => server.closeIdleConnections(), 20)
  }, idleMs)
  // Closes connections without a request separately, because Node does not count them as idle. The first request may be
  // in transit.
  const unused = setTimeout(
    () => {
      for (const socket of sockets) if (connections.has(socket) && isUnused(socket)) socket.destroy()
    },
    Math.max(unusedMs, idleMs),
  )
  const destroyTimer = setTimeout(() => {
    for (const socket of sockets) socket.destroy()
  }, graceMs)
  await closed
  // Closes connections that another process accepted, which the server does not track.
  await Promise.all(Array.from(sockets, (socket) => new Promise((resolve) => socket.once('close', resolve))))
  // Stops the server's internal timer.
  server.close()
  clearTimeout(idle)
  clearInterval(timer)
  clearTimeout(unused)
  for (const socket of upgraded) socket.destroy()
  clearTimeout(destroyTimer)
}

/**
 * Answers a request that the parser rejected. Clients get fixed messages, and the debug log contains the parser's error
 * code.
 */
function rejectMalformed(error: NodeJS.ErrnoException, socket: Duplex, log: Log): void {
  // Does not respond when no request is pending, because the client would treat the response as the answer to its next
  // request. After a failed TLS handshake, the client cannot read a response.
  if (!(socket instanceof Socket) || !connections.has(socket) || isUnused(socket) || !socket.writable) {
    if (error.code?.startsWith('ERR_SSL')) log.debug('TLS handshake failed', { reason: error.code })
    socket.destroy()
    return
  }
  // Also sends no response if the server answered a request before the request body was complete.
  const { req, res } = connections.get(socket) ?? {}
  if (error.code === 'ECONNRESET' || (req?.complete === false && res?.headersSent === true)) {
    socket.destroy()
    return
  }
  log.debug('malformed request rejected', { reason: error.code })
  const { status, text } = malformed(error.code)
  socket.write(
    `HTTP/1.1 ${status} ${text}\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n` +
      `Content-Length: ${text.length + 1}\r\n\r\n${text}\n`,
  )
  closeInStages(socket)
}

function malformed(code: string | undefined): { status: number; text: string } {
  if (code === 'HPE_HEADER_OVERFLOW') return { status: 431, text: 'Request Header Fields Too Large' }
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return { status: 413, text: 'Request Entity Too Large' }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return { status: 408, text: 'Request Timeout' }
  return { status: 400, text: 'Bad Request' }
}
