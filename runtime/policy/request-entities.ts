/**
 * Puts together what the engine is told for one decision: principal, action and resource with their attributes, and
 * those configured entities that can be reached from them. Attributes that no policy reads stay out.
 *
 * What is configured for an entity of a request is merged into it. The request has the last word on an attribute, but
 * for a tool's hints: what a tool says of itself counts less than what the configuration says of it.
 * Source: spec document 3, incomingAuth.authz.entitiesJson.
 */
import type { Attributes, Entity, Uid } from './cedar.ts'
import { keyOf } from './cedar.ts'
import { type Action, actions, type Question, resourceOf } from './requests.ts'
import type { StaticEntities } from './static-entities.ts'
import type { Subject } from './subject.ts'

export interface RequestEntitiesOptions {
  readonly configured: StaticEntities
  /** Name of the server: the parent of everything it offers. */
  readonly serverName: string
  /** Entities that policies look into by name. */
  readonly named: readonly Uid[]
  /** Whether some policy reads an attribute. */
  readonly wants: (attribute: string) => boolean
}

type ByAction = Partial<Record<Action, readonly Entity[]>>

export class RequestEntities {
  readonly #options: RequestEntitiesOptions
  readonly #server: Uid
  /** Configured entities that matter whatever the request. */
  readonly #always: ReadonlyMap<string, Entity>
  /** Everything but the resource, made once for a subject. */
  readonly #around = new WeakMap<Subject, ByAction>()

  constructor(options: RequestEntitiesOptions) {
    this.#options = options
    this.#server = { type: 'MCP', id: options.serverName }
    this.#always = options.configured.reachableFrom([this.#server, ...options.named])
  }

  /** Keys of an action and of everything above it. */
  actionsAbove(action: Action): ReadonlySet<string> {
    return this.#options.configured.upwardsFrom({ type: 'Action', id: action })
  }

  of(subject: Subject, question: Question, argumentAttributes: Attributes): readonly Entity[] {
    const uid = resourceOf(question)
    const { feature, operation } = actions[question.action]
    const configured = this.#options.configured.get(uid)
    const own = { name: uid.id, operation, feature, ...(uid.type === 'Resource' ? { uri: uid.id } : {}) }
    const resource: Entity = {
      ...configured,
      uid,
      attrs: {
        ...this.#wanted({ ...question.hints }),
        ...configured?.attrs,
        ...this.#wanted(own),
        ...argumentAttributes,
      },
      parents: [this.#server, ...(configured?.parents ?? [])],
    }
    const around = this.#aroundOf(subject, question.action)
    if (!configured) return [resource, ...around]
    // Rare: what the resource leads to may be there already.
    const all = this.#options.configured.reachableFrom([uid])
    for (const entity of [...around, resource]) all.set(keyOf(entity.uid), entity)
    return [...all.values()]
  }

  #wanted(attributes: Attributes): Attributes {
    return Object.fromEntries(Object.entries(attributes).filter(([name]) => this.#options.wants(name)))
  }

  #aroundOf(subject: Subject, action: Action): readonly Entity[] {
    const known = this.#around.get(subject) ?? {}
    const made = known[action]
    if (made) return made
    const entities = this.#makeAround(subject, action)
    this.#around.set(subject, { ...known, [action]: entities })
    return entities
  }

  #makeAround(subject: Subject, action: Action): readonly Entity[] {
    const { configured } = this.#options
    const { principal, parents } = subject
    const uid = { type: 'Action', id: action }
    const all = configured.reachableFrom([principal, uid, ...parents])
    for (const [key, entity] of this.#always) all.set(key, entity)
    const attrs = this.#wanted({ operation: actions[action].operation })
    for (const entity of [
      { uid, attrs, parents: [] },
      { uid: principal, attrs: subject.attributes, parents },
    ]) {
      const whole = merged(entity, configured.get(entity.uid))
      // To the engine, an entity about which nothing is said is no different from an absent one.
      if (Object.keys(whole.attrs).length + whole.parents.length > 0 || whole.tags)
        all.set(keyOf(entity.uid), whole)
    }
    return [...all.values()]
  }
}

/** An entity of a request with what the configuration says of it. */
function merged(entity: Entity, configured: Entity | undefined): Entity {
  if (!configured) return entity
  return {
    ...configured,
    attrs: { ...configured.attrs, ...entity.attrs },
    parents: [...entity.parents, ...configured.parents],
  }
}
