/**
 * One client session over HTTP and the stdio server process that is its own.
 *
 * A POSTed request waits here for its response. Standard output does not say to which request a notification or a question
 * of the server belongs: progress goes to the request whose token it carries, everything else to the newest request that
 * waits, or to the standing stream when none does. Without either, a bounded number is kept for the stream to come. On
 * the HTTP+SSE (deprecated) transport everything goes to the one stream that the client opened. A client that does not read is cut.
 * Source: MCP 2025-11-25, transports; MCP 2024-11-05, "HTTP with SSE".
 */
import type { ServerResponse } from 'node:http'
import { GatehouseError } from '../../../schemas/index.ts'
import {
  EVENT_STREAM_TYPE,
  encodeEvent,
  errorMessage,
  HEADER,
  JSON_TYPE,
  type Message,
  paramsOf,
  scanMessage,
} from '../../mcp/index.ts'
import { holdsStream, type Log } from '../../net/index.ts'
import { type PeerCommand, type StdioPeer, startPeer } from './peer.ts'

/** Messages kept for a standing stream that is not open; the oldest go first. */
const maxKept = 100
/** Bytes that may wait for a client; it gets no more beyond that. */
const maxUnread = 16 * 1024 * 1024
/** Quiet streams say this now and then, so that nothing between here and the client takes them for dead. */
const keepAliveMs = 30_000
const keepAlive = ': keep-alive\n\n'

interface Waiting {
  readonly res: ServerResponse
  readonly progressToken: string | undefined
  readonly done: () => void
}

export class BridgeSession {
  readonly id: string = crypto.randomUUID()
  readonly ended: Promise<string>
  lastUsed: number
  readonly #peer: StdioPeer
  readonly #log: Log
  /** By raw JSON-RPC id, in order of arrival. */
  readonly #waiting = new Map<string, Waiting>()
  #stream: ServerResponse | undefined
  /** the HTTP+SSE (deprecated) transport: answers leave on the stream, too. */
  #streamOnly = false
  #kept: Buffer[] = []

  constructor(command: PeerCommand, options: { log: Log; onLine: (line: string) => void; now: number }) {
    this.#log = options.log
    this.lastUsed = options.now
    this.#peer = startPeer(command, (line) => this.#fromServer(line), options.onLine)
    this.ended = this.#peer.ended
    void this.ended.then(() => this.#abandon())
  }

  /** True while a request waits or the standing stream is open. */
  get busy(): boolean {
    return this.#waiting.size > 0 || this.#stream !== undefined
  }

  /** A notification or a response of the client. */
  send(message: Message): void {
    this.#peer.send(message.bytes)
  }

  /**
   * Answers a request on the stream with "method not found", in place of the server: the HTTP+SSE (deprecated) transport
   * has no stateless revision, and a server may not take kindly to a request before `initialize`.
   */
  refuse({ id }: Message): void {
    if (id !== undefined) this.#push(this.#stream, errorMessage(id, new GatehouseError('METHOD_NOT_FOUND')))
  }

  /** A request of the client; resolves when its response is complete or the client is gone. */
  request(message: Message, res: ServerResponse): Promise<void> {
    const { id } = message
    if (id === undefined) throw new GatehouseError('INVALID_REQUEST')
    if (this.#waiting.has(id)) {
      throw new GatehouseError('INVALID_REQUEST', { detail: 'a request with this id is being answered' })
    }
    return new Promise((resolve, reject) => {
      const done = () => {
        this.#waiting.delete(id)
        resolve()
      }
      this.#waiting.set(id, { res, done, progressToken: progressTokenOf(message) })
      res.once('close', done)
      try {
        this.#peer.send(message.bytes)
      } catch (error) {
        this.#waiting.delete(id)
        reject(error)
      }
    })
  }

  /** Opens the standing stream; a second one replaces the first. */
  openStream(res: ServerResponse): void {
    this.#stream?.end()
    this.#stand(res, { [HEADER.sessionId]: this.id })
  }

  /** Opens the one stream of the HTTP+SSE (deprecated) transport; its first event says where to send messages. */
  openOldStream(res: ServerResponse, endpoint: string): void {
    this.#streamOnly = true
    this.#stand(res, {}, encodeEvent(Buffer.from(endpoint), { event: 'endpoint' }))
  }

  #stand(res: ServerResponse, headers: Record<string, string>, first?: Buffer): void {
    this.#stream = res
    beginStream(res, headers)
    if (first) res.write(first)
    for (const message of this.#kept) res.write(encodeEvent(message))
    this.#kept = []
    const alive = setInterval(() => res.write(keepAlive), keepAliveMs)
    alive.unref()
    res.once('close', () => {
      clearInterval(alive)
      if (this.#stream === res) this.#stream = undefined
    })
  }

  /** Ends the server. Requests that wait get an error. */
  async close(): Promise<void> {
    await this.#peer.close()
    this.#stream?.end()
  }

  #fromServer(line: Buffer): void {
    let message: Message
    try {
      message = scanMessage(line)
    } catch {
      this.#log.warn('the server printed a line that is not a JSON-RPC message; it was dropped')
      return
    }
    if (this.#streamOnly) return this.#push(this.#stream, line)
    const responded =
      message.method === '' && message.id !== undefined ? this.#waiting.get(message.id) : undefined
    if (responded) return this.#response(responded, line)
    if (message.method !== '') this.#relay(message)
  }

  #response({ res, done }: Waiting, line: Buffer): void {
    if (res.headersSent) res.end(encodeEvent(line))
    else {
      res.writeHead(200, {
        'Content-Type': JSON_TYPE,
        'Content-Length': line.length,
        [HEADER.sessionId]: this.id,
      })
      res.end(line)
    }
    done()
  }

  /** A notification or a question of the server. */
  #relay(message: Message): void {
    const target = this.#targetOf(message)
    if (target) {
      if (!target.headersSent) beginStream(target, { [HEADER.sessionId]: this.id })
      this.#push(target, message.bytes)
    } else if (this.#stream) {
      this.#push(this.#stream, message.bytes)
    } else {
      this.#kept = [...this.#kept.slice(1 - maxKept), message.bytes]
    }
  }

  #push(res: ServerResponse | undefined, message: Buffer): void {
    if (!res || res.destroyed) return
    res.write(encodeEvent(message))
    if (res.writableLength <= maxUnread) return
    this.#log.warn('a client that does not read was cut off')
    res.destroy()
  }

  #targetOf(message: Message): ServerResponse | undefined {
    const waiting = [...this.#waiting.values()]
    if (message.method !== 'notifications/progress') return waiting.at(-1)?.res
    const token = paramsOf(message).raw('progressToken')?.toString()
    return waiting.find(({ progressToken }) => progressToken !== undefined && progressToken === token)?.res
  }

  #abandon(): void {
    for (const { res, done } of this.#waiting.values()) {
      res.destroy()
      done()
    }
    this.#stream?.end()
  }
}

function beginStream(res: ServerResponse, headers: Readonly<Record<string, string>>): void {
  res.writeHead(200, { 'Content-Type': EVENT_STREAM_TYPE, 'Cache-Control': 'no-store', ...headers })
  res.flushHeaders()
  holdsStream(res, () => res.end())
}

function progressTokenOf(message: Message): string | undefined {
  return paramsOf(message).object('_meta')?.raw('progressToken')?.toString()
}
