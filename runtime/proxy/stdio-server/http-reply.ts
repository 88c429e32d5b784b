/**
 * The response to a stateless POST: JSON when nothing precedes the response, otherwise an event stream that ends with
 * the response. A client that does not read is disconnected.
 * Source: MCP 2026-07-28, streamable HTTP, "Receiving Messages".
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  eventParts,
  eventStreamType,
  jsonType,
  resultParts,
  statusOf,
  type StatelessReply,
} from '../../mcp/index.ts'
import { writeParts } from '../../net/index.ts'
import { beginStream, pushEvent } from './event-stream.ts'

export class HttpReply implements StatelessReply {
  readonly streams: boolean
  readonly gone: AbortSignal
  readonly #res: ServerResponse
  readonly #stop: () => void
  readonly #onResult: (result: Buffer) => void

  /** `onResult` receives the result that is sent. */
  constructor(req: IncomingMessage, res: ServerResponse, onResult: (result: Buffer) => void) {
    this.#res = res
    this.#onResult = onResult
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
    pushEvent(res, eventParts([message]))
  }

  end(message: Buffer, code?: unknown): void {
    this.#end([message], code === undefined ? 200 : statusOf(code))
  }

  endResult(id: string, result: Buffer): void {
    this.#onResult(result)
    this.#end(resultParts(id, result), 200)
  }

  #end(message: readonly Buffer[], status: number): void {
    const res = this.#res
    this.#stop()
    if (res.writableEnded || res.destroyed) return
    if (res.headersSent) writeParts(res, eventParts(message))
    else {
      const length = message.reduce((sum, part) => sum + part.length, 0)
      const headers = { 'Content-Type': jsonType, 'Content-Length': length, 'Cache-Control': 'no-store' }
      writeParts(res.writeHead(status, headers), message)
    }
    res.end()
  }

  /** Without a response, the client treats the stream as broken and may open a new one. */
  drop(): void {
    this.#stop()
    if (this.#res.headersSent) this.#res.end()
    else this.#res.writeHead(502, { 'Content-Length': 0 }).end()
  }
}
