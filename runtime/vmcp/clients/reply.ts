/**
 * The response to one POST. The response is plain JSON if no message precedes the result. Otherwise, the response is an
 * event stream that ends with the result.
 *
 * A client that accepts event streams gets a stream as soon as progress, a log message or a request for input precedes
 * the result. The client also gets a stream if the response takes so long that intermediaries might close the
 * connection.
 * Source: MCP 2025-11-25, transports, "Sending Messages to the Server".
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  encodeEvent,
  type Era,
  eventParts,
  keepAliveComment,
  type PassedMembers,
  type ResultPassage,
  resultMessage,
  resultParts,
} from '../../mcp/index.ts'
import { writeParts } from '../../net/index.ts'
import { ClientResultStream } from './client-result-stream.ts'
import type { ClientResponse } from './response.ts'
import { acceptsEventStream, beginEventStream, cutWhenStuck, writeBounded } from './stream.ts'

/** Results of at least this size are not copied into one buffer. */
const largeBytes = 16 * 1024

/** A stream that can outlive its connection. */
export interface ResumableStream {
  readonly isOpen: boolean
  /** Called if the client has not reconnected in time. */
  onAbandoned: (() => void) | undefined
  attach(res: ServerResponse): void
  sendEmptyEvent(): void
  send(message: Buffer): boolean
  end(message?: readonly Buffer[]): void
  keepAlive(): void
}

export interface ReplyOptions {
  readonly headers?: Readonly<Record<string, string>>
  /** Opens a resumable stream. Called when the response becomes a stream. */
  readonly openResumableStream?: (() => ResumableStream) | undefined
}

export class Reply implements ClientResponse {
  readonly res: ServerResponse
  readonly #req: IncomingMessage
  readonly #headers: Readonly<Record<string, string>>
  readonly #openResumableStream: (() => ResumableStream) | undefined
  #resumableStream: ResumableStream | undefined
  onClose: (() => void) | undefined
  #streaming = false
  /** The stream that sends the result. Once the stream is set, only the end of the result is sent. */
  #resultStream: ClientResultStream | undefined

  constructor(
    req: IncomingMessage,
    res: ServerResponse,
    { headers = {}, openResumableStream }: ReplyOptions = {},
  ) {
    this.res = res
    this.#req = req
    this.#headers = headers
    this.#openResumableStream = openResumableStream
    res.on('close', this.#closed)
  }

  readonly #closed = (): void => {
    if (!this.#resumableStream) this.onClose?.()
  }

  get streaming(): boolean {
    return this.#streaming || this.#resultStream?.hasSent === true
  }

  get hasEnded(): boolean {
    return this.#resumableStream
      ? !this.#resumableStream.isOpen
      : this.res.writableEnded || this.res.destroyed
  }

  /**
   * Turns the response into an event stream. Returns false if the client does not accept a stream or the response has
   * ended.
   */
  stream(): boolean {
    if (this.#resultStream) return false
    if (this.#streaming) return !this.hasEnded
    if (this.hasEnded || this.res.headersSent || !acceptsEventStream(this.#req)) return false
    this.#streaming = true
    beginEventStream(this.res, this.#headers)
    const resumable = this.#openResumableStream?.()
    if (resumable) {
      // From now on, the reply ends when the stream ends. Another connection may replace the current one.
      this.#resumableStream = resumable
      resumable.onAbandoned = () => this.onClose?.()
      resumable.attach(this.res)
    }
    return true
  }

  /** Sends a message before the result. Returns false if the client cannot receive the message. */
  send(message: Buffer): boolean {
    if (!this.stream()) return false
    return this.#resumableStream
      ? this.#resumableStream.send(message)
      : writeBounded(this.res, encodeEvent(message))
  }

  /** Turns a long response into a stream and writes to the stream, so intermediaries do not close the connection. */
  keepAlive(): void {
    const isNewStream = !this.#streaming
    if (!this.stream()) return
    if (!this.#resumableStream) writeBounded(this.res, keepAliveComment)
    else if (isNewStream) this.#resumableStream.sendEmptyEvent()
    else this.#resumableStream.keepAlive()
  }

  /**
   * Returns undefined if the result must be sent whole. This applies to resumable streams and to HTTP/1.0, where a
   * client cannot detect a missing part.
   */
  streamResult(id: string, era: Era): ResultPassage | undefined {
    if (!this.#canStreamResult()) return undefined
    const { res } = this
    const claim = (stream: ClientResultStream): boolean => {
      if (!this.#canStreamResult()) return false
      this.#resultStream = stream
      return true
    }
    return new ClientResultStream({ res, id, era, headers: this.#headers, claim })
  }

  #canStreamResult(): boolean {
    if (this.#resultStream || this.#resumableStream || this.hasEnded || this.#req.httpVersion === '1.0')
      return false
    return this.#streaming || !this.res.headersSent
  }

  /**
   * Destroys a partially sent response and returns true. Otherwise, forgets the stream, so the response can still be
   * sent, and returns false.
   */
  #destroyPartialResult(): boolean {
    if (this.#resultStream?.hasSent) {
      this.res.destroy()
      return true
    }
    this.#resultStream = undefined
    return false
  }

  /** Sends the result and ends the response. The status is used only if nothing has been sent before. */
  end(message: Buffer, status = 200): void {
    if (this.hasEnded || this.#destroyPartialResult()) return
    if (this.#streaming) {
      this.#endStream([message])
      return
    }
    this.res.writeHead(status, {
      'content-type': 'application/json',
      'content-length': message.length,
      ...this.#headers,
    })
    this.res.end(message)
    if (message.length >= largeBytes) cutWhenStuck(this.res)
  }

  /** Sends `{…,"result":…}` and ends the response. A large result is not copied. */
  endResult(id: string, result: Buffer, passed?: PassedMembers): void {
    if (this.#resultStream && passed && !this.hasEnded) {
      this.#resultStream.end(result, passed.names)
      return
    }
    if (result.length < largeBytes) {
      this.end(resultMessage(id, result))
      return
    }
    if (this.hasEnded || this.#destroyPartialResult()) return
    const parts = resultParts(id, result)
    if (this.#streaming) {
      this.#endStream(parts)
      return
    }
    const length = parts.reduce((sum, part) => sum + part.length, 0)
    this.res.writeHead(200, {
      'content-type': 'application/json',
      'content-length': length,
      ...this.#headers,
    })
    writeParts(this.res, parts)
    this.res.end()
    cutWhenStuck(this.res)
  }

  #endStream(message: readonly Buffer[]): void {
    if (this.#resumableStream) {
      this.#resumableStream.end(message)
      return
    }
    writeParts(this.res, eventParts(message))
    this.res.end()
    if (message.some(({ length }) => length >= largeBytes)) cutWhenStuck(this.res)
  }

  /** Ends the response without a result, because the client cancelled the request or expects no response. */
  drop(): void {
    if (this.hasEnded || this.#destroyPartialResult()) return
    if (this.#resumableStream) this.#resumableStream.end()
    else if (this.#streaming) this.res.end()
    else this.res.writeHead(202, { ...this.#headers }).end()
  }
}
