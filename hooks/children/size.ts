/**
 * Refuses children that are too large to apply.
 */
import type { Failure } from '../sync/conditions.ts'
import type { KubeObject } from '../kube.ts'

/**
 * A child is repeated whole in its last-applied annotation, and all annotations of an object together may have 256 KiB.
 */
const maxBytes = 240 * 1024

/** Undefined when every child can be applied. */
export function sizeFailure(children: readonly KubeObject[]): Failure | undefined {
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
