/**
 * Rate limits of an operation.
 *
 * Requests are counted on their way in already, as a stage of the HTTP pipeline. This middleware is for operations that
 * do not come from there: each inner call of a script costs a token of its own. It stands directly before authorization.
 * The steps of a workflow do not pass through it: a workflow costs one token.
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
