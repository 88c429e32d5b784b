/**
 * Reports an exhausted quota to clients in the same form as a rate limit. Session-era clients get a result that a model
 * can read. Stateless clients get an error with code 429. Both forms contain the remaining budget, the end of the
 * period, and the seconds until then.
 */
import { errors, GatehouseError } from '../../../../schemas/index.ts'
import { quotaDenial } from '../../../observe/index.ts'
import type { Link } from '../../model/operation.ts'
import { type Outcome, refusedOutcome } from '../../model/outcome.ts'

/** Returns an exceeded quota as a result that a model can read. Stateless clients get an error instead. */
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
