/**
 * Forwards a request to the worker that owns its state if several processes serve one port. The state is a pending
 * server request, a parked call, or a stored stream. Ids that clients send back begin with the tag of the worker that
 * issued them. The request is sent over loopback to a listener that accepts only requests with the workers' secret. The
 * owner then runs the same checks, including the audit.
 *
 * If the owner has ended, this worker handles the request and reports the id as unknown.
 */
import { timingSafeEqual } from 'node:crypto'
import { Agent, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { JsonObject } from '../../../mcp/index.ts'
import {
  registerStream,
  listen,
  type Listener,
  type Log,
  setPeerAddress,
  peerAddress,
  type RequestHandler,
  sendText,
} from '../../../net/index.ts'
import type { Observer } from '../../../observe/index.ts'
import type { PrimaryLink } from '../../../process/index.ts'
import { messagesPath, type VmcpExchange } from '../../model/exchange.ts'

const secretHeader = 'x-gatehouse-worker'
/** Address of the client, as seen by the worker that accepted the client's connection. */
const addressHeader = 'x-gatehouse-worker-client'
/** Headers that belong to one connection, or that receive a new value in the forwarded request. */
const replacedHeaders: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
  secretHeader,
  addressHeader,
])
const workerTagPattern = /^w(\d+)\./

/** Returns the prefix of ids that a worker issues. Empty for a single process. */
export function workerTag(id: string | undefined): string {
  return id === undefined ? '' : `w${id}.`
}

export class WorkerRelay {
  readonly #link: PrimaryLink
  readonly #log: Log
  readonly #observer: Observer
  readonly #agent = new Agent({ keepAlive: true })
  #listener: Listener | undefined

  constructor(link: PrimaryLink, observer: Observer, log: Log) {
    this.#link = link
    this.#observer = observer
    this.#log = log
  }

  /** Starts the listener for requests from other workers. Resolves to the listener's port. */
  async open(handler: RequestHandler): Promise<number> {
    const secret = Buffer.from(this.#link.secret)
    this.#listener = await listen({
      host: '127.0.0.1',
      port: 0,
      log: this.#log,
      handler(req, res) {
        const given = Buffer.from(String(req.headers[secretHeader]))
        if (given.length !== secret.length || !timingSafeEqual(given, secret)) {
          sendText(res, 404, 'not found\n')
          return
        }
        setPeerAddress(req, String(req.headers[addressHeader]))
        handler(req, res)
      },
    })
    return this.#listener.port
  }

  /**
   * Forwards the request to its owner and relays the response. Does nothing if this worker is the owner or if the owner
   * does not exist.
   */
  async relay(exchange: VmcpExchange): Promise<void> {
    const [, owner] = workerTagPattern.exec(ownerIdOf(exchange) ?? '') ?? []
    if (owner === undefined || owner === this.#link.id) return
    const port = await this.#link.peer(owner)
    if (typeof port !== 'number') return
    const undoLeave = this.#observer.leave(exchange)
    if (!(await this.#send(exchange, port))) undoLeave()
  }

  /** Resolves to true once the response has begun. Resolves to false if no response arrives. */
  #send({ req, res, body }: VmcpExchange, port: number): Promise<boolean> {
    return new Promise((resolve) => {
      const outgoing = request({
        host: '127.0.0.1',
        port,
        method: req.method,
        path: req.url,
        agent: this.#agent,
        headers: [
          ...headersOf(req),
          ...[secretHeader, this.#link.secret],
          ...[addressHeader, peerAddress(req)],
          ...['Content-Length', String(body.length)],
        ],
      })
      outgoing.once('response', (incoming) => {
        relayResponse(incoming, res, { holds: req.method === 'GET' })
        resolve(true)
      })
      outgoing.on('error', (err) => {
        this.#log.warn('failed to forward a request to its worker', { err })
        if (res.headersSent) res.destroy()
        resolve(res.headersSent)
      })
      res.once('close', () => outgoing.destroy())
      outgoing.end(body)
    })
  }

  async close(graceMs: number): Promise<void> {
    await this.#listener?.close({ graceMs })
    this.#agent.destroy()
  }
}

function relayResponse(
  incoming: IncomingMessage,
  res: ServerResponse,
  { holds }: { readonly holds: boolean },
): void {
  const { rawHeaders } = incoming
  const passed = new Set<string>()
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = rawHeaders.slice(i, i + 2)
    if (hopHeaders.has(name.toLowerCase())) continue
    // This worker's stages may have set the same header.
    if (!passed.has(name.toLowerCase())) res.removeHeader(name)
    passed.add(name.toLowerCase())
    res.appendHeader(name, value)
  }
  res.writeHead(incoming.statusCode ?? 502)
  res.flushHeaders()
  // An endless stream ends when the server closes. The response to a request gets the same grace period as any other
  // response.
  if (holds && incoming.headers['content-type']?.startsWith('text/event-stream'))
    registerStream(res, () => {
      incoming.unpipe(res)
      res.end()
    })
  incoming.on('error', () => res.destroy())
  res.on('error', () => incoming.destroy())
  incoming.pipe(res)
}

const hopHeaders: ReadonlySet<string> = new Set(['connection', 'keep-alive', 'transfer-encoding', 'date'])

function headersOf({ rawHeaders }: IncomingMessage): string[] {
  const lines: string[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = rawHeaders.slice(i, i + 2)
    if (!replacedHeaders.has(name.toLowerCase())) lines.push(name, value)
  }
  return lines
}

/**
 * Returns the id that identifies the owner of a request. Returns undefined if the request does not identify an owner.
 */
function ownerIdOf(exchange: VmcpExchange): string | undefined {
  const { message, params, path, query, era } = exchange
  if (path === messagesPath) return new URLSearchParams(query).get('sessionId') ?? undefined
  if (!message) return exchange.req.headers['last-event-id']
  if (message.kind !== 'request' && message.kind !== 'notification') return parseStringId(message.id)
  return era === 'stateless' ? params?.text('requestState') : undefined
}

/** Parses a JSON-RPC id. Returns undefined if the id is not a string. */
function parseStringId(id: string | undefined): string | undefined {
  return id?.startsWith('"') ? new JsonObject(Buffer.from(`{"id":${id}}`)).text('id') : undefined
}
