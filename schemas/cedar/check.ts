/** Everything that would keep a server from starting with some policies and entities. */
import type { Violation } from '../validation/violations.ts'
import { readEntities } from './entities.ts'
import { readPolicies } from './policies.ts'

/**
 * Policies that cannot be used, with paths such as `policies[3]`, shadow policies likewise, then the entities, with the path
 * `entitiesJson`.
 */
export function cedarViolations(
  policies: readonly string[],
  entitiesJson: string,
  shadowPolicies: readonly string[] = [],
): readonly Violation[] {
  const { message } = readEntities(entitiesJson)
  const shadow = readPolicies(shadowPolicies).problems.map((problem) => ({
    ...problem,
    path: problem.path.replace(/^policies/, 'shadowPolicies'),
  }))
  const problems = [...readPolicies(policies).problems, ...shadow]
  return message === undefined ? problems : [...problems, { path: 'entitiesJson', message }]
}
