/**
 * Hosts that are reachable only through a forward proxy, over http and https: only the proxy can resolve their names. A
 * connection from any other program is counted as direct.
 */
import { once } from 'node:events'
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { makeAuthority } from '../certificates.ts'
import { type ForwardProxy, type ForwardProxyOptions, startForwardProxy } from './forward-proxy.ts'

export interface HostRequest {
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** Sends the response of one host. */
export type Host = (request: HostRequest, res: ServerResponse) => void

export interface IsolatedNetwork {
  readonly proxy: ForwardProxy
  /** Trust anchor of every host and of a TLS proxy, PEM. */
  readonly ca: string
  /** Connections that did not come from the proxy. */
  readonly direct: number
  /** All connections to the hosts. */
  readonly connections: number
  close(): Promise<void>
}

export interface NetworkOptions extends Partial<ForwardProxyOptions> {
  /** When true, the proxy serves TLS with a certificate of the same authority. */
  readonly tlsProxy?: boolean
  /** Ports of other servers by host. */
  readonly ports?: Readonly<Record<string, number>>
}

export async function startIsolatedNetwork(
  hosts: Readonly<Record<string, Host>>,
  { tlsProxy, ports = {}, ...options }: NetworkOptions = {},
): Promise<IsolatedNetwork> {
  const authority = await makeAuthority()
  const leaf = await authority.leaf({ names: [...Object.keys(hosts), ...Object.keys(ports)] })
  const clientPorts: (number | undefined)[] = []

  const listener: RequestListener = (req, res) => {
    const host = hosts[req.headers.host?.replace(/:\d+$/, '') ?? '']
    if (!host) {
      res.writeHead(421).end()
      return
    }
    void text(req).then((body) =>
      host({ method: req.method ?? '', path: req.url ?? '', headers: req.headers, body }, res),
    )
  }
  const http = createServer(listener)
  const https = createTlsServer({ cert: leaf.cert, key: leaf.key }, listener)
  const portsOf = await Promise.all(
    [http, https].map(async (server: Server) => {
      server.on('connection', (socket: Socket) => {
        clientPorts.push(socket.remotePort)
      })
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      const address = server.address()
      return address !== null && typeof address === 'object' ? address.port : 0
    }),
  )
  const [httpPort, httpsPort] = portsOf
  const proxy = await startForwardProxy({
    resolve: (host, port) => {
      if (host in ports) return ports[host]
      if (!(host in hosts)) return undefined
      return port === 443 ? httpsPort : httpPort
    },
    ...(tlsProxy ? { tls: leaf } : {}),
    ...options,
  })
  return {
    proxy,
    ca: authority.ca,
    get direct() {
      return clientPorts.filter((port) => !proxy.opened(port)).length
    },
    get connections() {
      return clientPorts.length
    },
    async close() {
      await proxy.close()
      for (const server of [http, https]) {
        server.closeAllConnections()
        server.close()
        await once(server, 'close')
      }
    },
  }
}

/** A host that serves a JSON document for each path, and 404 for other paths. */
export function jsonHost(documents: Readonly<Record<string, unknown>>): Host {
  return ({ path }, res) => {
    const document = documents[path.replace(/\?.*/, '')]
    if (document === undefined) res.writeHead(404).end()
    else res.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(document))
  }
}
