/**
 * Takes a request to the worker that it belongs to, where several processes serve one port: the response to a question of
 * one, a call that waits in one, a stream that one has stored. Ids that clients bring back begin with the worker that made
 * them. Such a request goes over loopback to a listener that takes nothing but what the workers prove to be theirs, and
 * through the same checks there, audit included.
 *
 * A worker that is gone has nothing to answer with: the request is then handled here, where its thing is unknown.
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
/** Who the client is, as the worker with its connection sees it. */
const addressHeader = 'x-gatehouse-worker-client'
/** Of one connection, or made again for it. */
const ownHeaders: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
  secretHeader,
  addressHeader,
])
const tagged = /^w(\d+)\./

/** The beginning of ids that lead back to a worker; '' where there is one process. */
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

  /** Begins to take requests of other workers. Resolves with the port that they need. */
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

  /** Responds with what the worker says that the request belongs to; does nothing when it belongs to this one, or none. */
  async relay(exchange: VmcpExchange): Promise<void> {
    const [, owner] = tagged.exec(idOf(exchange) ?? '') ?? []
    if (owner === undefined || owner === this.#link.id) return
    const port = await this.#link.peer(owner)
    if (typeof port !== 'number') return
    const takeBack = this.#observer.leave(exchange)
    if (!(await this.#send(exchange, port))) takeBack()
  }

  /** Resolves once the response has begun; false when there is none. */
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
        pass(incoming, res, { holds: req.method === 'GET' })
        resolve(true)
      })
      outgoing.on('error', (err) => {
        this.#log.warn('a request could not be taken to its worker', { err })
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

function pass(incoming: IncomingMessage, res: ServerResponse, { holds }: { readonly holds: boolean }): void {
  const { rawHeaders } = incoming
  const passed = new Set<string>()
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = rawHeaders.slice(i, i + 2)
    if (hopHeaders.has(name.toLowerCase())) continue
    // The stages of this worker have set some of them as well.
    if (!passed.has(name.toLowerCase())) res.removeHeader(name)
    passed.add(name.toLowerCase())
    res.appendHeader(name, value)
  }
  res.writeHead(incoming.statusCode ?? 502)
  res.flushHeaders()
  // A stream without end is ended with the server; what responds to a request has the time of the others.
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
    if (!ownHeaders.has(name.toLowerCase())) lines.push(name, value)
  }
  return lines
}

/** What the request leads back to; undefined: it belongs to nothing that a worker has made. */
function idOf(exchange: VmcpExchange): string | undefined {
  const { message, params, path, query, era } = exchange
  if (path === messagesPath) return new URLSearchParams(query).get('sessionId') ?? undefined
  if (!message) return exchange.req.headers['last-event-id']
  if (message.kind !== 'request' && message.kind !== 'notification') return textOf(message.id)
  return era === 'stateless' ? params?.text('requestState') : undefined
}

/** An id as it stands in JSON. */
function textOf(id: string | undefined): string | undefined {
  return id?.startsWith('"') ? new JsonObject(Buffer.from(`{"id":${id}}`)).text('id') : undefined
}
