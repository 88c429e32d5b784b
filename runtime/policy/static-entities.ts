/**
 * The entities of the configuration: groups above groups, attributes of tools, whatever the policies refer to.
 *
 * Only what can be reached from the entities of a request is handed to the engine, because everything handed over is
 * read again for each decision.
 * Source: spec document 3, incomingAuth.authz.entitiesJson (an absent entity has no parents, so `in` is false).
 */
import type { Problem } from '../../schemas/index.ts'
import { type Attributes, cedar, type Entity, faultText, keyOf, toUid, type Uid } from './cedar.ts'

const path = 'entitiesJson'

export class StaticEntities {
  readonly #entities: ReadonlyMap<string, Entity>

  constructor(entities: readonly Entity[]) {
    this.#entities = new Map(entities.map((entity) => [keyOf(entity.uid), entity]))
  }

  get(uid: Uid): Entity | undefined {
    return this.#entities.get(keyOf(uid))
  }

  /**
   * The configured entities that can be reached from some others over parents and over references in attributes and
   * tags; those others are included when they are configured.
   */
  reachableFrom(roots: Iterable<Uid>): Map<string, Entity> {
    const reached = new Map<string, Entity>()
    const queue = [...roots]
    for (let uid = queue.pop(); uid; uid = queue.pop()) {
      const key = keyOf(uid)
      const entity = this.#entities.get(key)
      if (!entity || reached.has(key)) continue
      reached.set(key, entity)
      queue.push(...entity.parents)
      collectReferences(entity.attrs, queue)
      collectReferences(entity.tags, queue)
    }
    return reached
  }

  /** Keys of an entity and of everything above it. */
  upwardsFrom(uid: Uid): ReadonlySet<string> {
    const above = new Set<string>()
    const queue = [uid]
    for (let next = queue.pop(); next; next = queue.pop()) {
      const key = keyOf(next)
      if (above.has(key)) continue
      above.add(key)
      queue.push(...(this.#entities.get(key)?.parents ?? []))
    }
    return above
  }
}

/** Entities that a value refers to, appended to `to`. */
export function collectReferences(value: unknown, to: Uid[]): void {
  if (typeof value !== 'object' || value === null) return
  const { __entity: entity }: { __entity?: unknown } = value
  const uid = toUid(entity)
  if (uid) to.push(uid)
  else for (const inner of Object.values(value)) collectReferences(inner, to)
}

/** Reads the document of static entities. Never throws. */
export function readStaticEntities(text: string): {
  readonly entities: StaticEntities
  readonly problems: readonly Problem[]
} {
  const read = parse(text)
  if (typeof read === 'string')
    return { entities: new StaticEntities([]), problems: [{ path, message: read }] }
  return { entities: new StaticEntities(read), problems: [] }
}

/** The entities, or what is wrong with the document. */
function parse(text: string): Entity[] | string {
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch {
    return 'is not JSON'
  }
  if (!isListOfObjects(document)) return 'must be a JSON list of Cedar entities'
  // The engine is the judge of what an entity is; the cast only lets it have a look.
  const answer = cedar().checkParseEntities({ entities: document as never, schema: null })
  if (answer.type === 'failure') return `are not Cedar entities: ${faultText(answer.errors)}`
  return document.flatMap((entity) => toEntity(entity) ?? [])
}

/** An entity that the engine has accepted. */
function toEntity(entity: Readonly<Record<string, unknown>>): Entity | undefined {
  const { uid, attrs, parents, tags } = entity
  const own = toUid(uid)
  if (!own) return undefined
  return {
    uid: own,
    attrs: (attrs ?? {}) as Attributes,
    parents: Array.isArray(parents) ? parents.flatMap((parent: unknown) => toUid(parent) ?? []) : [],
    ...(tags === undefined ? {} : { tags: tags as Attributes }),
  }
}

function isListOfObjects(value: unknown): value is readonly Readonly<Record<string, unknown>>[] {
  return (
    Array.isArray(value) &&
    value.every((item: unknown) => typeof item === 'object' && item !== null && !Array.isArray(item))
  )
}
