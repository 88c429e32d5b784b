/**
 * Finds the catalog entry that an operation names. Rejects the operation when the name is unknown or withheld, when the
 * entry belongs to another backend than the authorized one, or when the request headers do not match the arguments.
 *
 * Comes after authorization, so that a caller without rights cannot find out which names exist.
 */
import type { Core } from './core.ts'
import type { Link } from '../model/operation.ts'

/** `featureTools` are the tools of Gatehouse itself that a later link runs. The catalog does not contain them. */
export function reject(core: Pick<Core, 'targetOf'>, featureTools: ReadonlySet<string>): Link {
  return async function reject(operation, next) {
    const { method, params } = operation
    if (featureTools.size > 0 && method === 'tools/call' && featureTools.has(params.text('name') ?? ''))
      return next(operation)
    return next({ ...operation, target: await core.targetOf(operation) })
  }
}
