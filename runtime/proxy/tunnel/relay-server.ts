/**
 * `gatehouse relay`: provides public addresses for proxies that have none. Accepts tunnels from clients that present
 * the token, and forwards each request for `<name>.<domain>` through that name's tunnel.
 *
 * The relay streams bytes and does not authenticate requests; the proxy at the other end does. A name belongs to one
 * session at a time, and is released some time after its last connection breaks. The resources that untrusted clients
 * can use are limited: the number of tunnels, and the number of requests in flight per tunnel.
 * Source: docs/reference/specification/proxy-command.md (`proxy tunnel`); see relay-protocol.ts for the protocol.
 */
import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { GatehouseError } from '../../../schemas/index.ts'
import { type Listener, listen, type Log, sendJson, sendProblem } from '../../net/index.ts'
import type { Secret } from '../../observe/index.ts'
import { hostnamePattern, pingEveryMs, publicUrlHeader, subprotocol, tunnelPath } from './relay-protocol.ts'
import { RelayTunnel } from './relay-tunnel.ts'
import { acceptKey, WebSocketStream } from './websocket.ts'

export interface RelayOptions {
  readonly host: string
  /** Port to listen on; 0 lets the kernel choose. */
  readonly port: number
  /** Tunnels have the address `<name>.<domain>`. */
  readonly domain: string
  /** Public URL of a tunnel; `*` is replaced with the tunnel's name. Default: http://*.<domain>:<port>. */
  readonly publicUrl?: string | undefined
  /** Called for every tunnel, so that a rotated token takes effect. */
  readonly authToken: () => Secret
  readonly log: Log
  readonly maxTunnels?: number
  /** Maximum number of concurrent requests per tunnel. */
  readonly maxRequests?: number
  /** How long a name stays reserved without a connection. */
  readonly freeAfterMs?: number
  /** Interval between pings that check connections. */
  readonly pingEveryMs?: number
}

export interface RunningRelay {
  readonly url: string
  readonly port: number
  close(options?: { graceMs?: number }): Promise<void>
}

/** Binds and serves. Rejects with the system's error when the address cannot be bound. */
export async function startRelay(options: RelayOptions): Promise<RunningRelay> {
  const tunnels = new Map<string, RelayTunnel>()
  const domain = options.domain.toLowerCase()
  const suffix = `.${domain}`
  let listener: Listener | undefined

  function tunnelFor(req: IncomingMessage): RelayTunnel | undefined {
    const host = req.headers.host?.toLowerCase().replace(/:\d+$/, '') ?? ''
    return host.endsWith(suffix) ? tunnels.get(host.slice(0, -suffix.length)) : undefined
  }

  function handler(req: IncomingMessage, res: ServerResponse): void {
    const tunnel = tunnelFor(req)
    if (tunnel) tunnel.handle(req, res)
    else if (req.url === '/health' && req.method === 'GET')
      sendJson(res, 200, { status: 'healthy', tunnels: tunnels.size })
    else sendProblem(res, new GatehouseError('NOT_FOUND', { detail: 'no tunnel with this name' }))
  }

  function onUpgrade(req: IncomingMessage, res: ServerResponse, socket: Duplex, head: Buffer): void {
    const tunnel = tunnelFor(req)
    if (tunnel) tunnel.handle(req, res, { socket, head })
    else if (req.url?.split('?', 1)[0] === tunnelPath) accept(req, res, socket, head)
    else sendProblem(res, new GatehouseError('NOT_FOUND'))
  }

  function accept(req: IncomingMessage, res: ServerResponse, socket: Duplex, head: Buffer): void {
    try {
      checkToken(req.headers.authorization, options.authToken())
      const tunnel = join(new URL(req.url ?? '/', 'http://relay').searchParams)
      const key = req.headers['sec-websocket-key']
      if (key === undefined || req.headers['sec-websocket-protocol'] !== subprotocol) {
        throw new GatehouseError('BAD_REQUEST', {
          detail: `expected the WebSocket subprotocol ${subprotocol}`,
        })
      }
      if (res.socket) res.detachSocket(res.socket)
      socket.write(
        'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
          `Sec-WebSocket-Accept: ${acceptKey(key)}\r\nSec-WebSocket-Protocol: ${subprotocol}\r\n` +
          `${publicUrlHeader}: ${tunnel.publicUrl}\r\n\r\n`,
      )
      tunnel.add(new WebSocketStream(socket, 'server', head))
    } catch (error) {
      sendProblem(res, error)
    }
  }

  /** Returns this session's tunnel, creating it if necessary. */
  function join(query: URLSearchParams): RelayTunnel {
    const session = query.get('session') ?? ''
    if (!/^[\w-]{16,64}$/.test(session))
      throw new GatehouseError('BAD_REQUEST', { detail: 'session: must be 16 to 64 letters, digits, _ or -' })
    const asked = query.get('hostname')?.toLowerCase()
    if (asked !== undefined && !hostnamePattern.test(asked)) {
      throw new GatehouseError('BAD_REQUEST', { detail: 'hostname: must be a DNS label' })
    }
    const mine = [...tunnels.values()].find((tunnel) => tunnel.session === session)
    const known = asked === undefined ? mine : tunnels.get(asked)
    if (known) {
      if (known.session !== session) throw new GatehouseError('NAME_TAKEN')
      return known
    }
    if (tunnels.size >= (options.maxTunnels ?? 1_000))
      throw new GatehouseError('SHUTTING_DOWN', { detail: 'too many tunnels' })
    return open(asked ?? randomBytes(5).toString('hex'), session)
  }

  function open(name: string, session: string): RelayTunnel {
    const pattern = options.publicUrl ?? `http://*.${domain}:${listener?.port ?? options.port}`
    const tunnel = new RelayTunnel({
      name,
      session,
      publicUrl: pattern.replace('*', name),
      log: options.log.child({ tunnel: name }),
      freeAfterMs: options.freeAfterMs ?? 30_000,
      pingEveryMs: options.pingEveryMs ?? pingEveryMs,
      maxRequests: options.maxRequests ?? 256,
      onFree() {
        tunnels.delete(name)
        options.log.info('a tunnel ended', { tunnel: name })
      },
    })
    tunnels.set(name, tunnel)
    options.log.info('a tunnel was opened', { tunnel: name })
    return tunnel
  }

  listener = await listen({ host: options.host, port: options.port, handler, onUpgrade, log: options.log })
  const { url, port } = listener
  return {
    url,
    port,
    async close(end) {
      await listener?.close(end)
      await Promise.all([...tunnels.values()].map((tunnel) => tunnel.close()))
    },
  }
}

function checkToken(authorization: string | undefined, token: Secret): void {
  const given = hash('sha256', authorization ?? '', 'buffer')
  const expected = hash('sha256', `Bearer ${token.reveal()}`, 'buffer')
  if (!timingSafeEqual(given, expected)) throw new GatehouseError('UNAUTHENTICATED')
}
