/**
 * Names of Secrets in a part of a spec that nobody has checked yet: every object with the shape of a SecretRef, under a
 * member whose name says that it is one.
 *
 * Used by `customize`, which runs before any validation and must answer something sensible for whatever is stored.
 */
import { isFields } from '../base/kube.ts'

/** Not every reference: a Secret with the name of somebody's ConfigMap is none of ours. */
const refMember = /(SecretRefs?|^secretKeyRef|^passwordRef|^initialAccessTokenRef|_secret_ref)$/
/** Secrets of type kubernetes.io/tls have fixed keys. */
const pairMember = /(CertificateSecretRef|_certificate_secret_ref)$/
const maxDepth = 20

/** Sorted and unique. */
export function secretNamesIn(value: unknown): string[] {
  const names = new Set<string>()
  collect(value, '', names, 0)
  return [...names].sort()
}

/** `member`: the name that the value, or the list with it, stands under. */
function collect(value: unknown, member: string, names: Set<string>, depth: number): void {
  if (depth > maxDepth) return
  if (Array.isArray(value)) {
    for (const item of value) collect(item, member, names, depth + 1)
    return
  }
  if (!isFields(value)) return
  const { name, key } = value
  const isRef = refMember.test(member) && (typeof key === 'string' || pairMember.test(member))
  if (isRef && typeof name === 'string' && name !== '') names.add(name)
  for (const [key, item] of Object.entries(value)) collect(item, key, names, depth + 1)
}
