/**
 * Determines from a policy's JSON form what the policy reads: attributes, the context as a whole, and the entities
 * whose own attributes or parents matter.
 *
 * When in doubt, the analysis overestimates: it ignores which object an attribute is read from. Data that no policy
 * reads is not sent to the engine and does not affect cached decisions.
 * Source: Cedar, JSON policy format.
 */
import { isFields } from '../../../schemas/index.ts'
import { type PolicyJson, toUid, type Uid } from '../../../schemas/cedar/index.ts'

export interface Reads {
  readonly attributes: ReadonlySet<string>
  /** Attributes that may be read from the principal. */
  readonly principalAttributes: ReadonlySet<string>
  /** True when the context is used as a value, so all its attributes matter. */
  readonly wholeContext: boolean
  /** Entities outside the request whose attributes or parents may be read. */
  readonly entities: readonly Uid[]
  /**
   * Total length of the policy's patterns. The time to match a string is proportional to the length of the string times
   * the length of the pattern.
   */
  readonly patternLength: number
  /** Types of all entities in the policy. */
  readonly types: ReadonlySet<string>
  /** True when the policy tests membership in an entity that is not a literal, such as `in principal.teams`. */
  readonly computedEntities: boolean
}

interface Found {
  readonly types: Set<string>
  computedEntities: boolean
  readonly attributes: Set<string>
  readonly principalAttributes: Set<string>
  wholeContext: boolean
  patternLength: number
  readonly entities: Uid[]
}

type Node = Readonly<Record<string, unknown>>

export function readsOf(policy: PolicyJson): Reads {
  const found: Found = {
    attributes: new Set(),
    principalAttributes: new Set(),
    wholeContext: false,
    patternLength: 0,
    entities: [],
    types: new Set(),
    computedEntities: false,
  }
  for (const constraint of [policy.principal, policy.action, policy.resource]) collectTypes(constraint, found)
  for (const { body } of policy.conditions) visit(body, found)
  return found
}

/**
 * Visits an expression: an object with one member, named after the operator. Each operand is an expression, or a list
 * or object of expressions.
 */
function visit(value: unknown, found: Found): void {
  if (Array.isArray(value)) {
    for (const item of value) visit(item, found)
    return
  }
  if (!isFields(value)) return
  for (const [operator, operand] of Object.entries(value)) visitOperator(operator, operand, found)
}

function visitOperator(operator: string, operand: unknown, found: Found): void {
  if (!isFields(operand)) {
    if (operator === 'Var' && operand === 'context') found.wholeContext = true
    visit(operand, found)
    return
  }
  switch (operator) {
    case 'Record':
      // Skips record keys, because the author of the policy chooses them and they could look like operators.
      visit(Object.values(operand), found)
      break
    case 'Value':
      visitLiteral(operand, found)
      break
    case '.':
    case 'has':
      visitAccess(operand, found)
      break
    case 'like':
      found.patternLength += lengthOf(operand['pattern'])
      visit(operand['left'], found)
      break
    case 'is':
      if (operand['in'] !== undefined && !isPlainEntity(operand['in'])) found.computedEntities = true
      visit(operand['left'], found)
      visitNamed(operand['in'], found)
      break
    case 'in':
      if (!isPlainEntity(operand['right'])) found.computedEntities = true
      visit(operand['left'], found)
      visitNamed(operand['right'], found)
      break
    case '==':
    case '!=':
      visitNamed(operand['left'], found)
      visitNamed(operand['right'], found)
      break
    default:
      visit(Object.values(operand), found)
  }
}

/** Returns the length of a pattern, which is a list of wildcards and literals. */
function lengthOf(pattern: unknown): number {
  const parts: readonly unknown[] = Array.isArray(pattern) ? pattern : []
  return parts.reduce<number>((sum, part) => {
    const literal = isFields(part) ? part['Literal'] : undefined
    return sum + (typeof literal === 'string' ? literal.length : 1)
  }, 0)
}

/** Visits `left.attr`, `left["attr"]`, `left has attr` or `left has a.b.c`. */
function visitAccess({ left, attr }: Node, found: Found): void {
  for (const name of Array.isArray(attr) ? attr : [attr]) {
    if (typeof name !== 'string') continue
    found.attributes.add(name)
    if (mayBePrincipal(left)) found.principalAttributes.add(name)
  }
  // Reading one attribute of the context does not read the whole context.
  if (!(isFields(left) && left['Var'] === 'context')) visit(left, found)
}

/** Returns false for the resource, the action, and everything inside the context, which contains no entities. */
function mayBePrincipal(value: unknown): boolean {
  if (!isFields(value)) return true
  const { Var: variable, '.': access } = value
  if (variable !== undefined) return variable === 'principal'
  let root: unknown = access
  while (isFields(root) && isFields(root['left'])) root = root['left']['.'] ?? root['left']['Var']
  return root !== 'context'
}

/** Visits an operand. Comparing with an entity, or testing membership in it, does not read the entity itself. */
function visitNamed(value: unknown, found: Found): void {
  if (isPlainEntity(value)) collectTypes(value, found)
  else visit(value, found)
}

/** Collects the types of all entities in a part of a policy that contains no expressions. */
function collectTypes(value: unknown, found: Found): void {
  if (typeof value !== 'object' || value === null) return
  const uid = toUid(value)
  if (uid) found.types.add(uid.type)
  else for (const inner of Object.values(value)) collectTypes(inner, found)
}

/** True for an entity literal or a set of entity literals. */
function isPlainEntity(value: unknown): boolean {
  if (!isFields(value)) return false
  const { Value: literal, Set: members } = value
  if (literal !== undefined) return isFields(literal) && toUid(literal['__entity']) !== undefined
  return Array.isArray(members) && members.every(isPlainEntity)
}

function visitLiteral(literal: unknown, found: Found): void {
  if (typeof literal !== 'object' || literal === null) return
  const { __entity: entity }: { __entity?: unknown } = literal
  const uid = toUid(entity)
  if (uid) {
    found.entities.push(uid)
    found.types.add(uid.type)
  } else for (const inner of Object.values(literal)) visitLiteral(inner, found)
}
