/**
 * Converts failures of a backend to the form that the method requires. A failed tool call returns a result that a model
 * can read. A read of an unlisted resource fails with RESOURCE_NOT_FOUND when its backend has no resources.
 *
 * Also repeats a tool call once when the backend rejects the mirrored headers (HEADER_MISMATCH), because the tool may
 * have changed since it was listed. The backend has not executed the rejected call.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { JsonObject, rpcCode } from '../../mcp/index.ts'
import { isBackendError } from '../backends/backend-errors.ts'
import type { Link, Operation, Perform, Target } from '../model/operation.ts'
import { isHeaderMismatch, type Outcome, toolErrorOutcome } from '../model/outcome.ts'
import type { Core } from './core.ts'

export function readableErrors(core: Pick<Core, 'retargeted'>): Link {
  return async function readableErrors(operation, next) {
    const { method, target } = operation
    if (!target || target.run) return next(operation)
    if (method !== 'tools/call')
      return target.entry.isUnlisted ? requireResource(operation, next) : next(operation)
    try {
      const outcome = await next(operation)
      return isHeaderMismatch(outcome) ? await repeat(operation, target, next) : outcome
    } catch (error) {
      if (!isBackendError(error) || operation.context.signal.aborted) throw error
      return toolErrorOutcome(error.message)
    }
  }

  async function repeat(operation: Operation, target: Target, next: Perform): Promise<Outcome> {
    const retargeted = await core.retargeted(operation, target)
    const outcome = retargeted && (await next({ ...operation, target: retargeted }))
    if (outcome && !isHeaderMismatch(outcome)) return outcome
    const { backend } = target.entry
    throw new GatehouseError('BACKEND_PROTOCOL', {
      detail: `backend ${backend}: the headers of the call do not fit`,
      data: { backend },
    })
  }
}

async function requireResource(operation: Operation, next: Perform): Promise<Outcome> {
  const outcome = await next(operation)
  if (outcome.kind === 'error' && new JsonObject(outcome.error).value('code') === rpcCode.methodNotFound)
    throw new GatehouseError('RESOURCE_NOT_FOUND', { data: { uri: operation.params.text('uri') } })
  return outcome
}
