/**
 * The one order in which an HTTP request is handled, used by the proxy and by the virtual server alike:
 *
 *   listener → routes → admit (overload) → limits → guard (origin, host) → recovery → audit → authenticate → parse once
 *   → turn (fairness between callers) → authorize → dispatch (outgoing credential, backend, answer streamed back)
 *
 * The order is the security argument: nothing is parsed for an unauthenticated client, and audit sees refusals. A stage
 * either returns (next stage), answers (pipeline ends) or throws a GatehouseError. The virtual server authorizes and
 * limits single operations inside of its dispatch, in the order of runtime/vmcp/call/chain.ts.
 * Source: ARCHITECTURE.md, "A tool call".
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Exchange } from './exchange.ts'

export type Stage<X extends Exchange> = (exchange: X) => void | Promise<void>

export interface Stages<X extends Exchange> {
  /** Built-in paths (health, well-known documents): no origin check, no authentication. Undefined: not one of them. */
  readonly route?: (exchange: X) => Stage<X> | undefined
  /** Refuses what there is no capacity for, before any work is done for it; built-in paths are not asked. */
  readonly admit?: Stage<X>
  /** Refuses by declared size and method, headers only. */
  readonly limits?: Stage<X>
  /** Origin and Host rules, CORS preflight. */
  readonly guard?: Stage<X>
  readonly authenticate?: Stage<X>
  /** Reads the body once and parses what later stages need. */
  readonly parse?: Stage<X>
  /** Waits until it is this caller's turn; after `parse`, because a body that arrives slowly must not hold one. */
  readonly turn?: Stage<X>
  /** After `parse`, because it depends on what the message names. */
  readonly authorize?: Stage<X>
  readonly dispatch: Stage<X>
  /** Called once per exchange after the last stage, with what was thrown, if anything. Must not throw. */
  readonly audit?: (exchange: X, error: unknown) => void
  /** Turns whatever was thrown into a response, when nothing was sent yet; must not leak internals. */
  readonly recover: (exchange: X, error: unknown) => void
}

/**
 * Builds the request listener. `make` lets a feature carry its own state on the exchange; `more` is what the listener
 * hands over beside request and response, such as the socket of an upgrade.
 */
export function pipeline<X extends Exchange, More extends unknown[] = []>(
  stages: Stages<X>,
  make: (req: IncomingMessage, res: ServerResponse, ...more: More) => X,
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
    const exchange = make(req, res, ...more)
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
        // No response is possible any more. Closing the connection is better than leaving the client to wait.
        res.destroy()
      }
    } finally {
      stages.audit?.(exchange, failure)
    }
  }
  return (...request) => void handleRequest(...request)
}
