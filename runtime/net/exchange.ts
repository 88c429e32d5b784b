/**
 * One HTTP request and its response on their way through the pipeline.
 *
 * Holds only what more than one stage needs. The body is read once, by the parse stage. `signal` fires when the client
 * goes away before the response is complete; it is made on first use because most requests never need it.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Caller } from './caller.ts'

const empty = Buffer.alloc(0)

/** Ends streams of callers whose credentials are no longer valid. */
export interface CallerStreams {
  /** Calls `end` when the caller's token has expired or was revoked. Returns a function that unregisters the stream. */
  add(caller: Caller, end: () => void): () => void
}

export class Exchange {
  /** Paths that also match with a trailing slash. */
  static readonly endpoints: readonly string[] = []
  readonly req: IncomingMessage
  readonly res: ServerResponse
  /**
   * Path as sent, byte for byte, without the query. The trailing slash is removed for endpoints that accept both
   * forms.
   */
  readonly path: string
  /** Query as sent, without the question mark; '' when absent. */
  readonly query: string
  /** `performance.now()` at arrival. */
  readonly startedAt: number
  body: Buffer = empty
  caller: Caller | undefined
  /** Set when the caller's credential may end while a stream is open. */
  callerStreams: CallerStreams | undefined
  #signal: AbortSignal | undefined

  constructor(req: IncomingMessage, res: ServerResponse) {
    this.req = req
    this.res = res
    const url = req.url ?? '/'
    const mark = url.indexOf('?')
    const path = mark < 0 ? url : url.slice(0, mark)
    const shorter = path.endsWith('/') ? path.slice(0, -1) : path
    this.path = new.target.endpoints.includes(shorter) ? shorter : path
    this.query = mark < 0 ? '' : url.slice(mark + 1)
    this.startedAt = performance.now()
  }

  /** True once a stage has answered; the pipeline stops there. */
  get responded(): boolean {
    return this.res.headersSent || this.res.writableEnded || this.res.destroyed
  }

  /** Aborted when the client disconnects before the response is finished. */
  get signal(): AbortSignal {
    if (!this.#signal) {
      const controller = new AbortController()
      this.res.once('close', () => {
        if (!this.res.writableFinished) controller.abort(new Error('client disconnected'))
      })
      this.#signal = controller.signal
    }
    return this.#signal
  }
}
