/**
 * The HTTP/1.1 listener: socket limits, answers to malformed requests, upgrades, and a graceful end. A connection that is
 * closed before its request was read completely is closed in stages.
 *
 * Does not route, authenticate or read bodies: `handler` does (see pipeline.ts). Cleartext only; TLS is terminated in
 * front. The end of a listener has four steps: stop accepting, end event streams and upgraded sockets, wait for
 * requests in flight, cut what is left when the grace is over.
 * Source: docs/specification/proxy-command.md#listener (listener flags), reference limits; RFC 9112.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type ListenerLimits, listenerLimits } from '../limits.ts'
import type { Log } from '../log.ts'
import { closeInStages } from './staged-close.ts'

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
}

export interface Listener {
  /** `http://host:port`, IPv6 in brackets. */
  readonly url: string
  readonly port: number
  /** The address that was bound. */
  readonly address: string
  /** Resolves when every connection is gone; at the latest `graceMs` after the call. Repeated calls share one end. */
  close(options?: { graceMs?: number }): Promise<void>
}

/** What is known about one connection; reached from any response on it. */
interface Connection {
  /** Ends the long-lived response that this connection carries, or a close in stages. */
  endStream: (() => void) | undefined
  /** The last exchange. */
  req: IncomingMessage | undefined
  res: ServerResponse | undefined
}

const connections = new WeakMap<Socket, Connection>()

/**
 * Marks the response as long-lived (event stream): a closing listener calls `end` at once instead of waiting for it.
 * The mark is dropped when the response closes.
 */
export function holdsStream(res: ServerResponse, end: () => void): void {
  const connection = res.socket ? connections.get(res.socket) : undefined
  if (!connection) return
  connection.endStream = end
  res.once('close', () => {
    if (connection.endStream === end) connection.endStream = undefined
  })
}

/** Binds and starts serving. Rejects with the system's error (`code` EADDRINUSE, EACCES, …) when it cannot bind. */
export async function listen(options: ListenOptions): Promise<Listener> {
  const limits: ListenerLimits = { ...listenerLimits, ...options.limits }
  const { handler, onUpgrade, log } = options
  const sockets = new Set<Socket>()
  const upgraded = new Set<Duplex>()

  function onRequest(req: IncomingMessage, res: ServerResponse): void {
    const connection = connections.get(req.socket)
    if (connection) {
      connection.req = req
      connection.res = res
    }
    handler(req, res)
  }

  const server = createServer(
    {
      maxHeaderSize: limits.maxHeaderBytes,
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      keepAliveTimeout: limits.keepAliveTimeoutMs,
      connectionsCheckingInterval: limits.checkIntervalMs,
      // Only a WebSocket takes a connection over; h2c and unknown protocols are answered as plain requests.
      shouldUpgradeCallback: (req) => onUpgrade !== undefined && isWebSocket(req),
    },
    onRequest,
  )
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    connections.set(socket, { endStream: undefined, req: undefined, res: undefined })
    const destroySoon = () => closeAfterResponse(socket)
    socket.destroySoon = destroySoon
    socket.once('close', () => sockets.delete(socket))
  })
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

  server.listen(options.port, options.host)
  await once(server, 'listening')
  server.on('error', (error) => log.error('listener failed', { err: error }))

  const bound = server.address()
  if (bound === null || typeof bound === 'string') throw new Error('the listener has no network address')
  const { address, port } = bound
  const name = address.includes(':') ? `[${address}]` : address
  let closing: Promise<void> | undefined

  return {
    url: `http://${name}:${port}`,
    port,
    address,
    close({ graceMs = 5_000 } = {}) {
      closing ??= shutDown(server, sockets, upgraded, graceMs)
      return closing
    },
  }
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

/** How long a closing listener waits for the first byte of a connection. */
const unusedMs = 250

async function shutDown(
  server: Server,
  sockets: ReadonlySet<Socket>,
  upgraded: ReadonlySet<Duplex>,
  graceMs: number,
): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  for (const socket of sockets) connections.get(socket)?.endStream?.()
  for (const socket of upgraded) socket.end()
  // A connection that finishes its response after close() stays open: close idle ones until all are gone.
  const timer = setInterval(() => server.closeIdleConnections(), 20)
  // One that was opened ahead of any request is not idle to Node; a request may just be on its way.
  const unused = setTimeout(() => {
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
  }, unusedMs)
  const cut = setTimeout(() => {
    for (const socket of sockets) socket.destroy()
  }, graceMs)
  await closed
  clearInterval(timer)
  clearTimeout(unused)
  for (const socket of upgraded) socket.destroy()
  clearTimeout(cut)
}

/** Answers what the parser refused. Fixed texts: the parser's own message is for the debug log. */
function refuseMalformed(error: NodeJS.ErrnoException, socket: Duplex, log: Log): void {
  // On a connection opened ahead of any request, a client would take a response for that to its next request.
  if (!(socket instanceof Socket) || socket.bytesRead === 0 || !socket.writable) {
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
