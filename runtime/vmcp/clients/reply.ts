/**
 * The response to one POST: plain JSON when nothing has to be said before the result, otherwise an event stream that
 * ends with the result.
 *
 * A client that accepts event streams gets one as soon as progress, a log message or a question comes first, or when
 * the response takes so long that something on the way might think the connection dead.
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
import { Passage } from './passage.ts'
import type { ClientResponse } from './response.ts'
import { acceptsEventStream, beginEventStream, cutWhenStuck, writeBounded } from './stream.ts'

/** Results from this size on are not copied into one buffer. */
const largeBytes = 16 * 1024

/** A stream that outlives its connection. */
export interface LastingStream {
  readonly open: boolean
  /** Called once when the client does not come back. */
  onAbandoned: (() => void) | undefined
  attach(res: ServerResponse): void
  prime(): void
  send(message: Buffer): boolean
  end(message?: readonly Buffer[]): void
  keepAlive(): void
}

export interface ReplyOptions {
  readonly headers?: Readonly<Record<string, string>>
  /** Makes the response one that can be resumed, once it becomes a stream. */
  readonly lasting?: (() => LastingStream) | undefined
}

export class Reply implements ClientResponse {
  readonly res: ServerResponse
  readonly #req: IncomingMessage
  readonly #headers: Readonly<Record<string, string>>
  readonly #openLasting: (() => LastingStream) | undefined
  #lasting: LastingStream | undefined
  onClose: (() => void) | undefined
  #streaming = false
  /** Set once a result is being passed on: nothing else is sent but its end. */
  #passing: Passage | undefined

  constructor(req: IncomingMessage, res: ServerResponse, { headers = {}, lasting }: ReplyOptions = {}) {
    this.res = res
    this.#req = req
    this.#headers = headers
    this.#openLasting = lasting
    res.on('close', this.#closed)
  }

  readonly #closed = (): void => {
    if (!this.#lasting) this.onClose?.()
  }

  get streaming(): boolean {
    return this.#streaming || this.#passing?.hasSent === true
  }

  get over(): boolean {
    return this.#lasting ? !this.#lasting.open : this.res.writableEnded || this.res.destroyed
  }

  /** Turns the response into an event stream. False when the client does not take one or the response is over. */
  stream(): boolean {
    if (this.#passing) return false
    if (this.#streaming) return !this.over
    if (this.over || this.res.headersSent || !acceptsEventStream(this.#req)) return false
    this.#streaming = true
    beginEventStream(this.res, this.#headers)
    const lasting = this.#openLasting?.()
    if (lasting) {
      // From now on it is the stream that counts, not the connection that carries it.
      this.#lasting = lasting
      lasting.onAbandoned = () => this.onClose?.()
      lasting.attach(this.res)
    }
    return true
  }

  /** Sends a message before the result. False when that is not possible. */
  send(message: Buffer): boolean {
    if (!this.stream()) return false
    return this.#lasting ? this.#lasting.send(message) : writeBounded(this.res, encodeEvent(message))
  }

  /** A long call on a silent connection becomes a stream, so that nothing on the way takes it for dead. */
  keepAlive(): void {
    const begins = !this.#streaming
    if (!this.stream()) return
    if (!this.#lasting) writeBounded(this.res, keepAliveComment)
    else if (begins) this.#lasting.prime()
    else this.#lasting.keepAlive()
  }

  /** A stream that can be resumed needs its messages whole, and so does a client that could not tell where a part is missing. */
  passage(id: string, era: Era): ResultPassage | undefined {
    if (!this.#mayPass()) return undefined
    const { res } = this
    const claim = (passage: Passage): boolean => {
      if (!this.#mayPass()) return false
      this.#passing = passage
      return true
    }
    return new Passage({ res, id, era, headers: this.#headers, claim })
  }

  #mayPass(): boolean {
    if (this.#passing || this.#lasting || this.over || this.#req.httpVersion === '1.0') return false
    return this.#streaming || !this.res.headersSent
  }

  /** Breaks off a result of which a part has been sent. Returns false when the response can still be sent. */
  #breakOff(): boolean {
    if (!this.#passing?.hasSent) this.#passing = undefined
    else this.res.destroy()
    return this.#passing !== undefined
  }

  /** Sends the result and ends the response. The status counts only when nothing was sent before. */
  end(message: Buffer, status = 200): void {
    if (this.over || this.#breakOff()) return
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

  /** Sends `{…,"result":…}`; a large result goes out as it is, without a copy. */
  endResult(id: string, result: Buffer, passed?: PassedMembers): void {
    if (this.#passing && passed && !this.over) {
      this.#passing.end(result, passed.names)
      return
    }
    if (result.length < largeBytes) {
      this.end(resultMessage(id, result))
      return
    }
    if (this.over || this.#breakOff()) return
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
    if (this.#lasting) {
      this.#lasting.end(message)
      return
    }
    writeParts(this.res, eventParts(message))
    this.res.end()
    if (message.some(({ length }) => length >= largeBytes)) cutWhenStuck(this.res)
  }

  /** Ends without a result: the client went away or asked for no response. */
  drop(): void {
    if (this.over || this.#breakOff()) return
    if (this.#lasting) this.#lasting.end()
    else if (this.#streaming) this.res.end()
    else this.res.writeHead(202, { ...this.#headers }).end()
  }
}
