/**
 * Parses the document that contains the static entities. Checks the limits first and then calls the engine.
 *
 * The engine recurses over nested values and chains of parents. The engine also computes all ancestors of every entity,
 * whose number can grow with the square of the document's length.
 * Source: docs/reference/specification/virtual-server.md#incomingAuth, incomingAuth.authz.entitiesJson.
 */
import { exactJson, isRawJson } from '../json/exact-json.ts'
import { type Fields, isFields } from '../validation/fields.ts'
import { callEngine, EngineFailure, errorText } from './engine.ts'
import { keyOf, toUid } from './uid.ts'

/** Maximum document length, in characters. */
const maxText = 256 * 1024
/** Maximum number of objects, lists and scalars. */
const maxValues = 20_000
/** Maximum nesting of objects and lists, including those around the attributes. */
const maxDepth = 32
/** Maximum number of ancestor levels. */
const maxLevels = 32
/** Maximum number of steps from entities to their ancestors, across all entities and paths. */
const maxSteps = 100_000

/**
 * Entity types for the origin of a tool, prompt, resource or skill. Only the gateway may add entities below
 * entities of these types.
 */
export const originTypes: ReadonlySet<string> = new Set([
  'Backend',
  'BackendTool',
  'BackendPrompt',
  'BackendResource',
  'BackendSkill',
  'Workflow',
])

export interface EntitiesRead {
  /** The parsed entities; undefined when there is an error message. */
  readonly entities?: readonly Fields[]
  readonly message?: string
}

/** Returns the entities or an error message. Never throws. */
export function readEntities(text: string): EntitiesRead {
  if (text.length > maxText) return { message: `is longer than ${maxText} characters` }
  let document: unknown
  try {
    document = exactJson(text)
  } catch {
    return { message: 'is not JSON' }
  }
  if (!isListOfFields(document)) return { message: 'must be a JSON list of Cedar entities' }
  const violation = valueViolation(document) ?? hierarchyViolation(document) ?? originViolation(document)
  if (violation !== undefined) return { message: violation }
  try {
    // The cast is safe, because the engine validates the shape.
    const call = { entities: document as never, schema: null }
    const response = callEngine((engine) => engine.checkParseEntities(call))
    if (response.type === 'success') return { entities: document }
    return { message: `are not Cedar entities: ${errorText(response.errors)}` }
  } catch (error) {
    if (!(error instanceof EngineFailure)) throw error
    return { message: error.verdict }
  }
}

function isListOfFields(value: unknown): value is readonly Fields[] {
  return Array.isArray(value) && value.every(isFields)
}

function valueViolation(document: readonly Fields[]): string | undefined {
  let level: unknown[] = [document]
  let values = 0
  for (let depth = 0; level.length > 0; depth++) {
    values += level.length
    if (values > maxValues) return `contain more than ${maxValues} values`
    if (depth > maxDepth) return `are nested more than ${maxDepth} levels deep`
    if (!level.every(isWellFormed)) return 'contain an unpaired surrogate (half a character)'
    level = level.flatMap((value) =>
      typeof value === 'object' && value !== null && !isRawJson(value) ? Object.values(value) : [],
    )
  }
  return undefined
}

/** Rejects an unpaired surrogate in a value or a name, because the engine fails on it. */
function isWellFormed(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed()
  return !isFields(value) || Object.keys(value).every((name) => name.isWellFormed())
}

/** Walks up the parents of every entity, level by level. */
function hierarchyViolation(document: readonly Fields[]): string | undefined {
  const parents = new Map(
    document.map(({ uid, parents: list }) => [keyText(uid), Array.isArray(list) ? list.map(keyText) : []]),
  )
  let steps = 0
  for (const start of parents.keys()) {
    const seen = new Set<string>([start])
    let level: readonly string[] = [start]
    for (let levels = 0; level.length > 0; levels++) {
      if (levels > maxLevels) return `form a hierarchy with more than ${maxLevels} levels`
      const above = level.flatMap((key) => parents.get(key) ?? [])
      steps += above.length
      if (steps > maxSteps) return 'form a hierarchy with too many paths from entities to their ancestors'
      level = [...new Set(above)].filter((key) => !seen.has(key))
      for (const key of level) seen.add(key)
    }
  }
  return undefined
}

/** Rejects entities below the origin types. Otherwise, an entity could claim a false backend as its origin. */
function originViolation(document: readonly Fields[]): string | undefined {
  for (const { uid, parents } of document) {
    for (const parent of Array.isArray(parents) ? parents : []) {
      const { type } = toUid(parent) ?? { type: '' }
      if (!originTypes.has(type)) continue
      const child = toUid(uid)
      const name = `${child?.type}::${JSON.stringify(child?.id)}`.slice(0, 100)
      return `place ${name} under an entity of type ${type}; only the gateway adds entities below this type`
    }
  }
  return undefined
}

function keyText(value: unknown): string {
  const uid = toUid(value)
  return uid ? keyOf(uid) : ''
}
