/**
 * Policies inside a resource: every Cedar policy and the entity document must be readable, each violation with its place.
 */
import { cedarProblems } from '../../schemas/cedar/index.ts'
import type { AuthzConfig, Violation } from '../../schemas/index.ts'

export function authzProblems(config: AuthzConfig | undefined, path: string): Violation[] {
  if (!config?.inline) return []
  const { policies, entitiesJson } = config.inline
  return cedarProblems(policies, entitiesJson).map((problem) => ({
    path: `${path}.inline.${problem.path}`,
    message: problem.message,
  }))
}
