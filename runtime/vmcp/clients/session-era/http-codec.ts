/**
 * Implements the session era for clients over streamable HTTP. Handles POST for messages, GET for the stream, and
 * DELETE.
 * Source: MCP 2025-11-25, transports.
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import { type ClientMessage, headerName, MessageError, sessionVersions } from '../../../mcp/index.ts'
import type { Caller } from '../../../net/index.ts'
import type { Gate } from '../../../policy/index.ts'
import type { ServerSession } from '../sessions/session.ts'
import { selectHeaders, type HeaderAllowlist } from '../../model/client.ts'
import type { VmcpExchange } from '../../model/exchange.ts'
import { Reply } from '../reply.ts'
import { acceptsEventStream, beginEventStream, holdStream } from '../stream.ts'
import type { SessionProtocol } from './protocol.ts'

export interface SessionEdgeOptions {
  readonly protocol: SessionProtocol
  readonly allowlist: HeaderAllowlist
  /** Returns the active policies, or undefined if none are configured. */
  readonly gate: () => Gate | undefined
}

export class SessionEdge {
  readonly #options: SessionEdgeOptions

  constructor(options: SessionEdgeOptions) {
    this.#options = options
  }

  /**
   * Handles a POST, which contains a message; a GET, which opens the stream for messages that do not belong to a
   * request; and a DELETE, which ends the session. Rejects with INVALID_REQUEST, SESSION_NOT_FOUND or
   * SESSION_STORE_DOWN.
   */
  async handle(exchange: VmcpExchange, posted: ClientMessage | undefined, caller: Caller): Promise<void> {
    const { protocol, allowlist } = this.#options
    const { req, res } = exchange
    const { [headerName.sessionId]: sessionId, [headerName.protocolVersion]: version } = req.headers
    const passed = allowlist.passthroughHeaders
    const headers = passed.length === 0 ? {} : selectHeaders(req.headers, passed)
    if (posted?.message.method === 'initialize') {
      const { session, response } = await protocol.open(posted.message, posted.params, caller, headers)
      new Reply(req, res, { headers: { [headerName.sessionId]: session.id } }).end(response)
      return
    }
    if (req.method === 'GET' && !acceptsEventStream(req)) {
      const detail = 'Not Acceptable: the client must accept text/event-stream'
      throw new GatehouseError('NOT_ACCEPTABLE', { detail })
    }
    if (sessionId === undefined) {
      const detail = 'Invalid Request: the Mcp-Session-Id header is required'
      throw new MessageError('INVALID_REQUEST', posted?.message.id, { detail })
    }
    if (version !== undefined && !sessionVersions.includes(version)) {
      const detail = 'Invalid Request: unsupported MCP-Protocol-Version'
      throw new MessageError('INVALID_REQUEST', posted?.message.id, { detail })
    }
    let session: ServerSession
    try {
      session = await protocol.sessions.find(sessionId, caller)
    } catch (error) {
      // A caller that may not send this message must not find out which sessions exist.
      if (posted && error instanceof GatehouseError && error.code === 'SESSION_NOT_FOUND') {
        const { message, params } = posted
        const { signal } = exchange
        await this.#options.gate()?.check(caller, message.method, params, { signal, factsOf: () => 'later' })
      }
      throw error
    }
    // Set the client in the turn of the event loop in which the request starts. Otherwise, another request in this
    // session might set a caller with different scopes in the meantime.
    session.client = { ...session.client, caller, headers }
    if (posted) {
      const reply = new Reply(req, res, { openResumableStream: () => session.openStream() })
      await protocol.receive(session, posted.message, posted.params, reply)
      if (posted.message.kind !== 'request') reply.drop()
    } else if (req.method === 'GET') {
      beginEventStream(res, { [headerName.sessionId]: session.id })
      holdStream(exchange)
      session.addStream(res, { lastEventId: req.headers[headerName.lastEventId] })
    } else {
      await protocol.sessions.end(session.id, caller)
      res.writeHead(200, { 'content-length': 0 }).end()
    }
  }
}
