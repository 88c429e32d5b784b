/**
 * The HTTP/1.1 listener: socket limits, answers to malformed requests, upgrades, and a graceful end. A connection that is
 * closed before its request was read completely is closed in stages.
 *
 * Does not route, authenticate or read bodies: `handler` does (see pipeline.ts). Serves TLS when it is given a certificate,
 * and then nothing else; a new certificate counts for new connections. The end of a listener has five steps: stop accepting; end
 * event streams and upgraded sockets; answer what still comes on open connections, each with `Connection: close`; close those
 * that stay idle, a while later, for a request may be on its way; cut what is left when the grace is over.
 * Source: docs/reference/specification/proxy-command.md#listener (listener flags), reference limits; RFC 9112, 9.6.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { Server as NetServer, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { ServedCertificate } from '../../../schemas/certificate/index.ts'
import type { Exchange } from '../pipeline.ts'
import { type ListenerLimits, listenerLimits } from '../limits.ts'
import type { Log } from '../log.ts'
import { nowAndThen } from './now-and-then.ts'
import { closeInStages } from './staged-close.ts'
import { cutStalled } from './stalled.ts'
import { boundHeaders, type HeaderState } from './unfinished-headers.ts'

export type RequestHandler = (req: IncomingMessage, res: ServerResponse) => void
/** `res` writes a refusal on the raw socket; a handler that takes the socket over calls `res.detachSocket` first. */
export type UpgradeHandler = (req: IncomingMessage, res: ServerResponse, socket: Duplex, head: Buffer) => void

export interface ListenOptions {
  /** IP address or name to bind. */
  readonly host: string
  /** 0 lets the kernel choose. */
  readonly port: number
  readonly handler: RequestHandler
  /** Takes WebSocket upgrades. Without it, and for any other protocol, `Upgrade` is ignored. */
  readonly onUpgrade?: UpgradeHandler
  readonly log: Log
  readonly limits?: Partial<ListenerLimits>
  /** Where connections come from; nothing is bound then. */
  readonly connections?: ConnectionSource | undefined
  /** Serve TLS. Whoever opened it closes it. */
  readonly certificate?: ServedCertificate | undefined
}

/** Connections of an address that another process has bound. */
export interface ConnectionSource {
  readonly address: string
  readonly port: number
  /** Hands every connection to `accept`, until the result is called. */
  take(accept: (socket: Socket) => void): () => void
}

export interface Listener {
  /** `http://host:port` or `https://host:port`, IPv6 in brackets. */
  readonly url: string
  readonly port: number
  /** The address that was bound. */
  readonly address: string
  /** Resolves when every connection is gone; at the latest `graceMs` after the call. Repeated calls share one end. */
  close(options?: { graceMs?: number }): Promise<void>
}

/** What is known about one connection; reached from any response on it. */
interface Connection extends HeaderState {
  /** Ends the long-lived response that this connection carries, or a close in stages. */
  endStream: (() => void) | undefined
  /** Of its listener: each response is the last on its connection. */
  readonly end: { isNear: boolean }
  /** Of the last exchange. */
  req: IncomingMessage | undefined
  res: ServerResponse | undefined
  /** Requests that came before the response to the one before was sent, and are not answered yet. */
  pipelined: number
  /** Bytes that were received before the first one of a request: those of the TLS handshake. */
  readonly handshakeBytes: number
}

const connections = new WeakMap<Socket, Connection>()

/**
 * Marks the response as long-lived (event stream): a closing listener calls `end` at once instead of waiting for it.
 * The mark is dropped when the response closes.
 */
export function holdsStream(res: ServerResponse, end: () => void): void {
  const connection = res.socket ? connections.get(res.socket) : undefined
  if (!connection) return
  if (connection.end.isNear) {
    // Once its head is written, and whatever its opener says first.
    setImmediate(end)
    return
  }
  connection.endStream = end
  res.once('close', () => {
    if (connection.endStream === end) connection.endStream = undefined
  })
}

/** Like `holdsStream`, but also calls `end` when the caller's token has expired or was revoked. */
export function holdsCallerStream({ res, caller, callerStreams }: Exchange, end: () => void): void {
  holdsStream(res, end)
  if (!caller || !callerStreams || res.destroyed) return
  res.once('close', callerStreams.add(caller, end))
}

/** Binds and starts serving. Rejects with the system's error (`code` EADDRINUSE, EACCES, …) when it cannot bind. */
export async function listen(options: ListenOptions): Promise<Listener> {
  const limits: ListenerLimits = { ...listenerLimits, ...options.limits }
  const { handler, onUpgrade, log, certificate } = options
  const sockets = new Set<Socket>()
  const upgraded = new Set<Duplex>()
  const end = { isNear: false }
  const tellPipelined = nowAndThen(() =>
    log.warn('a connection was cut: its client sent very many requests without waiting for a response', {
      requests: maxPipelined,
    }),
  )

  function onRequest(req: IncomingMessage, res: ServerResponse): void {
    const connection = connections.get(req.socket)
    if (connection) {
      if (connection.res?.writableFinished === false)
        boundPipelined(connection, req.socket, res, tellPipelined)
      connection.req = req
      connection.res = res
      if (end.isNear) res.shouldKeepAlive = false
    }
    handler(req, res)
  }

  const http = {
    maxHeaderSize: limits.maxHeaderBytes,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: limits.checkIntervalMs,
    // Only a WebSocket takes a connection over; h2c and unknown protocols are answered as plain requests.
    shouldUpgradeCallback: (req: IncomingMessage) => onUpgrade !== undefined && isWebSocket(req),
  }
  const server = certificate
    ? createTlsServer(
        { ...certificate.options, ...http, handshakeTimeout: limits.headersTimeoutMs, allowHalfOpen: true },
        onRequest,
      )
    : createServer(http, onRequest)
  if ('setSecureContext' in server) certificate?.follow(server)
  server.on('connection', (socket: Socket) => {
    // With TLS, this is the connection below it, which has no requests.
    if (certificate) track(sockets, socket)
    else accept(sockets, socket, end)
  })
  server.on('secureConnection', (socket: Socket) => accept(sockets, socket, end))
  // The body reader sends "100 Continue" once the request has passed every earlier stage.
  server.on('checkContinue', onRequest)
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) =>
    refuseMalformed(error, socket, log),
  )
  if (onUpgrade) {
    server.on('upgrade', (req: IncomingMessage, socket: Duplex, head: Buffer) => {
      if (!(socket instanceof Socket)) {
        socket.destroy()
        return
      }
      upgraded.add(socket)
      socket.once('close', () => upgraded.delete(socket))
      // Node takes its own listener away with the upgrade; a reset must not be an uncaught error.
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
    cutStalled(sockets, limits.stalledMs, log),
    boundHeaders(
      sockets,
      // Header blocks end with the upgrade.
      (socket) => (upgraded.has(socket) ? undefined : connections.get(socket)),
      { ...limits, maxBytes: limits.maxUnfinishedBytes, lookMs: limits.headersLookMs },
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
      end.isNear = true
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
  /** Takes no more connections of another process. */
  readonly stop?: () => void
}

async function open(
  server: Server,
  { host, port, connections: source, log }: ListenOptions,
): Promise<Opened> {
  if (source) {
    const stop = source.take((socket) => void server.emit('connection', socket))
    // Starts the server's own timer, which enforces the limits of time.
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

/** `http://host:port` or `https://host:port`, IPv6 in brackets. */
export function listenerUrl({ address, port, secure }: BoundAddress): string {
  return `${secure ? 'https' : 'http'}://${address.includes(':') ? `[${address}]` : address}:${port}`
}

function track(sockets: Set<Socket>, socket: Socket): void {
  sockets.add(socket)
  socket.once('close', () => sockets.delete(socket))
}

/** A connection on which requests may come. */
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

/** No client needs so many: those that pipeline send a few ahead. */
const maxPipelined = 512

/**
 * Cuts a connection with very many requests that are not answered. What has arrived begins in one turn of the event loop, which
 * can be thousands of them, and each is held until those before it are answered.
 */
function boundPipelined(connection: Connection, socket: Socket, res: ServerResponse, tell: () => void): void {
  if (++connection.pipelined > maxPipelined) {
    socket.destroy()
    tell()
    return
  }
  res.once('close', () => {
    connection.pipelined--
  })
}

/** Whether nothing of a request has arrived. */
function isUnused(socket: Socket): boolean {
  return socket.bytesRead <= (connections.get(socket)?.handshakeBytes ?? 0)
}

/** In place of `destroySoon`, with which Node closes a connection after the last response on it. */
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

function isWebSocket(req: IncomingMessage): boolean {
  return req.method === 'GET' && req.headers.upgrade?.toLowerCase() === 'websocket'
}

/** How long a closing listener at least waits for the first byte of a connection. */
const unusedMs = 250
/** How long it keeps idle connections: a part of the grace, for somebody waits for the end. */
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
  // Not the method of the HTTP server, which cuts idle connections at once, and with them requests on their way.
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
  // One that was opened ahead of any request is not idle to Node; a request may just be on its way.
  const unused = setTimeout(
    () => {
      for (const socket of sockets) if (connections.has(socket) && isUnused(socket)) socket.destroy()
    },
    Math.max(unusedMs, idleMs),
  )
  const cut = setTimeout(() => {
    for (const socket of sockets) socket.destroy()
  }, graceMs)
  await closed
  // Those that another process has accepted are not among the server's own.
  await Promise.all(Array.from(sockets, (socket) => new Promise((resolve) => socket.once('close', resolve))))
  // Ends the server's own timer.
  server.close()
  clearTimeout(idle)
  clearInterval(timer)
  clearTimeout(unused)
  for (const socket of upgraded) socket.destroy()
  clearTimeout(cut)
}

/** Answers what the parser refused. Fixed texts: the parser's own message is for the debug log. */
function refuseMalformed(error: NodeJS.ErrnoException, socket: Duplex, log: Log): void {
  // On a connection opened ahead of any request, a client would take a response for that to its next request.
  // Nor can a client read it whose handshake failed.
  if (!(socket instanceof Socket) || !connections.has(socket) || isUnused(socket) || !socket.writable) {
    if (error.code?.startsWith('ERR_SSL')) log.debug('TLS handshake failed', { reason: error.code })
    socket.destroy()
    return
  }
  // The same holds for a request that was answered before its body was complete.
  const { req, res } = connections.get(socket) ?? {}
  if (error.code === 'ECONNRESET' || (req?.complete === false && res?.headersSent === true)) {
    socket.destroy()
    return
  }
  log.debug('malformed request refused', { reason: error.code })
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

/** Writes what belongs together, without copying it into one buffer. */
export function writeParts(res: ServerResponse, parts: readonly Buffer[]): void {
  res.cork()
  for (const part of parts) res.write(part)
  res.uncork()
}
