/**
 * The configured entities: groups and their parents, attributes of tools, and other entities that policies refer to.
 *
 * The engine parses its input again for each decision, so it receives only entities that a policy can reach. A policy
 * can only test membership and cannot navigate from an entity to its parents. The engine therefore gets parents as a
 * flat list of all ancestors, not as entities.
 * Source: docs/reference/specification/virtual-server.md#incomingAuth, incomingAuth.authz.entitiesJson (an absent
 * entity has no parents, so `in` is false).
 */
import { keyOf, readEntities, toUid, type Uid, type CedarValue } from '../../../schemas/cedar/index.ts'
import type { Fields, Violation } from '../../../schemas/index.ts'

export class StaticEntities {
  /** A configured entity. Its parents include all ancestors. */
  readonly #entities: ReadonlyMap<string, Entity>

  constructor(entities: readonly Entity[]) {
    const configured = new Map(entities.map((entity) => [keyOf(entity.uid), entity]))
    this.#entities = new Map(
      entities.map((entity) => [
        keyOf(entity.uid),
        { ...entity, parents: upwards(entity.parents, (key) => configured.get(key)?.parents) },
      ]),
    )
  }

  /** True when an entity of one of these types is configured or referenced. */
  mentions(types: ReadonlySet<string>): boolean {
    return [...this.#entities.values()].some((entity) =>
      [entity.uid, ...entity.parents, ...referencesIn(entity)].some(({ type }) => types.has(type)),
    )
  }

  get(uid: Uid): Entity | undefined {
    return this.#entities.get(keyOf(uid))
  }

  /** Returns the entities and their ancestors, without duplicates. */
  withAncestors(uids: readonly Uid[]): readonly Uid[] {
    return upwards(uids, (key) => this.#entities.get(key)?.parents)
  }

  /**
   * Returns the configured entities among the roots, and the entities that a policy can reach from them through
   * references in attributes and tags.
   */
  within(roots: Iterable<Uid>): Map<string, Entity> {
    const found = new Map<string, Entity>()
    const queue = [...roots]
    for (let uid = queue.pop(); uid; uid = queue.pop()) {
      const key = keyOf(uid)
      const entity = this.#entities.get(key)
      if (!entity || found.has(key)) continue
      found.set(key, entity)
      queue.push(...referencesIn(entity))
    }
    return found
  }
}

function upwards(
  uids: readonly Uid[],
  parentsOf: (key: string) => readonly Uid[] | undefined,
): readonly Uid[] {
  const above = new Map<string, Uid>()
  const queue = [...uids]
  for (let uid = queue.pop(); uid; uid = queue.pop()) {
    const key = keyOf(uid)
    if (above.has(key)) continue
    above.set(key, uid)
    queue.push(...(parentsOf(key) ?? []))
  }
  return [...above.values()]
}

/** Returns the entities that the attributes and tags of an entity refer to. */
export function referencesIn({ attrs, tags }: Pick<Entity, 'attrs' | 'tags'>): Uid[] {
  const found: Uid[] = []
  collect(attrs, found)
  collect(tags, found)
  return found
}

function collect(value: unknown, to: Uid[]): void {
  if (typeof value !== 'object' || value === null) return
  const { __entity: entity }: { __entity?: unknown } = value
  const uid = toUid(entity)
  if (uid) to.push(uid)
  else for (const inner of Object.values(value)) collect(inner, to)
}

/** Parses the document of static entities. Never throws. */
export function readStaticEntities(text: string): {
  readonly entities: StaticEntities
  readonly problems: readonly Violation[]
} {
  const { entities = [], message } = readEntities(text)
  return {
    entities: new StaticEntities(entities.flatMap((entity) => toEntity(entity) ?? [])),
    problems: message === undefined ? [] : [{ path: 'entitiesJson', message }],
  }
}

/** Converts an entity that the engine has accepted. */
function toEntity(entity: Fields): Entity | undefined {
  const { uid, attrs, parents, tags } = entity
  const own = toUid(uid)
  if (!own) return undefined
  return {
    uid: own,
    attrs: (attrs ?? {}) as CedarAttributes,
    parents: Array.isArray(parents) ? parents.flatMap((parent: unknown) => toUid(parent) ?? []) : [],
    ...(tags === undefined ? {} : { tags: tags as CedarAttributes }),
  }
}

export type CedarAttributes = Readonly<Record<string, CedarValue>>

/** An entity in the engine's input format. Source: Cedar, entity JSON format. */
export interface Entity {
  readonly uid: Uid
  readonly attrs: CedarAttributes
  readonly parents: readonly Uid[]
  readonly tags?: CedarAttributes
}
