/**
 * Rate limits in the pipeline of the virtual server.
 *
 * Stands directly before authorization and outside of everything that makes several calls out of one: a workflow costs
 * one token, while each inner call of a script, which comes through here again, costs its own.
 *
 * Session-era clients get a result that their model can read; stateless clients an error with code 429. Both travel
 * with HTTP 200, because client libraries repeat a bare 429 by themselves.
 * Source: spec document 3, config.rateLimiting; design, section 3 "Request".
 */
import { errors } from '../../../schemas/index.ts'
import { type LimitRefusal, rateLimitError, type RateLimiter } from '../../policy/index.ts'
import { type Middleware, type Outcome, resultOutcome } from '../operation.ts'

export interface RateLimitOptions {
  /** The limiter in force; undefined: nothing is limited. Read for each operation, because a reload may replace it. */
  readonly limiter: () => RateLimiter | undefined
}

export function rateLimit({ limiter }: RateLimitOptions): Middleware {
  return async function rateLimit({ method, params, client }, next) {
    const refusal = await limiter()?.take(client.caller, method, params)
    if (!refusal) return next()
    if (client.era === 'stateless') throw rateLimitError(refusal)
    return readableRefusal(refusal)
  }
}

function readableRefusal({ retryAfterSeconds }: LimitRefusal): Outcome {
  const { text, rpc } = errors.RATE_LIMITED
  return resultOutcome({
    content: [{ type: 'text', text }],
    structuredContent: { code: rpc, message: text, data: { retryAfterSeconds } },
    isError: true,
  })
}
