/** Real sockets for proxy tests: an upstream, the proxy in front of it, and raw HTTP clients. */
import { once } from 'node:events'
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import { connect } from 'node:net'
import { anonymousCaller, type Authenticator } from '../../../runtime/incoming/index.ts'
import { makeDispatcher, silentLog } from '../../../runtime/net/index.ts'
import { parseTarget } from '../../../runtime/config/proxy/target.ts'
import { type ProxyOptions, type RunningProxy, startProxy } from '../../../runtime/proxy/server/server.ts'

export interface Upstream {
  readonly url: string
  readonly port: number
  readonly server: Server
  /** Every request in order of arrival, with its complete body. */
  readonly seen: Seen[]
  close(): Promise<void>
}

export interface Seen {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly rawHeaders: readonly string[]
  body: string
}

type PeerResponse = (seen: Seen, res: ServerResponse, req: IncomingMessage) => void

/** Starts an HTTP server that reads each request completely, records it and lets `response` reply. */
export async function startUpstream(response: PeerResponse): Promise<Upstream> {
  const seen: Seen[] = []
  const server = createServer((req, res) => {
    const record: Seen = {
      method: req.method ?? '',
      url: req.url ?? '',
      headers: req.headers,
      rawHeaders: req.rawHeaders,
      body: '',
    }
    seen.push(record)
    req.on('data', (chunk: Buffer) => {
      record.body += chunk.toString()
    })
    req.on('end', () => response(record, res, req))
  })
  const port = await bind(server)
  return { url: `http://127.0.0.1:${port}`, port, server, seen, close: () => stop(server) }
}

/** Starts an HTTP server with a plain request listener. */
export async function startServer(
  listener: RequestListener,
): Promise<{ url: string; port: number; close(): Promise<void>; server: Server }> {
  const server = createServer(listener)
  const port = await bind(server)
  return { url: `http://127.0.0.1:${port}`, port, server, close: () => stop(server) }
}

async function bind(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no address')
  return address.port
}

async function stop(server: Server): Promise<void> {
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
}

export interface Rig {
  readonly proxy: RunningProxy
  readonly url: string
  readonly port: number
  close(): Promise<void>
}

/** Starts a proxy on a free loopback port in front of `target`. */
export async function startRig(target: string, options: Partial<ProxyOptions> = {}): Promise<Rig> {
  const dispatcher = options.dispatcher ?? makeDispatcher({ origin: parseTarget(target).origin })
  const proxy = await startProxy({
    target: parseTarget(target),
    host: '127.0.0.1',
    port: 0,
    log: silentLog,
    ...options,
    dispatcher,
  })
  return {
    proxy,
    url: proxy.url,
    port: proxy.port,
    async close() {
      await proxy.close({ graceMs: 0 })
      await dispatcher.destroy()
    },
  }
}

/** Sends bytes over a new connection and returns everything that arrived until the peer closed it. */
export async function raw(port: number, text: string | Buffer): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  const parts: Buffer[] = []
  socket.on('data', (chunk: Buffer) => parts.push(chunk))
  socket.on('error', () => {})
  socket.write(text)
  // `once` would reject when the peer cuts the connection. The data received until then is the response.
  await new Promise((resolve) => socket.once('close', resolve))
  return Buffer.concat(parts).toString('latin1')
}

/** Like `raw`, but takes the request as lines and adds `Connection: close`. */
export function rawRequest(port: number, lines: readonly string[], body = ''): Promise<string> {
  const [first = '', ...rest] = lines
  return raw(port, [first, 'Connection: close', ...rest, '', body].join('\r\n'))
}

/** Returns a tools/call request as a client sends it. */
export function rpc(id: unknown, method = 'tools/call', params: unknown = { name: 'echo' }): string {
  return JSON.stringify({ jsonrpc: '2.0', id, method, params })
}

export const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

/** An authenticator with the given stage, without documents and challenges. */
export function fakeAuthenticator(stage: Authenticator['stage']): Authenticator {
  return {
    stage,
    route: () => undefined,
    authenticate: () => anonymousCaller(),
    challenge: () => undefined,
    sendChallenge: () => false,
    close: async () => {},
  }
}
