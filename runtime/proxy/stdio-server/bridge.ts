/**
 * Serves an MCP server that speaks on standard input and output: as streamable HTTP on `/mcp`, or on the HTTP+SSE (deprecated) transport,
 * HTTP with SSE, on `/sse` and `/messages`.
 *
 * Each client session has a server process of its own, as the stdio transport means it; one more is kept started ahead,
 * so that a new session does not wait for a start. Sessions are bounded in number and end when idle. The session era
 * only: a stateless request is answered with the versions that are spoken here.
 * On the HTTP+SSE (deprecated) transport a session lasts as long as its stream, and nothing goes to anybody else's.
 * Source: MCP 2025-11-25, transports, "Streamable HTTP"; MCP 2024-11-05, "HTTP with SSE"; MCPServer `proxyMode`.
 */
import { setInterval } from 'node:timers'
import { GatehouseError } from '../../../schemas/index.ts'
import {
  checkStateless,
  EVENT_STREAM_TYPE,
  eraOf,
  errorMessage,
  HEADER,
  JSON_TYPE,
  type Message,
  MessageError,
  metaOf,
  paramsOf,
  scanMessage,
  SESSION_VERSIONS,
  single,
} from '../../mcp/index.ts'
import {
  Exchange,
  type Listener,
  listen,
  type Log,
  makeOriginGuard,
  pipeline,
  readBody,
  refuseBodyByHead,
  sendBody,
  sendJson,
} from '../../net/index.ts'
import type { PeerCommand } from './peer.ts'
import { BridgeSession } from './session.ts'

export interface BridgeOptions extends PeerCommand {
  readonly host: string
  /** 0 lets the kernel choose. */
  readonly port: number
  /** What clients see. Default streamable-http. */
  readonly mode?: 'streamable-http' | 'sse'
  readonly log: Log
  /** Gets what the servers write to standard error. */
  readonly onLine?: (line: string) => void
  readonly maxSessions?: number
  /** Idle time after which a session ends, in milliseconds. */
  readonly sessionTtlMs?: number
  readonly now?: () => number
}

export interface StdioBridge {
  /** Address of the MCP endpoint. */
  readonly url: string
  readonly port: number
  /** Resolves with the reason when the server cannot be started at all. */
  readonly failed: Promise<string>
  /** Ends all sessions and the listener. */
  close(): Promise<void>
}

class BridgeExchange extends Exchange {
  message: Message | undefined
}

const paths = { 'streamable-http': ['/mcp'], sse: ['/sse', '/messages'] } as const
const sweepMs = 60_000
/** A server that ends sooner than this without having been used is taken for one that cannot start. */
const quickEndMs = 3_000

/** Starts serving. Rejects with the system's error when the port cannot be bound. */
export async function startStdioBridge(options: BridgeOptions): Promise<StdioBridge> {
  const bridge = new Bridge(options)
  const listener = await listen({ ...options, handler: bridge.handler() })
  return bridge.serveOn(listener)
}

class Bridge {
  readonly #options: BridgeOptions
  readonly #mode: 'streamable-http' | 'sse'
  readonly #sessions = new Map<string, BridgeSession>()
  readonly #maxSessions: number
  readonly #ttlMs: number
  readonly #now: () => number
  readonly #failed = Promise.withResolvers<string>()
  #spare: BridgeSession | undefined
  #closed = false
  #guard: ((x: Exchange) => void) | undefined

  constructor(options: BridgeOptions) {
    this.#options = options
    this.#mode = options.mode ?? 'streamable-http'
    this.#maxSessions = options.maxSessions ?? 100
    this.#ttlMs = options.sessionTtlMs ?? 30 * 60_000
    this.#now = options.now ?? Date.now
  }

  handler() {
    const served: readonly string[] = paths[this.#mode]
    return pipeline<BridgeExchange>(
      {
        route: (x) => (x.path === '/health' ? health : served.includes(x.path) ? undefined : notFound),
        limits: (x) => refuseBodyByHead(x),
        guard: (x) => this.#guard?.(x),
        parse: async (x) => {
          await readBody(x)
          if (x.req.method === 'POST') x.message = scanMessage(x.body)
        },
        dispatch: (x) => (this.#mode === 'sse' ? this.#dispatchOld(x) : this.#dispatch(x)),
        recover: (x, error) => this.#recover(x, error),
      },
      (req, res) => new BridgeExchange(req, res),
    )
  }

  serveOn(listener: Listener): StdioBridge {
    const { host } = this.#options
    this.#guard = makeOriginGuard({ host, port: listener.port, allowedOrigins: [] }).check
    this.#keepSpare()
    const sweep = setInterval(() => this.#sweep(), sweepMs)
    sweep.unref()
    return {
      url: `${listener.url}${paths[this.#mode][0]}`,
      port: listener.port,
      failed: this.#failed.promise,
      close: async () => {
        this.#closed = true
        clearInterval(sweep)
        this.#failed.resolve('stopped')
        const ending = [...this.#sessions.values(), ...(this.#spare ? [this.#spare] : [])].map((s) =>
          s.close(),
        )
        await Promise.all([...ending, listener.close({ graceMs: 1000 })])
      },
    }
  }

  async #dispatch(x: BridgeExchange): Promise<void> {
    if (x.req.method === 'POST' && x.message) return this.#post(x, x.message)
    if (x.req.method === 'GET') return this.#get(x)
    if (x.req.method === 'DELETE') return this.#delete(x)
    throw new GatehouseError('METHOD_NOT_ALLOWED', { headers: { Allow: 'GET, POST, DELETE' } })
  }

  #dispatchOld(x: BridgeExchange): void {
    const { method } = x.req
    if (x.path === '/sse') {
      if (method !== 'GET') throw new GatehouseError('METHOD_NOT_ALLOWED', { headers: { Allow: 'GET' } })
      return this.#openOld(x)
    }
    if (method !== 'POST' || !x.message)
      throw new GatehouseError('METHOD_NOT_ALLOWED', { headers: { Allow: 'POST' } })
    const id = new URLSearchParams(x.query).get('session_id')
    const session = id === null ? undefined : this.#sessions.get(id)
    if (!session) throw new MessageError('SESSION_NOT_FOUND', x.message.id)
    session.lastUsed = this.#now()
    if (x.message.method === 'server/discover') session.refuse(x.message)
    else session.send(x.message)
    x.res.writeHead(202, { 'Content-Length': 0 })
    x.res.end()
  }

  /** The stream is the session: without it nobody could hear the server. */
  #openOld({ req, res }: BridgeExchange): void {
    refuseWithoutEvents({ req })
    const session = this.#begin()
    session.openOldStream(res, `/messages?session_id=${session.id}`)
    res.once('close', () => {
      this.#sessions.delete(session.id)
      void session.close()
    })
  }

  async #post(x: BridgeExchange, message: Message): Promise<void> {
    refuseStateless(x, message)
    const session = message.method === 'initialize' ? this.#begin() : this.#sessionOf(x, message.id)
    session.lastUsed = this.#now()
    if (message.kind === 'request') return session.request(message, x.res)
    session.send(message)
    x.res.writeHead(202, { 'Content-Length': 0 })
    x.res.end()
  }

  #get(x: BridgeExchange): void {
    refuseWithoutEvents(x)
    this.#sessionOf(x, undefined).openStream(x.res)
  }

  async #delete(x: BridgeExchange): Promise<void> {
    const session = this.#sessionOf(x, undefined)
    this.#sessions.delete(session.id)
    x.res.writeHead(200, { 'Content-Length': 0 })
    x.res.end()
    await session.close()
  }

  #sessionOf(x: BridgeExchange, id: string | undefined): BridgeSession {
    const header = x.req.headers[HEADER.sessionId]
    const session = typeof header === 'string' ? this.#sessions.get(header) : undefined
    if (session) return session
    if (header === undefined) {
      throw new MessageError('BAD_REQUEST', id, { detail: 'Bad Request: Mcp-Session-Id header is required' })
    }
    throw new MessageError('SESSION_NOT_FOUND', id)
  }

  #begin(): BridgeSession {
    if (this.#sessions.size >= this.#maxSessions) throw new GatehouseError('TOO_MANY_SESSIONS')
    const session = this.#spare ?? this.#start()
    this.#spare = undefined
    this.#sessions.set(session.id, session)
    this.#keepSpare()
    return session
  }

  #start(): BridgeSession {
    const { log, onLine = () => undefined } = this.#options
    const session = new BridgeSession(this.#options, { log, onLine, now: this.#now() })
    void session.ended.then((why) => {
      this.#sessions.delete(session.id)
      if (this.#spare === session) this.#spareEnded(session, why)
    })
    return session
  }

  #keepSpare(): void {
    if (!this.#closed) this.#spare ??= this.#start()
  }

  /** A spare that ends at once says that the command does not work; one that ends later is started again on demand. */
  #spareEnded(session: BridgeSession, why: string): void {
    this.#spare = undefined
    if (!this.#closed && this.#now() - session.lastUsed < quickEndMs) this.#failed.resolve(why)
  }

  #sweep(): void {
    const oldest = this.#now() - this.#ttlMs
    for (const session of this.#sessions.values()) {
      if (session.lastUsed > oldest || session.busy) continue
      this.#sessions.delete(session.id)
      void session.close()
    }
  }

  #recover(x: BridgeExchange, error: unknown): void {
    const known = error instanceof GatehouseError
    if (!known) this.#options.log.error('a request failed', { err: error })
    const id = error instanceof MessageError ? error.id : x.message?.id
    sendBody(
      x.res,
      known ? error.status : 500,
      JSON_TYPE,
      errorMessage(id, error),
      known ? error.headers : {},
    )
  }
}

function refuseWithoutEvents({ req }: Pick<Exchange, 'req'>): void {
  if (String(req.headers.accept).includes(EVENT_STREAM_TYPE)) return
  throw new GatehouseError('NOT_ACCEPTABLE', {
    detail: `Not Acceptable: the client must accept ${EVENT_STREAM_TYPE}`,
  })
}

/** Throws for a request of the stateless era, naming the versions that are spoken here. */
function refuseStateless({ req }: Exchange, message: Message): void {
  const params = paramsOf(message)
  const version = single(req.headers[HEADER.protocolVersion])
  if (eraOf(message.method, metaOf(message, params), version) === 'session') return
  const { protocolVersion } = checkStateless(message, params, req.headers, SESSION_VERSIONS)
  throw new MessageError('VERSION_UNSUPPORTED', message.id, {
    data: { supported: SESSION_VERSIONS, requested: protocolVersion },
  })
}

function health(x: Exchange): void {
  sendJson(x.res, 200, { status: 'ok' })
}

function notFound(): void {
  throw new GatehouseError('NOT_FOUND')
}
