/** The checks of a policy configuration that need no running server: for start-up, `validate` and tests. */
import type { Problem } from '../../schemas/index.ts'
import { readPolicies } from './policies.ts'
import { readStaticEntities } from './static-entities.ts'

/**
 * Everything that would keep an authorizer from starting: policies and entities that the engine cannot read, each with
 * its place (`policies[2]`, `entitiesJson`). Empty when there is nothing.
 */
export function checkPolicies(policies: readonly string[], entitiesJson: string): Problem[] {
  return [...readPolicies(policies).problems, ...readStaticEntities(entitiesJson).problems]
}
