/** Describes a configuration's policies for users: enforced policies first, then shadow policies. */
import { formatViolations, type RuntimeAuthz } from '../../../schemas/index.ts'
import { readPolicySet } from './policies.ts'
import { hash } from 'node:crypto'

type Config = Omit<RuntimeAuthz, 'type'>

export interface DescribedPolicy {
  /** Id of the policy in decisions. */
  readonly id: string
  readonly effect: 'permit' | 'forbid'
  readonly text: string
  /** True for a shadow policy. */
  readonly shadow: boolean
}

export interface DescribedPolicies {
  /** `setDigest` in decisions made by the enforced policies. */
  readonly digest: string
  readonly items: readonly DescribedPolicy[]
  /** Reason why the policies cannot be parsed. */
  readonly problems: readonly string[]
}

/** Describes the policies. Never throws. */
export function describePolicies(config: Config, serverName: string): DescribedPolicies {
  const { policies = [], shadowPolicies = [] } = config
  const enforced = readPolicySet(policies)
  const inShadow = readPolicySet(shadowPolicies, (index) => `shadowPolicies[${index}]`)
  const rows = (
    read: typeof enforced,
    { shadow }: { readonly shadow: boolean },
  ): readonly DescribedPolicy[] => read.policies.map(({ id, effect, text }) => ({ id, effect, text, shadow }))
  const problems = [...enforced.problems, ...inShadow.problems]
  return {
    digest: digestOf(config, serverName),
    items: [...rows(enforced, { shadow: false }), ...rows(inShadow, { shadow: true })],
    problems: problems.length > 0 ? [formatViolations(problems)] : [],
  }
}

/**
 * Returns the hash that identifies the policies behind a decision. The hash excludes shadow policies, because they are
 * not enforced.
 */
export function digestOf(config: Omit<RuntimeAuthz, 'type'>, serverName: string): string {
  const { policies, entitiesJson, groupEntityType, groupClaimName, roleClaimName, primaryUpstreamProvider } =
    config
  const settings = [groupClaimName, roleClaimName, primaryUpstreamProvider].map((value) => value ?? null)
  const all = [policies, entitiesJson, groupEntityType, ...settings, serverName]
  return hash('sha256', JSON.stringify(all), 'hex').slice(0, 16)
}
