/**
 * Session-era codec towards clients, over streamable HTTP: initialize, requests, notifications and answers by POST, the
 * GET stream, and DELETE.
 * Source: MCP 2025-11-25, lifecycle, transports, utilities.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import {
  ASSUMED_SESSION_VERSION,
  errorMessage,
  errorObject,
  HEADER,
  JsonObject,
  LATEST_SESSION_VERSION,
  LOG_LEVELS,
  type Message,
  MessageError,
  rawErrorMessage,
  resultMessage,
  RPC,
  SESSION_VERSIONS,
} from '../../mcp/index.ts'
import type { Caller, Log } from '../../net/index.ts'
import type { Client, Operation, Outcome } from '../operation.ts'
import { MAX_IN_FLIGHT, type Session } from '../sessions/session.ts'
import type { SessionTable } from '../sessions/table.ts'
import { NO_ABILITIES, passedHeaders, readAbilities } from './client.ts'
import type { VmcpExchange } from './exchange.ts'
import { LiveOperation } from './live-operation.ts'
import { acceptsEventStream, beginEventStream, holdStream, Reply } from './reply.ts'

export interface SessionEdgeOptions {
  readonly sessions: SessionTable
  /** The core with everything that stands before it. */
  readonly perform: (operation: Operation) => Promise<Outcome>
  /** Told of everything that happens to a session. */
  readonly life: SessionLife
  readonly serverInfo: string
  readonly passthroughHeaders: () => readonly string[]
  readonly replies: Set<Reply>
  readonly log: Log
}

export interface SessionLife {
  /** The client has said that it is ready. */
  ready(session: Session): void
  /** A request or notification arrived; before it is carried out. */
  used(session: Session): void
  subscribed(session: Session, uri: string): void
  unsubscribed(session: Session, uri: string): void
  levelSet(session: Session): void
  rootsChanged(session: Session): void
  /** A list was answered: the client has seen the present state of it. */
  listed(session: Session, method: string): void
}

const CAPABILITIES =
  '{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"logging":{},"completions":{}}'

export class SessionEdge {
  readonly #options: SessionEdgeOptions

  constructor(options: SessionEdgeOptions) {
    this.#options = options
  }

  async post(exchange: VmcpExchange, message: Message, params: JsonObject, caller: Caller): Promise<void> {
    if (message.method === 'initialize') return this.#initialize(exchange, message, params, caller)
    const session = await this.#sessionOf(exchange, caller, message.id)
    session.headers = passedHeaders(exchange.req.headers, this.#options.passthroughHeaders())
    this.#options.life.used(session)
    if (message.kind === 'request') return this.#request(exchange, session, message, params)
    if (message.kind === 'notification') this.#notification(session, message, params)
    else session.answer(message)
    exchange.res.writeHead(202).end()
  }

  async #sessionOf(exchange: VmcpExchange, caller: Caller, id: string | undefined): Promise<Session> {
    const sessionId = exchange.header('sessionId')
    if (sessionId === undefined) {
      throw new MessageError('INVALID_REQUEST', id, {
        detail: 'Invalid Request: the Mcp-Session-Id header is required',
      })
    }
    const version = exchange.header('protocolVersion')
    if (version !== undefined && !SESSION_VERSIONS.includes(version)) {
      throw new MessageError('INVALID_REQUEST', id, {
        detail: 'Invalid Request: unsupported MCP-Protocol-Version',
      })
    }
    try {
      return await this.#options.sessions.find(sessionId, caller)
    } catch (error) {
      throw error instanceof GatehouseError ? new MessageError(error.code, id, { cause: error.cause }) : error
    }
  }

  async #initialize(
    exchange: VmcpExchange,
    message: Message,
    params: JsonObject,
    caller: Caller,
  ): Promise<void> {
    if (message.kind !== 'request' || message.id === undefined) {
      throw new MessageError('INVALID_REQUEST', message.id, {
        detail: 'Invalid Request: initialize needs an id',
      })
    }
    const asked = params.text('protocolVersion')
    const capabilities = params.raw('capabilities')
    if (asked === undefined || (capabilities !== undefined && capabilities[0] !== 0x7b)) {
      throw new MessageError('INVALID_PARAMS', message.id, {
        detail: 'Invalid params: protocolVersion and capabilities are required',
      })
    }
    const protocolVersion = SESSION_VERSIONS.includes(asked) ? asked : LATEST_SESSION_VERSION
    const info = params.raw('clientInfo')
    const session = await this.#options.sessions.open(
      {
        protocolVersion,
        abilities: capabilities ? readAbilities(capabilities) : NO_ABILITIES,
        info: info ? Buffer.from(info) : undefined,
      },
      caller,
    )
    session.headers = passedHeaders(exchange.req.headers, this.#options.passthroughHeaders())
    const result = `{"protocolVersion":"${protocolVersion}","capabilities":${CAPABILITIES},"serverInfo":${this.#options.serverInfo}}`
    const body = resultMessage(message.id, result)
    exchange.res.writeHead(200, {
      'content-type': 'application/json',
      'content-length': body.length,
      [HEADER.sessionId]: session.id,
    })
    exchange.res.end(body)
    this.#options.life.used(session)
  }

  async #request(
    exchange: VmcpExchange,
    session: Session,
    message: Message,
    params: JsonObject,
  ): Promise<void> {
    const id = message.id ?? ''
    const reply = new Reply(exchange.req, exchange.res)
    try {
      const result = await this.#local(session, message, params)
      if (result !== undefined) {
        reply.end(resultMessage(id, result))
        return
      }
    } catch (error) {
      reply.end(sessionError(id, error))
      return
    }
    await this.#operate(session, message, params, reply)
  }

  /** Requests that need no backend. Answers the raw result, or undefined. */
  async #local(session: Session, message: Message, params: JsonObject): Promise<string | undefined> {
    if (message.method === 'ping') return '{}'
    if (message.method !== 'logging/setLevel') return undefined
    const level = params.text('level')
    if (level === undefined || !LOG_LEVELS.includes(level)) {
      throw new GatehouseError('INVALID_PARAMS', {
        detail: `Invalid params: level must be one of ${LOG_LEVELS.join(', ')}`,
      })
    }
    session.logLevel = level
    await this.#options.sessions.save(session)
    this.#options.life.levelSet(session)
    return '{}'
  }

  async #operate(session: Session, message: Message, params: JsonObject, reply: Reply): Promise<void> {
    const id = message.id ?? ''
    if (session.inFlight.has(id) || session.inFlight.size >= MAX_IN_FLIGHT) {
      const detail = session.inFlight.has(id)
        ? 'Invalid Request: the id is in use'
        : 'Invalid Request: too many requests at a time'
      reply.end(errorMessage(id, new GatehouseError('INVALID_REQUEST', { detail })))
      return
    }
    const operation: LiveOperation = new LiveOperation({
      message,
      params,
      client: clientOf(session),
      logLevel: session.logLevel,
      logs: true,
      sink: {
        send: (bytes) => reply.send(bytes) || pushed(session, bytes),
        ask: (request) =>
          session.askBy((bytes) => reply.send(bytes) || pushed(session, bytes), request, operation.signal),
      },
    })
    let cancelled = false
    session.inFlight.set(id, (reason) => {
      cancelled = true
      operation.cancel(reason)
    })
    const onClose = (): void => operation.cancel(new Error('the client went away'))
    reply.res.once('close', onClose)
    this.#options.replies.add(reply)
    try {
      const outcome = await this.#options.perform(operation)
      if (outcome.kind === 'error') reply.end(rawErrorMessage(id, outcome.error))
      else reply.endResult(id, outcome.result)
      this.#note(session, message.method, params)
    } catch (error) {
      if (cancelled) reply.drop()
      else reply.end(sessionError(id, error))
    } finally {
      reply.res.off('close', onClose)
      this.#options.replies.delete(reply)
      session.inFlight.delete(id)
    }
  }

  #note(session: Session, method: string, params: JsonObject): void {
    const { life } = this.#options
    if (method === 'resources/subscribe') life.subscribed(session, params.text('uri') ?? '')
    else if (method === 'resources/unsubscribe') life.unsubscribed(session, params.text('uri') ?? '')
    else if (method.endsWith('/list')) life.listed(session, method)
  }

  #notification(session: Session, message: Message, params: JsonObject): void {
    switch (message.method) {
      case 'notifications/initialized':
        this.#options.life.ready(session)
        break
      case 'notifications/cancelled': {
        const id = params.raw('requestId')?.toString()
        if (id !== undefined) session.inFlight.get(id)?.(new Error('the client cancelled the request'))
        break
      }
      case 'notifications/roots/list_changed':
        this.#options.life.rootsChanged(session)
        break
      default:
        this.#options.log.debug('a notification of a client is not relayed', { method: message.method })
    }
  }

  /** GET: the stream on which the server speaks unasked. */
  async get(exchange: VmcpExchange, caller: Caller): Promise<void> {
    if (!acceptsEventStream(exchange.req)) {
      throw new GatehouseError('NOT_ACCEPTABLE', {
        detail: 'Not Acceptable: the client must accept text/event-stream',
      })
    }
    const session = await this.#sessionOf(exchange, caller, undefined)
    session.headers = passedHeaders(exchange.req.headers, this.#options.passthroughHeaders())
    beginEventStream(exchange.res, { [HEADER.sessionId]: session.id })
    holdStream(exchange.res)
    session.addStream(exchange.res)
    this.#options.life.used(session)
  }

  /** DELETE: the client needs the session no more. */
  async delete(exchange: VmcpExchange, caller: Caller): Promise<void> {
    const session = await this.#sessionOf(exchange, caller, undefined)
    await this.#options.sessions.end(session.id, caller)
    exchange.res.writeHead(200, { 'content-length': 0 }).end()
  }
}

function pushed(session: Session, message: Buffer): boolean {
  session.push(message)
  return true
}

/** The client behind a session, as it is at this request. */
export function clientOf(session: Session): Client {
  const { protocolVersion, abilities, info } = session.facts
  return {
    era: 'session',
    protocolVersion: protocolVersion || ASSUMED_SESSION_VERSION,
    caller: session.caller,
    abilities,
    info,
    headers: session.headers,
    session,
  }
}

/** Session-era clients know a code of their own for a resource that does not exist. */
function sessionError(id: string, error: unknown): Buffer {
  if (error instanceof GatehouseError && error.code === 'RESOURCE_NOT_FOUND') {
    return rawErrorMessage(id, JSON.stringify({ ...errorObject(error), code: RPC.resourceNotFound }))
  }
  return errorMessage(id, error)
}
