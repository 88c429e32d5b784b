/**
 * Policies inside a resource: every Cedar policy and the entity document must parse, each fault with its index.
 */
import type { AuthzConfig, Problem } from '../../schemas/index.ts'
import { cedarFaults } from './cedar.ts'

export function authzProblems(config: AuthzConfig | undefined, path: string): Problem[] {
  if (!config?.inline) return []
  const { policies, entitiesJson } = config.inline
  return cedarFaults(policies, entitiesJson).map(({ policy, message }) => ({
    path: policy === undefined ? `${path}.inline.entitiesJson` : `${path}.inline.policies[${policy}]`,
    message: message.replace(/^policies\[\d+\] /, ''),
  }))
}
