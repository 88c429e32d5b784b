/**
 * The order in which an HTTP request is handled:
 *
 *   listener → built-in paths → overload → limits → origin and host → authenticate → parse once → turn (fairness
 *   between callers) → authorize → dispatch (outgoing credential, backend, response streamed back)
 *
 * The order is a security property: an unauthenticated client cannot trigger parsing, and rejected requests still
 * appear in the audit log. A stage returns (the next stage runs), responds (the pipeline ends) or throws a
 * GatehouseError. The proxy configures one stage per step. The virtual server runs the same steps in one function
 * (`handleRequest` in runtime/vmcp/server/http.ts) and authorizes individual operations in the order defined in
 * runtime/vmcp/call/chain.ts.
 * Source: ARCHITECTURE.md, "A tool call".
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Caller } from './caller.ts'

const empty = Buffer.alloc(0)

/** Ends the streams of callers whose credentials are no longer valid. */
export interface CallerStreams {
  /** Calls `end` when the caller's token has expired or was revoked. Returns a function that unregisters the stream. */
  add(caller: Caller, end: () => void): () => void
}

/**
 * State of one HTTP request in the pipeline. Contains only data that more than one stage uses. The parse stage reads
 * the body once.
 */
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
  /** Query as sent, without the question mark; '' if absent. */
  readonly query: string
  /** `performance.now()` at arrival. */
  readonly startedAt: number
  body: Buffer = empty
  caller: Caller | undefined
  /** Set when the caller's credential may become invalid while a stream is open. */
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

  /** True after a stage has responded, which ends the pipeline. */
  get responded(): boolean {
    return this.res.headersSent || this.res.writableEnded || this.res.destroyed
  }

  /**
   * Aborts when the client disconnects before the response is finished. The signal is created on first use, because
   * most requests do not need a signal.
   */
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

export type Stage<X extends Exchange> = (exchange: X) => void | Promise<void>

export interface Stages<X extends Exchange> {
  /**
   * Serves built-in paths (health, well-known documents) without an origin check or authentication. Returns undefined
   * for other paths.
   */
  readonly route?: (exchange: X) => Stage<X> | undefined
  /** Rejects requests during overload, before any other work. Built-in paths are exempt. */
  readonly admit?: Stage<X>
  /** Rejects requests based on their method and headers, such as the declared size. */
  readonly limits?: Stage<X>
  /** Applies the Origin and Host rules and answers CORS preflight requests. */
  readonly guard?: Stage<X>
  readonly authenticate?: Stage<X>
  /** Reads the body once and parses the parts that later stages need. */
  readonly parse?: Stage<X>
  /** Waits for the caller's turn. Runs after `parse`, because a slow body must not occupy a turn. */
  readonly turn?: Stage<X>
  /** Runs after `parse`, because the decision depends on the message. */
  readonly authorize?: Stage<X>
  readonly dispatch: Stage<X>
  /** Called once per exchange after the last stage, with the error if a stage threw one. Must not throw. */
  readonly audit?: (exchange: X, error: unknown) => void
  /** Sends an error response unless a response has begun. Must not leak internal details. */
  readonly recover: (exchange: X, error: unknown) => void
}

/**
 * Builds the request listener. `ExchangeOf` is the class that contains the feature's state. `more` contains additional
 * listener arguments, such as the socket for an upgrade.
 */
export function pipeline<X extends Exchange, More extends unknown[] = []>(
  stages: Stages<X>,
  ExchangeOf: new (req: IncomingMessage, res: ServerResponse, ...more: More) => X,
): (req: IncomingMessage, res: ServerResponse, ...more: More) => void {
  const all = [
    stages.admit,
    stages.limits,
    stages.guard,
    stages.authenticate,
    stages.parse,
    stages.turn,
    stages.authorize,
    stages.dispatch,
  ].filter((stage) => stage !== undefined)

  async function handleRequest(req: IncomingMessage, res: ServerResponse, ...more: More): Promise<void> {
    const exchange = new ExchangeOf(req, res, ...more)
    let failure: unknown
    try {
      const route = stages.route?.(exchange)
      for (const stage of route ? [route] : all) {
        const pending = stage(exchange)
        if (pending) await pending
        if (res.headersSent || res.writableEnded || res.destroyed) return
      }
    } catch (error) {
      failure = error
      try {
        stages.recover(exchange, error)
      } catch {
        // Closes the connection, because no response can be sent and the client would wait.
        res.destroy()
      }
    } finally {
      stages.audit?.(exchange, failure)
    }
  }
  return (...request) => void handleRequest(...request)
}
