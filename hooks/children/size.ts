import type { Violation } from '../../schemas/index.ts'
import type { SyncFailure } from '../sync/conditions.ts'
import type { KubeObject } from '../base/kube.ts'

/**
 * Each child object is repeated in its last-applied annotation, and an object's annotations are limited to 256 KiB in
 * total.
 */
export const maxBytes = 240 * 1024

/**
 * At admission, checks how much a resource's own spec contributes to a child's size. References and members are unknown
 * at that point, so the child may still become too large.
 */
export function sizeViolations(path: string, what: string, content: unknown): Violation[] {
  // The last-applied annotation contains a second copy of a ConfigMap's text.
  const bytes = Buffer.byteLength(JSON.stringify(typeof content === 'string' ? content : (content ?? null)))
  if (bytes <= maxBytes) return []
  return [{ path, message: `would result in ${what} of at least ${bytes} bytes; the maximum is ${maxBytes}` }]
}

/** Returns undefined when every child can be applied. */
export function sizeFailure(children: readonly KubeObject[]): SyncFailure | undefined {
  const large = children.flatMap((child) => {
    const bytes = Buffer.byteLength(JSON.stringify(child))
    return bytes > maxBytes ? [`${child.kind} ${child.metadata.name} has ${bytes} bytes`] : []
  })
  if (large.length === 0) return undefined
  return {
    reason: 'ConfigTooLarge',
    message: `${large.join('; ')}; the maximum is ${maxBytes}. Use fewer backends, workflows, policies or variables`,
  }
}
