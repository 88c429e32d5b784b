/**
 * Parses Cedar policies and entities with the engine that the runtime evaluates them with.
 */
import { createRequire } from 'node:module'
import type * as Cedar from '@cedar-policy/cedar-wasm/nodejs'
import { isFields } from '../kube.ts'

export interface CedarFault {
  /** Index of the policy at fault; undefined for the entities. */
  readonly policy: number | undefined
  readonly message: string
}

let engine: typeof Cedar | undefined

/** Loaded when the first policy is parsed: it takes 30 ms that most requests do not need. */
function cedar(): typeof Cedar {
  engine ??= createRequire(import.meta.url)('#cedar') as typeof Cedar
  return engine
}

/** Faults of each policy by its index, then of the entity document. */
export function cedarFaults(policies: readonly string[], entitiesJson: string): readonly CedarFault[] {
  return [...policies.flatMap(policyFault), ...entityFaults(entitiesJson)]
}

function policyFault(policy: string, index: number): CedarFault[] {
  const answer = cedar().checkParsePolicySet({ staticPolicies: policy })
  if (answer.type === 'success') return []
  const why = answer.errors.map(({ message }) => message).join(', ')
  return [{ policy: index, message: `policies[${index}] is not a Cedar policy: ${why.slice(0, 300)}` }]
}

function entityFaults(text: string): CedarFault[] {
  const entities = parse(text)
  if (!Array.isArray(entities) || !entities.every(isFields)) {
    return [{ policy: undefined, message: 'the entities must be a JSON list of objects' }]
  }
  const answer = cedar().checkParseEntities({ entities: entities as never, schema: null })
  if (answer.type === 'success') return []
  const why = answer.errors.map(({ message }) => message).join(', ')
  return [{ policy: undefined, message: `the entities are not Cedar entities: ${why.slice(0, 300)}` }]
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
