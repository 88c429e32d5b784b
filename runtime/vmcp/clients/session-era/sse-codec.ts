/**
 * Implements the session era for clients over the deprecated HTTP+SSE transport. `GET /sse` opens the stream that
 * carries all messages to the client. The stream's `endpoint` event contains the URL for POSTs, and each POST returns
 * 202 immediately. The session ends when the stream ends.
 *
 * The number of streams is bounded. Only the caller that opened a stream can send POSTs for this stream.
 * Source: MCP 2024-11-05, transports, "HTTP with SSE"; docs/reference/specification/virtual-server.md (the server
 * supports sse and streamable-http).
 */
import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { GatehouseError } from '../../../../schemas/index.ts'
import {
  type ClientMessage,
  encodeEvent,
  eventParts,
  errorMessage,
  type Message,
  MessageError,
  resultMessage,
  resultParts,
} from '../../../mcp/index.ts'
import { type Caller, setPeerAddress, peerAddress } from '../../../net/index.ts'
import type { ServerSession } from '../sessions/session.ts'
import type { ClientResponse } from '../response.ts'
import { isShared, selectHeaders, type HeaderAllowlist } from '../../model/client.ts'
import { messagesPath, type VmcpExchange } from '../../model/exchange.ts'
import { beginEventStream, holdStream, writeBounded } from '../stream.ts'
import type { SessionProtocol } from './protocol.ts'

const maxStreams = 5_000
const maxPerCaller = 200

export interface OldSseEdgeOptions {
  readonly protocol: SessionProtocol
  readonly allowlist: HeaderAllowlist
  /** Prefix of ids that route a client back to this process. */
  readonly tag: string
}

interface Stream {
  readonly owner: string
  readonly res: ServerResponse
  session: ServerSession | undefined
}

export class OldSseEdge {
  readonly #options: OldSseEdgeOptions
  readonly #streams = new Map<string, Stream>()

  constructor(options: OldSseEdgeOptions) {
    this.#options = options
  }

  /** Handles GET /sse. */
  open(exchange: VmcpExchange, caller: Caller): void {
    let own = 0
    for (const { owner } of this.#streams.values()) if (owner === caller.key) own++
    if (this.#streams.size >= maxStreams || own >= (isShared(caller) ? maxStreams : maxPerCaller))
      throw new GatehouseError('TOO_MANY_SESSIONS')
    const id = this.#options.tag + randomUUID()
    const { res } = exchange
    const stream: Stream = { owner: caller.key, res, session: undefined }
    this.#streams.set(id, stream)
    res.once('close', () => {
      this.#streams.delete(id)
      const { session } = stream
      if (session) this.#options.protocol.sessions.end(session.id, session.client.caller).catch(() => {})
    })
    beginEventStream(res)
    holdStream(exchange)
    res.write(encodeEvent(Buffer.from(`${messagesPath}?sessionId=${id}`), { event: 'endpoint' }))
  }

  /** Handles POST /messages. */
  async post(exchange: VmcpExchange, { message, params }: ClientMessage, caller: Caller): Promise<void> {
    const stream = this.#streams.get(new URLSearchParams(exchange.query).get('sessionId') ?? '')
    if (stream?.owner !== caller.key) throw new MessageError('SESSION_NOT_FOUND', message.id)
    const { protocol } = this.#options
    const headers = selectHeaders(exchange.req.headers, this.#options.allowlist.passthroughHeaders)
    const response = new StreamResponse(stream.res)
    if (message.method === 'initialize') {
      if (stream.session)
        throw new MessageError('INVALID_REQUEST', message.id, {
          detail: 'Invalid Request: the session is already initialized',
        })
      const { session, response: opened } = await protocol.open(message, params, caller, headers)
      stream.session = session
      session.addStream(stream.res, { isResumable: false })
      accept(exchange)
      response.end(opened)
      return
    }
    const session = stream.session ? await protocol.sessions.find(stream.session.id, caller) : undefined
    if (!session || message.method === 'server/discover') {
      accept(exchange)
      answerOutsideSession(message, response)
      return
    }
    session.client = { ...session.client, caller, headers }
    accept(exchange)
    try {
      await protocol.receive(session, message, params, response)
    } catch (error) {
      if (message.kind === 'request') response.end(errorMessage(message.id, error))
    }
  }

  close(): void {
    for (const { res } of this.#streams.values()) res.end()
  }
}

function accept({ req, res }: VmcpExchange): void {
  // The operation may end, and may be audited, after the connection has closed.
  setPeerAddress(req, peerAddress(req))
  res.writeHead(202, { 'content-type': 'text/plain' }).end('Accepted')
}

/**
 * Answers a ping outside a session, and rejects all other messages. A client that gets an error for `server/discover`
 * must send `initialize`, because this transport has no stateless revision.
 */
function answerOutsideSession({ kind, id, method }: Message, response: ClientResponse): void {
  if (kind !== 'request' || id === undefined) return
  if (method === 'ping') response.end(resultMessage(id, '{}'))
  else if (method === 'server/discover')
    response.end(errorMessage(id, new GatehouseError('METHOD_NOT_FOUND')))
  else {
    const detail = 'Invalid Request: send initialize first'
    response.end(errorMessage(id, new GatehouseError('INVALID_REQUEST', { detail })))
  }
}

/** Writes responses to the session's stream. The stream stays open after each response. */
class StreamResponse implements ClientResponse {
  readonly streaming = true
  readonly #res: ServerResponse
  #onClose: (() => void) | undefined

  constructor(res: ServerResponse) {
    this.#res = res
  }

  send(message: Buffer): boolean {
    return writeBounded(this.#res, encodeEvent(message))
  }

  end(message: Buffer): void {
    writeBounded(this.#res, encodeEvent(message))
  }

  endResult(id: string, result: Buffer): void {
    writeBounded(this.#res, eventParts(resultParts(id, result)))
  }

  drop(): void {
    // A cancelled request has no response.
  }

  set onClose(listener: (() => void) | undefined) {
    if (this.#onClose) this.#res.off('close', this.#onClose)
    this.#onClose = listener
    if (listener) this.#res.once('close', listener)
  }

  keepAlive(): void {
    // The session keeps its stream alive.
  }
}
