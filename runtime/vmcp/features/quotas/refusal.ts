/**
 * How clients are told that a quota is used up: as of rate limits, a result that a model can read in the session era, an error
 * with code 429 in the stateless era. Both say what is left, until when, and after how many seconds that is over.
 */
import { errors, GatehouseError } from '../../../../schemas/index.ts'
import { quotaDenial } from '../../../observe/index.ts'
import { type Middleware, type Outcome, refusedOutcome } from '../../model/operation.ts'

/** `quotas` undefined: there are none. */
export function readableQuotas(quotas: () => unknown): Middleware {
  return function readableQuotas(operation, next) {
    const { method, client } = operation
    const isReadable = method === 'tools/call' && client.era !== 'stateless' && quotas() !== undefined
    const outcome = next(operation)
    return isReadable ? outcome.catch(readable) : outcome
  }
}

function readable(error: unknown): Outcome {
  if (!(error instanceof GatehouseError) || error.code !== 'QUOTA_EXCEEDED') throw error
  const { message, data } = error
  return refusedOutcome(quotaDenial, { code: errors.QUOTA_EXCEEDED.rpc, message, data })
}
