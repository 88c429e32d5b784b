/** The policies of a configuration one by one, for people who read them: enforced ones first, then those in the shadow. */
import { formatViolations, type RuntimeAuthz } from '../../../schemas/index.ts'
import { digestOf } from './digest.ts'
import { readPolicySet } from './policies.ts'

type Config = Omit<RuntimeAuthz, 'type'>

export interface DescribedPolicy {
  /** As decisions name it. */
  readonly id: string
  readonly effect: 'permit' | 'forbid'
  readonly text: string
  /** True for one that decides nothing. */
  readonly shadow: boolean
}

export interface DescribedPolicies {
  /** `setDigest` of the decisions that the enforced ones make. */
  readonly digest: string
  readonly items: readonly DescribedPolicy[]
  /** What keeps policies from being read. */
  readonly problems: readonly string[]
}

/** Never throws. */
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
