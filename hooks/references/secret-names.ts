/**
 * Names of Secrets in a part of a spec that nobody has checked yet: every object with the shape of a SecretRef, under a
 * member whose name says that it is one.
 *
 * Used by `customize`, which runs before any validation and must answer something sensible for whatever is stored.
 */
import { isFields } from '../kube.ts'

const refMember = /(SecretRefs?|Ref|passwordRef|secretKeyRef)$/
const maxDepth = 20

/** Sorted and unique. */
export function secretNamesIn(value: unknown): string[] {
  const names = new Set<string>()
  collect(value, false, names, 0)
  return [...names].sort()
}

function collect(value: unknown, isRef: boolean, names: Set<string>, depth: number): void {
  if (depth > maxDepth) return
  if (Array.isArray(value)) {
    for (const item of value) collect(item, isRef, names, depth + 1)
    return
  }
  if (!isFields(value)) return
  const { name, key } = value
  if (isRef && typeof name === 'string' && name !== '' && typeof key === 'string') names.add(name)
  for (const [member, item] of Object.entries(value)) collect(item, refMember.test(member), names, depth + 1)
}
