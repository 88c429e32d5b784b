import type { Link } from '../model/operation.ts'
import type { ResourceLinks } from '../catalog/resource-links.ts'

/** Records the resource links that the client receives. A later read of such a link reaches the same backend. */
export function recordResourceLinks(links: ResourceLinks): Link {
  return async function recordResourceLinks(operation, next) {
    const outcome = await next(operation)
    const { target } = operation
    if (target && !target.run) links.remember(operation, target.entry.backend, outcome)
    return outcome
  }
}
