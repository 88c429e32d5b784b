/**
 * Names of ConfigMaps with trust anchors in a part of a spec that nobody has checked yet: whatever stands under a member whose
 * name says that it is a CA bundle.
 *
 * Used by `customize`, as secret-names.ts is.
 */
import { fieldsOf, filledTextOf } from '../base/kube.ts'

const member = /^(caBundleRef|ca_bundle_ref)$/
const maxDepth = 10

export function caBundleNamesIn(value: unknown, depth = 0): string[] {
  if (depth > maxDepth) return []
  if (Array.isArray(value)) return value.flatMap((item: unknown) => caBundleNamesIn(item, depth + 1))
  return Object.entries(fieldsOf(value)).flatMap(([key, item]) => {
    if (!member.test(key)) return caBundleNamesIn(item, depth + 1)
    // A decision point names it directly.
    const named = fieldsOf(item)['configMapRef'] ?? item
    const name = filledTextOf(fieldsOf(named)['name'])
    return name === undefined ? [] : [name]
  })
}
