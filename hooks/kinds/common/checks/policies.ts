/**
 * Policies inside a resource: every Cedar policy and the entity document must be readable, each violation with its place.
 */
import { cedarViolations, cedarWarnings } from '../../../../schemas/cedar/index.ts'
import type { AuthzConfig, Violation } from '../../../../schemas/index.ts'

export function authzViolations(config: AuthzConfig | undefined, path: string): Violation[] {
  if (!config?.inline) return []
  const { policies, entitiesJson, shadowPolicies, shadowReplaces } = config.inline
  return cedarViolations(policies, entitiesJson, shadowPolicies, shadowReplaces).map((problem) => ({
    path: `${path}.inline.${problem.path}`,
    message: problem.message,
  }))
}

/** Names in policies that nothing has. */
export function policyNameWarnings(config: AuthzConfig | undefined): string[] {
  if (!config?.inline) return []
  const { groupEntityType } = config
  return cedarWarnings({ ...config.inline, groupEntityType }).map((line) => `authzConfig.inline.${line}`)
}

/** For kinds whose policies know no embedded authorization server. */
export function primaryProviderWarnings(config: AuthzConfig | undefined): string[] {
  return config?.inline?.primaryUpstreamProvider === undefined
    ? []
    : ['authzConfig.inline.primaryUpstreamProvider is ignored here; it is for VirtualMCPServer']
}
