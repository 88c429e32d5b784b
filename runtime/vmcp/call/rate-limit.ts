/**
 * Consumes a rate limit token for each tool call.
 *
 * This link comes after `authorize` and `resolveTarget`. A call consumes no token if it is denied or malformed, or if
 * the tool is unknown. A caller therefore cannot empty a shared bucket with calls that are not executed. A workflow
 * costs one token. Each call from a script enters the chain again and costs one token.
 *
 * Session-era clients get a result that a model can read. Stateless clients get an error with code 429. Both responses
 * have HTTP status 200, because client libraries retry a bare 429 on their own.
 * Source: docs/reference/specification/virtual-server.md#rateLimiting, config.rateLimiting; ARCHITECTURE.md, "A tool
 * call".
 */
import { errors } from '../../../schemas/index.ts'
import { JsonObject } from '../../mcp/index.ts'
import { limitedDenial } from '../../observe/index.ts'
import { type LimitRefusal, rateLimitError, type RateLimiter } from '../../policy/index.ts'
import type { Link, Operation, Perform } from '../model/operation.ts'
import { type Outcome, refusedOutcome } from '../model/outcome.ts'

export function rateLimit(limiter: RateLimiter): Link {
  return function rateLimit(operation, next) {
    const isCall = operation.method === 'tools/call' || operation.target?.isExtension === true
    return isCall ? limited(operation, next) : next(operation)
  }
  async function limited(operation: Operation, next: Perform): Promise<Outcome> {
    const { params, client, target } = operation
    const name = target?.isExtension ? target.entry.key : undefined
    const call = name === undefined ? params : new JsonObject(Buffer.from(JSON.stringify({ name })))
    const refusal = await limiter.take(client.caller, 'tools/call', call)
    if (!refusal) return next(operation)
    if (client.era === 'stateless' || name !== undefined) throw rateLimitError(refusal)
    return readableRefusal(refusal)
  }
}

function readableRefusal({ retryAfterSeconds }: LimitRefusal): Outcome {
  const { text, rpc } = errors.RATE_LIMITED
  return refusedOutcome(limitedDenial, { code: rpc, message: text, data: { retryAfterSeconds } })
}
