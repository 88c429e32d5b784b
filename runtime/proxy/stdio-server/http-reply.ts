/**
 * The response to a stateless POST: JSON when nothing comes before the response, otherwise an event stream that ends with
 * it. A client that does not read is cut.
 * Source: MCP 2026-07-28, streamable HTTP, "Receiving Messages".
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { eventStreamType, encodeEvent, jsonType, statusOf } from '../../mcp/index.ts'
import type { StatelessReply } from '../eras/stateless-reply.ts'
import { beginStream, pushEvent } from './event-stream.ts'

export class HttpReply implements StatelessReply {
  readonly streams: boolean
  readonly gone: AbortSignal
  readonly #res: ServerResponse
  readonly #stop: () => void
  readonly #onResponse: (message: Buffer) => void

  /** `onResponse` sees a response that is no error. */
  constructor(req: IncomingMessage, res: ServerResponse, onResponse: (message: Buffer) => void) {
    this.#res = res
    this.#onResponse = onResponse
    this.streams = req.headers.accept?.includes(eventStreamType) === true
    const gone = new AbortController()
    this.gone = gone.signal
    const onClose = (): void => gone.abort(new Error('the client went away'))
    res.once('close', onClose)
    const stop = () => void res.off('close', onClose)
    this.#stop = stop
  }

  send(message: Buffer): void {
    const res = this.#res
    if (!this.streams || res.writableEnded || res.destroyed) return
    if (!res.headersSent) beginStream(res, { 'X-Accel-Buffering': 'no' })
    pushEvent(res, encodeEvent(message))
  }

  end(message: Buffer, code?: unknown): void {
    const res = this.#res
    this.#stop()
    if (code === undefined) this.#onResponse(message)
    if (res.writableEnded || res.destroyed) return
    if (res.headersSent) {
      res.end(encodeEvent(message))
      return
    }
    const headers = {
      'Content-Type': jsonType,
      'Content-Length': message.length,
      'Cache-Control': 'no-store',
    }
    res.writeHead(code === undefined ? 200 : statusOf(code), headers).end(message)
  }

  /** Without a response the client takes the stream for broken, and may open another. */
  drop(): void {
    this.#stop()
    if (this.#res.headersSent) this.#res.end()
    else this.#res.writeHead(502, { 'Content-Length': 0 }).end()
  }
}
