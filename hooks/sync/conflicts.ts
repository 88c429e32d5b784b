/**
 * Notices objects of unmanaged objects under the names that our children should have.
 *
 * Metacontroller swallows "already exists" silently, so such a child never appears, and nothing says why. The related
 * rules of rules.ts ask for the same names; an object there that this parent does not control is an unmanaged object's.
 */
import type { SyncFailure } from './conditions.ts'
import type { KubeObject } from '../base/kube.ts'
import { groupKey, type SyncRequest } from './protocol.ts'

export const conflictCondition = 'ChildrenOwned'
export const conflictReason = 'ChildConflict'

/** The first few unmanaged objects' objects among the desired children, in words; undefined when there is none. */
export function unmanagedObjectError(
  request: SyncRequest,
  desired: readonly KubeObject[],
): SyncFailure | undefined {
  const found = desired.flatMap((child) => strangerOf(request, child))
  if (found.length === 0) return undefined
  return {
    reason: conflictReason,
    message: `${found.slice(0, 5).join('; ')}. Rename this resource, or remove what holds the name`,
  }
}

function strangerOf(request: SyncRequest, child: KubeObject): string[] {
  const same = (object: KubeObject) => object.metadata.name === child.metadata.name
  if (request.children.get(groupKey(child))?.some(same)) return []
  const holder = request.related.get(groupKey(child))?.find(same)
  const owner = holder?.metadata.ownerReferences?.find((reference) => reference.controller)
  if (!holder || (owner && owner.uid === request.parent.metadata.uid)) return []
  const whose = owner ? `controlled by ${owner.kind} ${owner.name}` : 'not controlled by this resource'
  return [`${child.kind} ${child.metadata.name} exists and is ${whose}`]
}
