/**
 * Refuses children that are too large to apply.
 */
import type { Violation } from '../../schemas/index.ts'
import type { SyncFailure } from '../sync/conditions.ts'
import type { KubeObject } from '../base/kube.ts'

/**
 * A child is repeated whole in its last-applied annotation, and all annotations of an object together may have 256 KiB.
 */
export const maxBytes = 240 * 1024

/**
 * The same for what one resource brings to a child by itself, at admission: what references and members add is not known
 * there, so that a child may be too large all the same.
 */
export function sizeViolations(path: string, what: string, content: unknown): Violation[] {
  // Of a ConfigMap, the text is quoted once more.
  const bytes = Buffer.byteLength(JSON.stringify(typeof content === 'string' ? content : (content ?? null)))
  if (bytes <= maxBytes) return []
  return [{ path, message: `would make ${what} of at least ${bytes} bytes, and ${maxBytes} can be applied` }]
}

/** Undefined when every child can be applied. */
export function sizeFailure(children: readonly KubeObject[]): SyncFailure | undefined {
  const large = children.flatMap((child) => {
    const bytes = Buffer.byteLength(JSON.stringify(child))
    return bytes > maxBytes ? [`${child.kind} ${child.metadata.name} would have ${bytes} bytes`] : []
  })
  if (large.length === 0) return undefined
  return {
    reason: 'ConfigTooLarge',
    message: `${large.join('; ')}, and ${maxBytes} can be applied. Use fewer backends, workflows, policies or variables`,
  }
}
