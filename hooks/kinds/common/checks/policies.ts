/** Validates the policies and entities inside a resource. Each violation contains its exact path. */
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

/** Warns about unknown names in policies, and about decision points that are easy to impersonate. */
export function policyNameWarnings(config: AuthzConfig | undefined): string[] {
  const typed = pointIn(config)
  if (typed) return decisionPointWarnings(typed).map((line) => `authzConfig.${typed.type}.${line}`)
  if (!config?.inline) return []
  const { groupEntityType } = config
  return cedarWarnings({ ...config.inline, groupEntityType }).map((line) => `authzConfig.inline.${line}`)
}

/** Warns about a field that only a VirtualMCPServer uses. */
export function primaryProviderWarnings(config: AuthzConfig | undefined): string[] {
  return config?.inline?.primaryUpstreamProvider === undefined
    ? []
    : ['authzConfig.inline.primaryUpstreamProvider is ignored here; only a VirtualMCPServer uses it']
}

/** Warns about settings that let an attacker on the network replace a decision point's responses. */
export function decisionPointWarnings(typed: TypedPoint | undefined): string[] {
  const { url = '', insecureSkipVerify = false } = typed?.point.http ?? {}
  const isLocal = /^http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?(?:\/|$)/.test(url)
  return [
    ...(url.startsWith('http://') && !isLocal
      ? ['http.url is not https: an attacker on the network can read requests and forge decisions']
      : []),
    ...(insecureSkipVerify
      ? ['http.insecureSkipVerify: an attacker on the network can read requests and forge decisions']
      : []),
  ]
}
