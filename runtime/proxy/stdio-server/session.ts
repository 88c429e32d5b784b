/**
 * One client's session over HTTP, with its own stdio server process.
 *
 * A POST request waits here for its response. Standard output does not show which request a notification or a server
 * request belongs to. A progress notification goes to the request with the matching token. Every other message goes to
 * the newest pending request or, if there is none, to the standing stream. Without either, a limited number of messages
 * is buffered for the next stream. Over the deprecated HTTP+SSE transport, all messages go to the one stream that the
 * client opened. A client that does not read is disconnected. When a program rejects `initialize` and supports the
 * stateless era, its messages are translated.
 * Source: MCP 2025-11-25, transports; MCP 2024-11-05, "HTTP with SSE"; MCP 2026-07-28, stdio.
 */
import type { ServerResponse } from 'node:http'
import { GatehouseError } from '../../../schemas/index.ts'
import {
  encodeEvent,
  errorMessage,
  eventParts,
  headerName,
  jsonType,
  type Message,
  paramsOf,
  resultParts,
  scanMessage,
  type OpenLink,
  type ServerLink,
  linkEnded,
  InitializeFallback,
} from '../../mcp/index.ts'
import { type Log, writeParts } from '../../net/index.ts'
import { beginStream, pushEvent } from './event-stream.ts'

/** Number of messages buffered while no standing stream is open; the oldest are dropped first. */
const maxBuffered = 100
/**
 * Maximum number of HTTP+SSE requests that get an error when the server ends. All other requests end when their streams
 * end.
 */
const maxOnStream = 1_000

interface Waiting {
  readonly res: ServerResponse
  readonly progressToken: string | undefined
  readonly done: () => void
}

export interface BridgeSessionOptions {
  readonly open: OpenLink
  readonly log: Log
  /** This program's own `Implementation` as raw JSON. */
  readonly info: string
  readonly now: number
}

export class BridgeSession {
  readonly id: string = crypto.randomUUID()
  readonly ended: Promise<string>
  lastUsed: number
  readonly #options: BridgeSessionOptions
  readonly #link: ServerLink
  /** Keyed by raw JSON-RPC id, in order of arrival. */
  readonly #waiting = new Map<string, Waiting>()
  #stream: ServerResponse | undefined
  /** True for HTTP+SSE, where responses are also sent on the stream. */
  #streamOnly = false
  /** Raw ids of requests whose responses are sent on the stream. */
  readonly #onStream = new Set<string>()
  #isClosing = false
  #buffered: Buffer[] = []
  readonly #carrier: InitializeFallback

  constructor(options: BridgeSessionOptions) {
    this.#options = options
    this.lastUsed = options.now
    const { info, log } = options
    this.#carrier = new InitializeFallback({
      toServer: (message) => this.#link.send(message),
      deliver: (message) => this.#deliver(message),
      client: {
        send: (message, about) => this.#toClient(message, about),
        respond: (id, result) => this.#respondTo(id, resultParts(id, result)),
        drop: (about) => this.#drop(about),
      },
      info,
      log,
    })
    this.#link = options.open((message) => this.#carrier.fromServer(message))
    this.ended = this.#link.ended
    void this.ended.then((why) => this.#abandon(why))
  }

  /** True while a request is pending or the standing stream is open. */
  get busy(): boolean {
    return this.#waiting.size > 0 || this.#stream !== undefined
  }

  /** Sends a message from the client. The response, if any, is sent on the stream. */
  send(message: Message): void {
    this.#carrier.fromClient(message)
    if (this.#streamOnly && message.kind === 'request' && this.#onStream.size < maxOnStream)
      this.#onStream.add(message.id ?? '')
  }

  /**
   * Responds "method not found" on the stream, on behalf of the server. The deprecated HTTP+SSE transport has no
   * stateless revision, and some servers fail on a request before `initialize`.
   */
  refuse({ id }: Message): void {
    if (id !== undefined) this.#push(this.#stream, [errorMessage(id, new GatehouseError('METHOD_NOT_FOUND'))])
  }

  /** Sends a request from the client. Resolves when its response is complete or the client has disconnected. */
  request(message: Message, res: ServerResponse): Promise<void> {
    const { id } = message
    if (id === undefined) throw new GatehouseError('INVALID_REQUEST')
    if (this.#waiting.has(id)) {
      throw new GatehouseError('INVALID_REQUEST', { detail: 'a request with this id is in flight' })
    }
    return new Promise((resolve, reject) => {
      const done = () => {
        this.#waiting.delete(id)
        resolve()
      }
      this.#waiting.set(id, { res, done, progressToken: progressTokenOf(message) })
      res.once('close', done)
      // The client never receives the session id, so no further request can reach the session.
      if (message.method === 'initialize') res.once('close', () => !res.headersSent && void this.close())
      try {
        this.send(message)
      } catch (error) {
        this.#waiting.delete(id)
        reject(error)
      }
    })
  }

  /** Opens the standing stream. A new stream replaces the previous one. */
  openStream(res: ServerResponse): void {
    this.#stream?.end()
    this.#stand(res, { [headerName.sessionId]: this.id })
  }

  /** Opens the single stream of the HTTP+SSE transport. The first event on the stream contains the URL for messages. */
  openOldStream(res: ServerResponse, endpoint: string): void {
    this.#streamOnly = true
    this.#stand(res, {}, encodeEvent(Buffer.from(endpoint), { event: 'endpoint' }))
  }

  #stand(res: ServerResponse, headers: Record<string, string>, first?: Buffer): void {
    this.#stream = res
    beginStream(res, headers)
    if (first) res.write(first)
    for (const message of this.#buffered) res.write(encodeEvent(message))
    this.#buffered = []
    res.once('close', () => {
      if (this.#stream === res) this.#stream = undefined
    })
  }

  /** Ends the server. Pending requests get an error. */
  async close(): Promise<void> {
    this.#isClosing = true
    await this.#link.close()
    this.#stream?.end()
  }

  /** Handles a message that the translation created for the client. */
  #toClient(bytes: Buffer, about: string | undefined): void {
    const related = about === undefined ? undefined : this.#waiting.get(about)?.res
    this.#deliver(scanMessage(bytes), related)
  }

  /** Ends the HTTP exchange of a cancelled request without a response message. */
  #drop(about: string): void {
    const waiting = this.#waiting.get(about)
    if (!waiting) return
    const { res, done } = waiting
    if (res.headersSent) res.end()
    else res.writeHead(202, { 'Content-Length': 0 }).end()
    done()
  }

  #deliver(message: Message, related?: ServerResponse): void {
    if (this.#streamOnly && message.method === '') this.#respondTo(message.id ?? '', [message.bytes])
    else if (this.#streamOnly) this.#push(this.#stream, [message.bytes])
    else if (message.method !== '') this.#relay(message, related)
    else if (message.id !== undefined) this.#respondTo(message.id, [message.bytes])
  }

  /** Writes the parts of a response to the request with this raw id. */
  #respondTo(id: string, message: readonly Buffer[]): void {
    if (this.#streamOnly) {
      this.#onStream.delete(id)
      return this.#push(this.#stream, message)
    }
    const waiting = this.#waiting.get(id)
    if (!waiting) return
    const { res, done } = waiting
    if (res.headersSent) writeParts(res, eventParts(message))
    else {
      const length = message.reduce((sum, part) => sum + part.length, 0)
      res.writeHead(200, {
        'Content-Type': jsonType,
        'Content-Length': length,
        [headerName.sessionId]: this.id,
      })
      writeParts(res, message)
    }
    res.end()
    done()
  }

  /** Delivers a notification or a request from the server. */
  #relay(message: Message, related: ServerResponse | undefined): void {
    const target = related ?? (this.#carrier.isTranslated ? undefined : this.#targetOf(message))
    if (target) {
      if (!target.headersSent) beginStream(target, { [headerName.sessionId]: this.id })
      this.#push(target, [message.bytes])
    } else if (this.#stream) {
      this.#push(this.#stream, [message.bytes])
    } else {
      this.#buffered = [...this.#buffered.slice(1 - maxBuffered), message.bytes]
    }
  }

  #push(res: ServerResponse | undefined, message: readonly Buffer[]): void {
    if (res && !pushEvent(res, eventParts(message)))
      this.#options.log.warn('disconnected a client that does not read')
  }

  #targetOf(message: Message): ServerResponse | undefined {
    const waiting = [...this.#waiting.values()]
    if (message.method !== 'notifications/progress') return waiting.at(-1)?.res
    const token = paramsOf(message).raw('progressToken')?.toString()
    return waiting.find(({ progressToken }) => progressToken !== undefined && progressToken === token)?.res
  }

  /** Sends an error for every pending request, because the server will not respond. */
  #abandon(why: string): void {
    const error = this.#isClosing ? closed : linkEnded(why)
    this.#carrier.end(error)
    for (const id of this.#onStream) this.#push(this.#stream, [errorMessage(id, error)])
    for (const id of this.#waiting.keys()) this.#respondTo(id, [errorMessage(id, error)])
    this.#stream?.end()
  }
}

const closed = new GatehouseError('BACKEND_UNREACHABLE', { detail: 'the session was closed' })

function progressTokenOf(message: Message): string | undefined {
  return paramsOf(message).object('_meta')?.raw('progressToken')?.toString()
}
