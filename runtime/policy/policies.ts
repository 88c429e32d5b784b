/**
 * Reads policy texts: what is no policy is named with its index, everything else is taken apart into single policies
 * with their effect, their scope and what they read.
 *
 * Source: spec document 3, incomingAuth.authz.policies.
 */
import type { Problem } from '../../schemas/index.ts'
import { cedar, faultText, keyOf, type PolicyJson, toUid, type Uid } from './cedar.ts'
import { type Reads, readsOf } from './reads.ts'

export interface Policy {
  /** `policies[3]`, or `policies[3].1` for the second policy of one text. */
  readonly id: string
  readonly text: string
  readonly effect: 'permit' | 'forbid'
  readonly reads: Reads
  readonly scope: Pick<PolicyJson, 'principal' | 'action' | 'resource'>
}

export interface PoliciesRead {
  readonly policies: readonly Policy[]
  readonly problems: readonly Problem[]
}

/** Never throws. A text may hold several policies. */
export function readPolicies(texts: readonly string[]): PoliciesRead {
  const policies: Policy[] = []
  const problems: Problem[] = []
  for (const [index, text] of texts.entries()) {
    const path = `policies[${index}]`
    const read = readText(path, text)
    if (typeof read === 'string') problems.push({ path, message: read })
    else policies.push(...read)
  }
  return { policies, problems }
}

/** The policies of one text, or what is wrong with it. */
function readText(path: string, text: string): Policy[] | string {
  const parts = cedar().policySetTextToParts(text)
  if (parts.type === 'failure') return `is not a Cedar policy: ${faultText(parts.errors)}`
  if (parts.policy_templates.length > 0) {
    return 'is a template: name principals and resources instead of ?principal and ?resource'
  }
  if (parts.policies.length === 0) return 'holds no policy'
  const policies: Policy[] = []
  for (const [part, policy] of parts.policies.entries()) {
    const answer = cedar().policyToJson(policy)
    if (answer.type === 'failure') return `is not a Cedar policy: ${faultText(answer.errors)}`
    policies.push({
      id: parts.policies.length === 1 ? path : `${path}.${part}`,
      text: policy,
      effect: answer.json.effect,
      reads: readsOf(answer.json),
      scope: answer.json,
    })
  }
  return policies
}

/** A request as far as the scope of a policy can be compared with it. */
export interface Target {
  readonly principal: Uid
  /** Keys of the action and of everything above it. */
  readonly actions: ReadonlySet<string>
  readonly resource: Uid
}

/** False when the scope of a policy rules the request out for certain; true says nothing. */
export function mayApply({ scope }: Policy, { principal, actions, resource }: Target): boolean {
  const { action } = scope
  if (action.op !== 'All' && !entitiesOf(action).some((entity) => actions.has(keyOf(entity)))) return false
  return mayBe(scope.principal, principal) && mayBe(scope.resource, resource)
}

function mayBe(constraint: PolicyJson['principal'] | PolicyJson['resource'], uid: Uid): boolean {
  if (constraint.op === 'is') return constraint.entity_type === uid.type
  return constraint.op !== '==' || entitiesOf(constraint).some((entity) => keyOf(entity) === keyOf(uid))
}

/** The entities that a constraint names. */
function entitiesOf(constraint: object): Uid[] {
  const { entity, entities }: { entity?: unknown; entities?: unknown } = constraint
  const named: readonly unknown[] = Array.isArray(entities) ? entities : [entity]
  return named.flatMap((one) => toUid(one) ?? [])
}
