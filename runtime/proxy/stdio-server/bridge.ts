/**
 * Serves an MCP server that uses standard input and output: as streamable HTTP on `/mcp`, or over the deprecated
 * HTTP+SSE transport on `/sse` and `/messages`.
 *
 * Each client session has its own server process, as intended by the stdio transport. One more process is started in
 * advance, so that a new session does not have to wait. A server that runs elsewhere is a single process that all
 * sessions share (attached/). The number of sessions is limited, and idle sessions end. Stateless clients share
 * processes. Clients and programs may use either protocol era; messages are translated between eras. Over HTTP+SSE, a
 * session lasts as long as its stream, and its messages go only to that stream.
 * Source: MCP 2025-11-25 and 2026-07-28, transports; MCP 2024-11-05, "HTTP with SSE"; MCPServer `proxyMode`.
 */
import { setInterval } from 'node:timers'
import { GatehouseError } from '../../../schemas/index.ts'
import {
  checkStateless,
  clientRules,
  eventStreamType,
  eraOf,
  errorMessage,
  headerName,
  jsonType,
  type JsonObject,
  type Message,
  MessageError,
  paramsOf,
  refusalHeaders,
  scanMessage,
  single,
  statelessVersion,
  allVersions,
  MirroredTools,
} from '../../mcp/index.ts'
import {
  Exchange,
  type Listener,
  listen,
  type Log,
  makeOriginCheck,
  pipeline,
  readBody,
  rejectBodyByHeaders,
  sendBody,
  sendJson,
  type LocalTokens,
} from '../../net/index.ts'
import { callerDigest, callerHeader } from '../model/exchange.ts'
import { HttpReply } from './http-reply.ts'
import { Openings } from './openings.ts'
import type { PeerCommand } from './peer.ts'
import { Processes, type ServerSource } from './server-process.ts'
import { BridgeSession } from './session.ts'
import { ServedStatelessSide } from './stateless-side.ts'

export interface BridgeOptions {
  readonly host: string
  /** Port to listen on; 0 lets the kernel choose. */
  readonly port: number
  /** Rejects requests without one of these tokens. Default: no token is required. */
  readonly localTokens?: LocalTokens | undefined
  /** Transport for clients. Default streamable-http. */
  readonly mode?: 'streamable-http' | 'sse'
  readonly log: Log
  readonly maxSessions?: number
  /** Idle time after which a session ends, in milliseconds. */
  readonly sessionTtlMs?: number
  readonly now?: () => number
  /** This program's version, sent to servers. */
  readonly version?: string
  /** Timeout for `server/discover` after a server has rejected `initialize`. Default 10 s. */
  readonly probeMs?: number
}

export interface ServerBridgeOptions extends BridgeOptions, PeerCommand {
  /** Receives each line that the servers write to standard error. */
  readonly onLine?: (line: string) => void
  /**
   * Called with the reason and the last lines of output when a process ends on its own, if the server has worked
   * before.
   */
  readonly onEnded?: (why: string, output: readonly string[]) => void
  /** True when errors for clients contain the last lines that a server printed before it ended. Default false. */
  readonly showOutput?: boolean
  /**
   * False to start only the first process in advance; each later session then waits for its process to start. Default
   * true.
   */
  readonly ahead?: boolean
}

export interface StdioBridge {
  /** Address of the MCP endpoint. */
  readonly url: string
  readonly port: number
  /** Resolves with the reason when the server cannot be started at all. */
  readonly failed: Promise<string>
  /** Start time of a server that has not responded yet, in milliseconds since the epoch; otherwise undefined. */
  readonly startingSince?: number | undefined
  /** True once the server has sent a message. */
  readonly hasSpoken?: boolean | undefined
  /** The server's message from the last time that it refused to open a session. */
  readonly refusal?: string | undefined
  /** Ends all sessions and closes the listener. */
  close(): Promise<void>
}

/** Paths for each transport. A trailing slash is accepted too. */
const paths = { 'streamable-http': ['/mcp'], sse: ['/sse', '/messages'] } as const

class BridgeExchange extends Exchange {
  static override readonly endpoints = Object.values(paths).flat()
  message: Message | undefined
}

const evictMs = 60_000

/** Serves a program with one process per session. Rejects with the system's error when the port cannot be bound. */
export function startStdioBridge(options: ServerBridgeOptions): Promise<StdioBridge> {
  const { onLine = () => undefined, now = Date.now } = options
  return startBridge(new Processes({ ...options, onLine, now }), options)
}

/**
 * Serves the conversations that a source opens. Rejects when the port cannot be bound or the source cannot be started.
 */
export async function startBridge(source: ServerSource, options: BridgeOptions): Promise<StdioBridge> {
  const bridge = new Bridge(source, options)
  const listener = await listen({ ...options, handler: bridge.handler() })
  try {
    return bridge.serveOn(listener)
  } catch (error) {
    // Invalid or overlong arguments throw immediately.
    await listener.close({ graceMs: 0 })
    throw error
  }
}

class Bridge {
  readonly #options: BridgeOptions
  readonly #mode: 'streamable-http' | 'sse'
  readonly #sessions = new Map<string, BridgeSession>()
  readonly #source: ServerSource
  readonly #openings: Openings
  readonly #stateless: ServedStatelessSide
  readonly #tools = new MirroredTools()
  readonly #maxSessions: number
  readonly #ttlMs: number
  readonly #now: () => number
  readonly #info: string
  #guard: ((x: Exchange) => void) | undefined

  constructor(source: ServerSource, options: BridgeOptions) {
    const { log, version = '0.0.0', probeMs } = options
    this.#source = source
    this.#options = options
    this.#mode = options.mode ?? 'streamable-http'
    this.#maxSessions = options.maxSessions ?? 100
    this.#ttlMs = options.sessionTtlMs ?? 30 * 60_000
    this.#now = options.now ?? Date.now
    this.#info = JSON.stringify({ name: 'gatehouse', version })
    this.#openings = new Openings((onMessage) => this.#source.take(onMessage), this.#now)
    this.#stateless = new ServedStatelessSide({
      openings: this.#openings,
      info: this.#info,
      // The limit applies to each protocol era, so that clients of one era cannot use the last process of the other
      // era.
      maxProcesses: () =>
        Math.max(1, Math.min(Math.floor(this.#maxSessions / 2), this.#maxSessions - this.#sessions.size)),
      now: this.#now,
      log,
      probeMs,
    })
  }

  handler() {
    const served: readonly string[] = paths[this.#mode]
    return pipeline<BridgeExchange>(
      {
        route: (x) => (x.path === '/health' ? health : served.includes(x.path) ? undefined : notFound),
        limits: (x) => rejectBodyByHeaders(x),
        guard: (x) => this.#guard?.(x),
        parse: async (x) => {
          await readBody(x)
          if (x.req.method === 'POST') x.message = scanMessage(x.body, clientRules)
        },
        dispatch: (x) => (this.#mode === 'sse' ? this.#dispatchOld(x) : this.#dispatch(x)),
        recover: (x, error) => this.#recover(x, error),
      },
      BridgeExchange,
    )
  }

  serveOn(listener: Listener): StdioBridge {
    const { host } = this.#options
    this.#guard = makeOriginCheck({ host, port: listener.port, allowedOrigins: [] }).check
    this.#source.start()
    const timer = setInterval(() => this.#evict(), evictMs)
    timer.unref()
    const [source, stateless] = [this.#source, this.#stateless]
    return {
      get startingSince() {
        return source.startingSince
      },
      get hasSpoken() {
        return source.hasSpoken
      },
      get refusal() {
        return stateless.refusal
      },
      url: `${listener.url}${paths[this.#mode][0]}`,
      port: listener.port,
      failed: this.#source.failed,
      close: async () => {
        clearInterval(timer)
        const spare = this.#source.close()
        const ending = [...this.#sessions.values()].map((session) => session.close())
        const unused = this.#openings.close()
        await Promise.all([
          spare,
          ...ending,
          unused,
          this.#stateless.close(),
          listener.close({ graceMs: 1000 }),
        ])
        await this.#source.closeAll()
      },
    }
  }

  async #dispatch(x: BridgeExchange): Promise<void> {
    const { method, headers } = x.req
    if (method === 'POST' && x.message) return this.#post(x, x.message)
    const allow = headers[headerName.protocolVersion] === statelessVersion ? 'POST' : 'GET, POST, DELETE'
    if (method === 'GET' && allow !== 'POST') return this.#get(x)
    if (method === 'DELETE' && allow !== 'POST') return this.#delete(x)
    throw new GatehouseError('METHOD_NOT_ALLOWED', { headers: { Allow: allow } })
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

  /** Opens a session that ends with its stream, because the server has no other way to reach the client. */
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
    const params = paramsOf(message)
    const version = single(x.req.headers[headerName.protocolVersion])
    if (eraOf(message, params, version) === 'stateless') return this.#postStateless(x, message, params)
    const session = message.method === 'initialize' ? this.#begin() : this.#sessionOf(x, message.id)
    session.lastUsed = this.#now()
    if (message.kind === 'request') return session.request(message, x.res)
    session.send(message)
    x.res.writeHead(202, { 'Content-Length': 0 })
    x.res.end()
  }

  async #postStateless({ req, res }: BridgeExchange, message: Message, params: JsonObject): Promise<void> {
    const { id, method, kind } = message
    if (kind === 'notification') {
      res.writeHead(202, { 'Content-Length': 0 }).end()
      return
    }
    if (kind !== 'request' || id === undefined) throw new MessageError('INVALID_REQUEST', id)
    const meta = checkStateless(message, params, req.headers, allVersions)
    if (method === 'tools/call') {
      const header = this.#tools.mismatch(params, req.headers)
      if (header !== undefined)
        throw new MessageError('HEADER_MISMATCH', id, {
          detail: `Header mismatch: Mcp-Param-${header} does not match the request`,
        })
    }
    const caller = single(req.headers[callerHeader])
    // Use a digest, because the header may be long, and a truncated value could match another caller.
    const scope = caller === undefined ? '' : callerDigest(caller)
    const reply = new HttpReply(req, res, (result) => {
      if (method === 'tools/list') void this.#tools.readPage(result)
    })
    await this.#stateless.request({ id, method, params, meta, scope }, reply)
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
    const header = x.req.headers[headerName.sessionId]
    const session = typeof header === 'string' ? this.#sessions.get(header) : undefined
    if (session) return session
    if (header === undefined) {
      throw new MessageError('BAD_REQUEST', id, { detail: 'Bad Request: Mcp-Session-Id header is required' })
    }
    throw new MessageError('SESSION_NOT_FOUND', id)
  }

  #begin(): BridgeSession {
    if (this.#sessions.size + this.#stateless.size >= this.#maxSessions)
      throw new GatehouseError('TOO_MANY_SESSIONS')
    const session = new BridgeSession({
      open: (onMessage) => this.#openings.link(onMessage),
      log: this.#options.log,
      info: this.#info,
      now: this.#now(),
    })
    this.#sessions.set(session.id, session)
    void session.ended.then(() => this.#sessions.delete(session.id))
    return session
  }

  #evict(): void {
    const oldest = this.#now() - this.#ttlMs
    this.#stateless.evict(oldest)
    this.#openings.evict(oldest)
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
    const headers = known ? { ...error.headers, ...refusalHeaders(error) } : {}
    sendBody(x.res, known ? error.status : 500, jsonType, errorMessage(id, error), headers)
  }
}

function refuseWithoutEvents({ req }: Pick<Exchange, 'req'>): void {
  if (String(req.headers.accept).includes(eventStreamType)) return
  throw new GatehouseError('NOT_ACCEPTABLE', {
    detail: `Not Acceptable: the client must accept ${eventStreamType}`,
  })
}

function health(x: Exchange): void {
  sendJson(x.res, 200, { status: 'ok' })
}

function notFound(): void {
  throw new GatehouseError('NOT_FOUND')
}
