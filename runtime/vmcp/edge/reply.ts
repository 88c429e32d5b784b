/**
 * The answer to one POST: plain JSON when nothing has to be said before the result, otherwise an event stream that
 * ends with the result.
 *
 * A client that accepts event streams gets one as soon as progress, a log message or a question comes first, or when
 * the answer takes so long that something on the way might think the connection dead.
 * Source: MCP 2025-11-25, transports, "Sending Messages to the Server".
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { encodeEvent, KEEP_ALIVE, resultMessage, resultParts } from '../../mcp/index.ts'
import { holdsStream } from '../../net/index.ts'
import type { Answer } from './answer.ts'

/** What may wait in a slow client's socket before its stream is cut. */
export const MAX_BUFFERED_BYTES = 16 * 1024 * 1024
/** A client that takes nothing of a waiting answer for so long is cut off. */
const STUCK_MS = 60_000

/** Results from this size on are not copied into one buffer. */
const LARGE = 16 * 1024

export function acceptsEventStream(req: IncomingMessage): boolean {
  return req.headers.accept?.includes('text/event-stream') ?? false
}

/** Starts an event-stream answer. */
export function beginEventStream(res: ServerResponse, headers: Readonly<Record<string, string>> = {}): void {
  res.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
    ...headers,
  })
  res.flushHeaders()
}

/** Writes to a stream, or cuts it when the client does not read. */
export function writeBounded(res: ServerResponse, bytes: Buffer): boolean {
  if (res.writableEnded || res.destroyed) return false
  if (res.writableLength > MAX_BUFFERED_BYTES) {
    res.destroy()
    return false
  }
  res.write(bytes)
  return true
}

/** Lets an answer that was ended wait only as long as the client takes something of it. */
export function cutWhenStuck(res: ServerResponse, ms = STUCK_MS): void {
  if (!res.writableFinished) res.setTimeout(ms, () => res.destroy())
}

export class Reply implements Answer {
  readonly res: ServerResponse
  /** True when messages can be sent before the result. */
  readonly canStream: boolean
  readonly #headers: Readonly<Record<string, string>>
  #streaming = false

  constructor(req: IncomingMessage, res: ServerResponse, headers: Readonly<Record<string, string>> = {}) {
    this.res = res
    this.canStream = acceptsEventStream(req)
    this.#headers = headers
  }

  get streaming(): boolean {
    return this.#streaming
  }

  get over(): boolean {
    return this.res.writableEnded || this.res.destroyed
  }

  /** Turns the answer into an event stream. False when the client does not take one or the answer is over. */
  stream(): boolean {
    if (this.#streaming) return !this.over
    if (!this.canStream || this.over || this.res.headersSent) return false
    this.#streaming = true
    beginEventStream(this.res, this.#headers)
    return true
  }

  /** Sends a message before the result. False when that is not possible. */
  send(message: Buffer): boolean {
    return this.stream() && writeBounded(this.res, encodeEvent(message))
  }

  /** A long call on a silent connection becomes a stream, so that nothing on the way takes it for dead. */
  keepAlive(): void {
    if (this.#streaming || this.stream()) writeBounded(this.res, KEEP_ALIVE)
  }

  onClose(listener: () => void): () => void {
    this.res.once('close', listener)
    return () => this.res.off('close', listener)
  }

  /** Sends the result and ends the answer. The status counts only when nothing was sent before. */
  end(message: Buffer, status = 200): void {
    if (this.over) return
    if (this.#streaming) {
      this.res.end(encodeEvent(message))
      if (message.length >= LARGE) cutWhenStuck(this.res)
      return
    }
    this.res.writeHead(status, {
      'content-type': 'application/json',
      'content-length': message.length,
      ...this.#headers,
    })
    this.res.end(message)
    if (message.length >= LARGE) cutWhenStuck(this.res)
  }

  /** Sends `{…,"result":…}`; a large result goes out as it is, without a copy. */
  endResult(id: string, result: Buffer): void {
    if (this.#streaming || result.length < LARGE) {
      this.end(resultMessage(id, result))
      return
    }
    if (this.over) return
    const parts = resultParts(id, result)
    const length = parts.reduce((sum, part) => sum + part.length, 0)
    this.res.writeHead(200, {
      'content-type': 'application/json',
      'content-length': length,
      ...this.#headers,
    })
    this.res.cork()
    for (const part of parts) this.res.write(part)
    this.res.end()
    this.res.uncork()
    cutWhenStuck(this.res)
  }

  /** Ends without a result: the client went away or asked for no answer. */
  drop(): void {
    if (this.over) return
    if (this.#streaming) this.res.end()
    else this.res.writeHead(202, { ...this.#headers }).end()
  }
}

/** Marks a stream that lives until somebody ends it, so that a closing listener does not wait for it. */
export function holdStream(res: ServerResponse): void {
  holdsStream(res, () => {
    if (!res.writableEnded) res.end()
  })
}
