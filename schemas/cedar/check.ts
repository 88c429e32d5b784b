/** Finds all problems with policies and entities that would prevent a server from starting up. */
import type { Violation } from '../validation/violations.ts'
import { readEntities } from './entities.ts'
import { boundsMessage, readPolicies } from './policies.ts'

/**
 * Returns problems with the policies first (with paths such as `policies[3]`), then with the shadow policies, then with
 * the entities (with the path `entitiesJson`). Without `shadowReplaces`, shadow policies are evaluated together with
 * the policies, so the limits apply to both lists combined.
 */
export function cedarViolations(
  policies: readonly string[],
  entitiesJson: string,
  shadowPolicies: readonly string[] = [],
  shadowReplaces = false,
): readonly Violation[] {
  const { message } = readEntities(entitiesJson)
  const own = readPolicies(policies).violations
  const shadow = readPolicies(shadowPolicies).violations.map((violation) => ({
    ...violation,
    path: violation.path.replace(/^policies/, 'shadowPolicies'),
  }))
  const violations = [...own, ...shadow]
  if (shadowPolicies.length > 0 && !shadowReplaces && violations.length === 0) {
    const beyond = boundsMessage([...policies, ...shadowPolicies])
    if (beyond !== undefined)
      violations.push({ path: 'shadowPolicies', message: `together with policies ${beyond}` })
  }
  return message === undefined ? violations : [...violations, { path: 'entitiesJson', message }]
}
