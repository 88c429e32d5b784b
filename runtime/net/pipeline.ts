/**
 * The order in which an HTTP request is handled:
 *
 *   listener → built-in paths → overload → limits → origin and host → authenticate → parse once → turn (fairness
 *   between callers) → authorize → dispatch (outgoing credential, backend, response streamed back)
 *
 * The order is a security property: an unauthenticated client cannot cause parsing, and the audit log contains rejected
 * requests. A stage returns (the next stage runs), responds (the pipeline ends) or throws a GatehouseError.
 * The proxy configures one stage per step. The virtual server runs the same steps inside `dispatch`, in `serve` of
 * runtime/vmcp/server/http.ts, and authorizes single operations in the order of runtime/vmcp/call/chain.ts.
 * Source: ARCHITECTURE.md, "A tool call".
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Exchange } from './exchange.ts'

export type Stage<X extends Exchange> = (exchange: X) => void | Promise<void>

export interface Stages<X extends Exchange> {
  /** Built-in paths (health, well-known documents), without origin check and authentication. Undefined for other paths. */
  readonly route?: (exchange: X) => Stage<X> | undefined
  /** Rejects requests during overload, before any other work. Built-in paths are exempt. */
  readonly admit?: Stage<X>
  /** Rejects requests by method and headers, such as the declared size. */
  readonly limits?: Stage<X>
  /** Origin and Host rules, CORS preflight. */
  readonly guard?: Stage<X>
  readonly authenticate?: Stage<X>
  /** Reads the body once and parses what later stages need. */
  readonly parse?: Stage<X>
  /** Waits for the caller's turn. Runs after `parse`, so that a slow body does not occupy a turn. */
  readonly turn?: Stage<X>
  /** Runs after `parse`, because the decision depends on the message. */
  readonly authorize?: Stage<X>
  readonly dispatch: Stage<X>
  /** Called once per exchange after the last stage, with the error if a stage threw one. Must not throw. */
  readonly audit?: (exchange: X, error: unknown) => void
  /** Sends an error response unless a response has begun. Must not leak internals. */
  readonly recover: (exchange: X, error: unknown) => void
}

/**
 * Builds the request listener. `ExchangeOf` is the class with the feature's state. `more` contains further arguments of the
 * listener, such as the socket of an upgrade.
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

  return async function handleRequest(req, res, ...more) {
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
        // No response can be sent. Close the connection instead of leaving the client waiting.
        res.destroy()
      }
    } finally {
      stages.audit?.(exchange, failure)
    }
  }
}
