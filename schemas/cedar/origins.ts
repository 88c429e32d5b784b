/**
 * Finds the backends and tools that policies refer to: `Backend::"b"`, `BackendTool::"b/t"` and similar types, and
 * `resource.backend == "b"`. A misspelled name never matches, so a `forbid` policy that uses it has no effect.
 */
import { isFields } from '../validation/fields.ts'
import { below } from '../validation/violations.ts'
import { EngineFailure } from './engine.ts'
import { readEntities } from './entities.ts'
import { policyJson, readPolicies } from './policies.ts'
import { toUid } from './uid.ts'

export interface NamedOrigin {
  /** Location of the policy, such as `policies[3]` or `entitiesJson`. */
  readonly path: string
  readonly name: string
  /**
   * Original name of the tool; undefined when the policy refers to the whole backend, or to an item that is not a tool.
   */
  readonly tool?: string
}

interface Texts {
  readonly policies?: readonly string[] | undefined
  readonly shadowPolicies?: readonly string[] | undefined
  readonly entitiesJson?: string | undefined
}

/** Returns each name once per location. Never throws, and skips policies that cannot be parsed. */
export function namedOrigins(texts: Texts, parent = ''): readonly NamedOrigin[] {
  const { policies = [], shadowPolicies = [], entitiesJson } = texts
  return [
    ...inPolicies(policies, below(parent, 'policies')),
    ...inPolicies(shadowPolicies, below(parent, 'shadowPolicies')),
    ...(entitiesJson === undefined
      ? []
      : originsIn(readEntities(entitiesJson).entities ?? [], below(parent, 'entitiesJson'))),
  ]
}

function inPolicies(texts: readonly string[], path: string): readonly NamedOrigin[] {
  return readPolicies(texts).policies.flatMap((parts, index) =>
    originsIn(
      parts.flatMap((text) => jsonOf(text) ?? []),
      below(path, index),
    ),
  )
}

function jsonOf(text: string): unknown {
  try {
    return policyJson(text)
  } catch (error) {
    if (error instanceof EngineFailure) return undefined
    throw error
  }
}

function originsIn(value: unknown, path: string): readonly NamedOrigin[] {
  const found = new Map<string, NamedOrigin>()
  const waiting: unknown[] = [value]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (typeof next !== 'object' || next === null) continue
    const named = ofEntity(next) ?? ofComparison(next)
    if (named && named.name !== '') found.set(`${named.name}/${named.tool ?? ''}`, { ...named, path })
    waiting.push(...Object.values(next).toReversed())
  }
  return [...found.values()]
}

function ofEntity(value: object): Omit<NamedOrigin, 'path'> | undefined {
  const uid = toUid(value)
  if (uid?.type === 'Backend') return { name: uid.id }
  if (!uid || !/^Backend(?:Tool|Prompt|Resource|Skill)$/.test(uid.type)) return undefined
  const slash = uid.id.indexOf('/')
  if (slash < 0) return undefined
  const name = uid.id.slice(0, slash)
  return uid.type === 'BackendTool' ? { name, tool: uid.id.slice(slash + 1) } : { name }
}

/** Matches `resource.backend == "b"`, with the operands in either order. */
function ofComparison(value: object): Omit<NamedOrigin, 'path'> | undefined {
  const { '==': equal }: { '=='?: unknown } = value
  if (!isFields(equal)) return undefined
  const sides = [equal['left'], equal['right']].filter(isFields)
  const reads = sides.some(
    ({ '.': dot }) => isFields(dot) && isResource(dot['left']) && dot['attr'] === 'backend',
  )
  const name = sides.map(({ Value }) => Value).find((one) => typeof one === 'string')
  return reads && name !== undefined ? { name } : undefined
}

function isResource(value: unknown): boolean {
  return isFields(value) && value['Var'] === 'resource'
}
