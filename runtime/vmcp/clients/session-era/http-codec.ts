/**
 * Implements the session era for clients over streamable HTTP. Handles POST for messages, GET for the stream, and
 * DELETE.
 * Source: MCP 2025-11-25, transports.
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import {
  headerName,
  type JsonObject,
  type Message,
  MessageError,
  sessionVersions,
} from '../../../mcp/index.ts'
import type { Caller } from '../../../net/index.ts'
import type { ServerSession } from '../sessions/session.ts'
import { selectHeaders, type HeaderAllowlist } from '../../model/client.ts'
import type { VmcpExchange } from '../../model/exchange.ts'
import { Reply } from '../reply.ts'
import { acceptsEventStream, beginEventStream, holdStream } from '../stream.ts'
import type { SessionProtocol } from './protocol.ts'

export interface SessionEdgeOptions {
  readonly protocol: SessionProtocol
  readonly allowlist: HeaderAllowlist
}

export class SessionEdge {
  readonly #options: SessionEdgeOptions

  constructor(options: SessionEdgeOptions) {
    this.#options = options
  }

  async post(exchange: VmcpExchange, message: Message, params: JsonObject, caller: Caller): Promise<void> {
    const { protocol, allowlist } = this.#options
    const { req, res } = exchange
    if (message.method === 'initialize') {
      const passed = selectHeaders(req.headers, allowlist.passthroughHeaders)
      const { session, response } = await protocol.open(message, params, caller, passed)
      new Reply(req, res, { headers: { [headerName.sessionId]: session.id } }).end(response)
      return
    }
    const session = await this.#find(exchange, caller, message.id)
    // Set the sender in the turn of the event loop in which the request starts. Otherwise, another request in this
    // session may set a caller with other scopes in between.
    session.sender = { caller, headers: selectHeaders(req.headers, allowlist.passthroughHeaders) }
    const reply = new Reply(req, res, { openResumableStream: () => session.openStream() })
    await protocol.receive(session, message, params, reply)
    if (message.kind !== 'request') reply.drop()
  }

  /**
   * Returns the session that the headers identify. Rejects with INVALID_REQUEST, SESSION_NOT_FOUND or
   * SESSION_STORE_DOWN.
   */
  async #find(exchange: VmcpExchange, caller: Caller, id: string | undefined): Promise<ServerSession> {
    const sessionId = exchange.req.headers[headerName.sessionId]
    if (sessionId === undefined) {
      const detail = 'Invalid Request: the Mcp-Session-Id header is required'
      throw new MessageError('INVALID_REQUEST', id, { detail })
    }
    const version = exchange.req.headers[headerName.protocolVersion]
    if (version !== undefined && !sessionVersions.includes(version)) {
      const detail = 'Invalid Request: unsupported MCP-Protocol-Version'
      throw new MessageError('INVALID_REQUEST', id, { detail })
    }
    return this.#options.protocol.sessions.find(sessionId, caller)
  }

  /** Handles GET, which opens the stream for messages that do not belong to a request. */
  async get(exchange: VmcpExchange, caller: Caller): Promise<void> {
    const { req, res } = exchange
    if (!acceptsEventStream(req)) {
      const detail = 'Not Acceptable: the client must accept text/event-stream'
      throw new GatehouseError('NOT_ACCEPTABLE', { detail })
    }
    const session = await this.#find(exchange, caller, undefined)
    session.sender = {
      caller,
      headers: selectHeaders(req.headers, this.#options.allowlist.passthroughHeaders),
    }
    beginEventStream(res, { [headerName.sessionId]: session.id })
    holdStream(exchange)
    session.addStream(res, { lastEventId: req.headers[headerName.lastEventId] })
  }

  /** Handles DELETE, which ends the session. */
  async delete(exchange: VmcpExchange, caller: Caller): Promise<void> {
    const { req, res } = exchange
    const session = await this.#find(exchange, caller, undefined)
    session.sender = {
      caller,
      headers: selectHeaders(req.headers, this.#options.allowlist.passthroughHeaders),
    }
    await this.#options.protocol.sessions.end(session.id, caller)
    res.writeHead(200, { 'content-length': 0 }).end()
  }
}
