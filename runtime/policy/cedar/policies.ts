/**
 * Parses a configuration's policies into single policies with their effect, their scope and the data that they read.
 *
 * Source: docs/reference/specification/virtual-server.md#incomingAuth, incomingAuth.authz.policies.
 */
import {
  EngineFailure,
  keyOf,
  policyJson,
  PreparedPolicies,
  type PolicyJson,
  readPolicies,
  toUid,
  type Uid,
} from '../../../schemas/cedar/index.ts'
import { GatehouseError, type Violation } from '../../../schemas/index.ts'
import { type Reads, readsOf } from './reads.ts'

export interface Policy {
  /** Id such as `policies[3]`, or `policies[3].1` for the second policy in one string. */
  readonly id: string
  readonly text: string
  readonly effect: 'permit' | 'forbid'
  readonly reads: Reads
  readonly scope: Pick<PolicyJson, 'principal' | 'action' | 'resource'>
  readonly conditions: PolicyJson['conditions']
}

export interface PolicySetRead {
  readonly policies: readonly Policy[]
  readonly problems: readonly Violation[]
}

/**
 * Parses the policies. Never throws. A string may contain several policies; `nameOf` returns a string's id from its
 * position.
 */
export function readPolicySet(
  texts: readonly string[],
  nameOf: (index: number) => string = (index) => `policies[${index}]`,
): PolicySetRead {
  const { policies: read, violations } = readPolicies(texts)
  if (violations.length > 0) return { policies: [], problems: violations }
  const policies: Policy[] = []
  for (const [index, parts] of read.entries()) {
    const path = nameOf(index)
    try {
      for (const [part, text] of parts.entries())
        policies.push(policyOf(parts.length === 1 ? path : `${path}.${part}`, text))
    } catch (error) {
      if (!(error instanceof EngineFailure)) throw error
      return { policies: [], problems: [{ path, message: error.verdict }] }
    }
  }
  return { policies, problems: [] }
}

function policyOf(id: string, text: string): Policy {
  const json = policyJson(text)
  return { id, text, effect: json.effect, reads: readsOf(json), scope: json, conditions: json.conditions }
}

/** The parts of a request against which a policy's scope is checked. */
export interface PolicyTarget {
  readonly principal: Uid
  /** Keys of the action and its ancestors. */
  readonly actions: ReadonlySet<string>
  readonly resource: Uid
}

/** Returns false when a policy's scope definitely excludes the request. A result of true is inconclusive. */
export function mayApply({ scope }: Policy, { principal, actions, resource }: PolicyTarget): boolean {
  const { action } = scope
  if (action.op !== 'All' && !entitiesOf(action).some((entity) => actions.has(keyOf(entity)))) return false
  return mayBe(scope.principal, principal) && mayBe(scope.resource, resource)
}

function mayBe(constraint: PolicyJson['principal'] | PolicyJson['resource'], uid: Uid): boolean {
  if (constraint.op === 'is') return constraint.entity_type === uid.type
  return constraint.op !== '==' || entitiesOf(constraint).some((entity) => keyOf(entity) === keyOf(uid))
}

/** Returns the entities in a constraint. */
function entitiesOf(constraint: object): Uid[] {
  const { entity, entities }: { entity?: unknown; entities?: unknown } = constraint
  const named: readonly unknown[] = Array.isArray(entities) ? entities : [entity]
  return named.flatMap((one) => toUid(one) ?? [])
}

/** Checks the policies as a set. Throws INVALID_CONFIG when the policies cannot be used together. */
export function prepare(policies: readonly Policy[]): PreparedPolicies {
  const prepared = new PreparedPolicies(Object.fromEntries(policies.map(({ id, text }) => [id, text])))
  const failure = prepared.check()
  if (failure === undefined) return prepared
  throw new GatehouseError('INVALID_CONFIG', {
    detail: `policies: the policies cannot be used together: ${failure}`,
  })
}
