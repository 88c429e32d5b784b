/**
 * Finds unmanaged objects that have the names of desired children.
 *
 * Metacontroller ignores "already exists", so such a child would silently be missing. The related rules in rules.ts
 * request the same names; a returned object that this parent does not control is unmanaged.
 */
import type { SyncFailure } from './conditions.ts'
import type { AnyContext } from './context.ts'
import type { KubeObject } from '../base/kube.ts'
import { groupKey, type SyncRequest } from './protocol.ts'

const conflictCondition = 'ChildrenOwned'
export const conflictReason = 'ChildConflict'

/** Sets the condition and returns the failure when an unmanaged object has the name of a desired child. */
export function checkChildNames(
  { request, conditions }: Pick<AnyContext, 'request' | 'conditions'>,
  desired: readonly KubeObject[] = [],
): SyncFailure | undefined {
  const found = desired.flatMap((child) => unmanagedObject(request, child))
  if (found.length === 0) return undefined
  const message = `${found.slice(0, 5).join('; ')}. Rename this resource or delete the existing object`
  conditions.set(conflictCondition, 'False', conflictReason, message)
  return { reason: conflictReason, message }
}

function unmanagedObject(request: SyncRequest, child: KubeObject): string[] {
  const same = (object: KubeObject) => object.metadata.name === child.metadata.name
  if (request.children.get(groupKey(child))?.some(same)) return []
  const existing = request.related.get(groupKey(child))?.find(same)
  const owner = existing?.metadata.ownerReferences?.find((reference) => reference.controller)
  if (!existing || (owner && owner.uid === request.parent.metadata.uid)) return []
  const whose = owner ? `controlled by ${owner.kind} ${owner.name}` : 'not controlled by this resource'
  return [`${child.kind} ${child.metadata.name} exists and is ${whose}`]
}
