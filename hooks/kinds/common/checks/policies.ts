/**
 * Policies inside a resource: every Cedar policy and the entity document must be readable, each violation with its place.
 */
import { cedarViolations, cedarWarnings } from '../../../../schemas/cedar/index.ts'
import type { AuthzConfig, Violation } from '../../../../schemas/index.ts'
import { pointIn, type TypedPoint } from '../../../runtime-config/decision-point.ts'

export function authzViolations(config: AuthzConfig | undefined, path: string): Violation[] {
  if (!config?.inline) return []
  const { policies, entitiesJson, shadowPolicies, shadowReplaces } = config.inline
  return cedarViolations(policies, entitiesJson, shadowPolicies, shadowReplaces).map((violation) => ({
    path: `${path}.inline.${violation.path}`,
    message: violation.message,
  }))
}

/** Names in policies that nothing has, and what makes a decision point easy to impersonate. */
export function policyNameWarnings(config: AuthzConfig | undefined): string[] {
  const typed = pointIn(config)
  if (typed) return decisionPointWarnings(typed).map((line) => `authzConfig.${typed.type}.${line}`)
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

/** What lets somebody on the way decide in place of the decision point. */
export function decisionPointWarnings(typed: TypedPoint | undefined): string[] {
  const { url = '', insecureSkipVerify = false } = typed?.point.http ?? {}
  const isLocal = /^http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?(?:\/|$)/.test(url)
  return [
    ...(url.startsWith('http://') && !isLocal
      ? ['http.url is not https: whoever is on the way can read the questions and decide']
      : []),
    ...(insecureSkipVerify
      ? ['http.insecureSkipVerify: whoever is on the way can read the questions and decide']
      : []),
  ]
}
