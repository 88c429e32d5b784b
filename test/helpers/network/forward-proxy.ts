/**
 * A forward HTTP proxy on a loopback port: tunnels (CONNECT) and requests in absolute form. Names resolve only in its own
 * table, so a client that connects directly fails.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'

export interface ForwardProxyOptions {
  /** Returns the loopback port of a host. When undefined, the proxy responds with 502. */
  readonly resolve: (host: string, port: number) => number | undefined
  /** Required `user:password` of each request. */
  readonly credentials?: string | undefined
  /** When set, the proxy serves TLS. */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined
  /** When set, the proxy responds with this status instead of forwarding. */
  readonly status?: number | undefined
}

export interface ForwardProxy {
  readonly url: string
  readonly port: number
  /** Received requests in order, such as `CONNECT host:port` and `GET http://host/path`. */
  readonly asked: readonly string[]
  /** Connections that clients opened to this proxy. */
  readonly connections: number
  /** True when this proxy opened the connection with this local port. */
  opened(localPort: number | undefined): boolean
  /** Closes all connections. Until `start`, new connections are refused. */
  close(): Promise<void>
  /** Listens on the same port again. */
  start(): Promise<void>
}

export async function startForwardProxy(options: ForwardProxyOptions): Promise<ForwardProxy> {
  const asked: string[] = []
  const opened = new Set<number>()
  const sockets = new Set<Socket>()
  let connections = 0

  function refusal(req: IncomingMessage): number | undefined {
    const { credentials, status } = options
    const expected = credentials && `Basic ${Buffer.from(credentials).toString('base64')}`
    if (expected && req.headers['proxy-authorization'] !== expected) return 407
    return status
  }

  function dial(port: number): Socket {
    const socket = connect(port, '127.0.0.1')
    sockets.add(socket)
    socket.once('connect', () => opened.add(socket.localPort ?? 0))
    socket.once('close', () => sockets.delete(socket))
    return socket
  }

  function forward(req: IncomingMessage, res: ServerResponse): void {
    asked.push(`${req.method} ${req.url}`)
    const url = URL.parse(req.url ?? '')
    const port = url ? options.resolve(url.hostname, Number(url.port || 80)) : 400
    const status = refusal(req) ?? (url ? undefined : 400) ?? (port === undefined ? 502 : undefined)
    if (status !== undefined || !url || port === undefined) {
      res.writeHead(status ?? 400).end('answered by the proxy')
      return
    }
    const { 'proxy-authorization': _, ...headers } = req.headers
    const out = request({
      method: req.method,
      path: url.pathname + url.search,
      headers,
      createConnection: () => dial(port),
    })
    out.once('response', (response) => {
      res.writeHead(response.statusCode ?? 502, response.headers)
      response.pipe(res)
    })
    out.once('error', () => res.destroy())
    req.pipe(out)
  }

  function tunnel(req: IncomingMessage, client: Duplex, head: Buffer): void {
    asked.push(`CONNECT ${req.url}`)
    const [, host = '', port = ''] = /^(.*):(\d+)$/.exec(req.url ?? '') ?? []
    const target = options.resolve(host, Number(port))
    const status = refusal(req) ?? (target === undefined ? 502 : undefined)
    client.on('error', () => {})
    if (status !== undefined || target === undefined) {
      client.end(`HTTP/1.1 ${status} Refused\r\nContent-Length: 0\r\n\r\n`)
      return
    }
    const to = dial(target)
    to.once('connect', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n')
      to.write(head)
      to.pipe(client).pipe(to)
    })
    to.on('error', () => client.destroy())
    client.once('close', () => to.destroy())
  }

  const server: Server = options.tls ? createTlsServer({ ...options.tls }, forward) : createServer(forward)
  server.on('connect', tunnel)
  server.on('connection', (socket: Socket) => {
    connections++
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  return {
    url: `${options.tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    port,
    asked,
    get connections() {
      return connections
    },
    opened: (localPort) => localPort !== undefined && opened.has(localPort),
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
    async start() {
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
    },
  }
}
