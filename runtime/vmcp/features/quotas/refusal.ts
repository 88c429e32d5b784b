/**
 * How clients are told that a quota is used up: as of rate limits, a result that a model can read in the session era, an error
 * with code 429 in the stateless era. Both say what is left, until when, and after how many seconds that is over.
 */
import { errors, GatehouseError } from '../../../../schemas/index.ts'
import { quotaDenial } from '../../../observe/index.ts'
import type { Link } from '../../model/operation.ts'
import { type Outcome, refusedOutcome } from '../../model/outcome.ts'

/** Returns an exceeded quota as a result that a model can read. Stateless clients get the error. */
export const readableQuotas: Link = (operation, next) => {
  const { method, client } = operation
  const outcome = next(operation)
  return method === 'tools/call' && client.era !== 'stateless' ? outcome.catch(readable) : outcome
}

function readable(error: unknown): Outcome {
  if (!(error instanceof GatehouseError) || error.code !== 'QUOTA_EXCEEDED') throw error
  const { message, data } = error
  return refusedOutcome(quotaDenial, { code: errors.QUOTA_EXCEEDED.rpc, message, data })
}
