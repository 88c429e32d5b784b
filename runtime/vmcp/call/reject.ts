/**
 * Finds the catalog entry that an operation names. Rejects the operation when the name is unknown or withheld, when the
 * entry belongs to another backend than the authorized one, or when the request headers do not match the arguments.
 *
 * Comes after authorization, so that a caller without rights cannot find out which names exist.
 */
import type { Core } from './core.ts'
import type { Link, Operation } from '../model/operation.ts'

/** `featureTools` are the tools of Gatehouse itself that a later link runs. The catalog does not contain them. */
export function reject(core: Pick<Core, 'targetOf'>, featureTools: ReadonlySet<string>): Link {
  function isFeatureTool({ method, params }: Operation): boolean {
    const name = method === 'tools/call' ? params.text('name') : undefined
    return name !== undefined && featureTools.has(name)
  }
  return async function reject(operation, next) {
    if (isFeatureTool(operation)) return next(operation)
    return next({ ...operation, target: await core.targetOf(operation) })
  }
}
