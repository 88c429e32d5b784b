/**
 * Rate limits in the pipeline of the virtual server.
 *
 * Stands directly after authorization, and checks first that the call can be carried out at all: a call that is
 * forbidden, malformed or names an unknown tool takes no token, so nobody can empty a shared bucket with calls that go
 * nowhere. Stands outside of everything that makes several calls out of one: a workflow costs one token, while each inner
 * call of a script, which comes through here again, costs its own.
 *
 * Session-era clients get a result that their model can read; stateless clients an error with code 429. Both travel
 * with HTTP 200, because client libraries repeat a bare 429 by themselves.
 * Source: docs/specification/virtual-server.md#rateLimiting, config.rateLimiting; ARCHITECTURE.md, "A tool call".
 */
import { errors } from '../../../schemas/index.ts'
import { limitedDenial } from '../../observe/index.ts'
import { type LimitRefusal, rateLimitError, type RateLimiter } from '../../policy/index.ts'
import {
  type Middleware,
  type Operation,
  type Outcome,
  type Perform,
  refusedOutcome,
} from '../model/operation.ts'

export interface RateLimitOptions {
  /** The limiter in force; undefined: nothing is limited. Read for each operation, because a reload may replace it. */
  readonly limiter: () => RateLimiter | undefined
  /** Rejects with what a tool call would be refused with whatever its rate: no such tool, malformed arguments. */
  readonly callable: (operation: Operation) => Promise<unknown>
}

export function rateLimit({ limiter, callable }: RateLimitOptions): Middleware {
  return function rateLimit(operation, next) {
    const present = limiter()
    return present && operation.method === 'tools/call' ? limited(present, operation, next) : next(operation)
  }
  async function limited(present: RateLimiter, operation: Operation, next: Perform): Promise<Outcome> {
    const { method, params, client } = operation
    await callable(operation)
    const refusal = await present.take(client.caller, method, params)
    if (!refusal) return next(operation)
    if (client.era === 'stateless') throw rateLimitError(refusal)
    return readableRefusal(refusal)
  }
}

function readableRefusal({ retryAfterSeconds }: LimitRefusal): Outcome {
  const { text, rpc } = errors.RATE_LIMITED
  return refusedOutcome(limitedDenial, { code: rpc, message: text, data: { retryAfterSeconds } })
}
