/**
 * Puts together what the engine is told for one decision: principal, action and resource with their attributes, and
 * those configured entities that a policy can get hold of. Attributes that no policy reads stay out.
 *
 * What is configured for an entity of a request is merged into it. The request has the last word on an attribute, but
 * for a tool's hints: what a tool says of itself counts less than what the configuration says of it.
 * Source: docs/specification/virtual-server.md#incomingAuth, incomingAuth.authz.entitiesJson.
 */
import { keyOf, type Uid } from '../../../schemas/cedar/index.ts'
import { originAttributes, originUids, policyActions, type PolicyRequest, resourceOf } from '../requests.ts'
import { referencesIn, type StaticEntities, type CedarAttributes, type Entity } from './static-entities.ts'
import type { PolicySubject } from '../subject.ts'

export interface RequestEntitiesOptions {
  readonly configured: StaticEntities
  /** Name of the server: the parent of everything it offers. */
  readonly serverName: string
  /** Entities that policies look into by name. */
  readonly named: readonly Uid[]
  /** Whether some policy reads an attribute. */
  readonly wants: (attribute: string) => boolean
}

type PolicyAction = PolicyRequest['action']
type ByAction = Partial<Record<PolicyAction, readonly Entity[]>>

export class RequestEntities {
  readonly #options: RequestEntitiesOptions
  /** The server and everything above it. */
  readonly #server: readonly Uid[]
  /** Everything but the resource, made once for a subject. */
  readonly #around = new WeakMap<PolicySubject, ByAction>()

  constructor(options: RequestEntitiesOptions) {
    this.#options = options
    this.#server = options.configured.withAncestors([{ type: 'MCP', id: options.serverName }])
  }

  /** Keys of an action and of everything above it. */
  actionsAbove(action: PolicyAction): ReadonlySet<string> {
    return new Set(this.#options.configured.withAncestors([actionUid(action)]).map(keyOf))
  }

  of(
    subject: PolicySubject,
    question: PolicyRequest,
    argumentAttributes: CedarAttributes,
  ): readonly Entity[] {
    const uid = resourceOf(question)
    const { feature, operation } = policyActions[question.action]
    const configured = this.#options.configured.get(uid)
    const { origin } = question
    const own = {
      name: uid.id,
      operation,
      feature,
      ...(uid.type === 'Resource' ? { uri: uid.id } : {}),
      ...(origin ? { original: origin.original } : {}),
      ...(origin && origin.backend !== '' ? { backend: origin.backend } : {}),
    }
    const resource: Entity = {
      ...configured,
      uid,
      attrs: {
        ...this.#wanted({ ...question.hints }),
        ...(configured && withoutOrigin(configured.attrs)),
        ...this.#wanted(own),
        ...argumentAttributes,
      },
      parents: [
        ...this.#server,
        ...(origin ? this.#options.configured.withAncestors(originUids(question, origin)) : []),
        ...(configured?.parents ?? []),
      ],
    }
    const around = this.#aroundOf(subject, question.action)
    if (!configured) return [resource, ...around]
    // Rare: what the resource refers to, or the resource itself, may be there already.
    const all = this.#options.configured.within(referencesIn(configured))
    for (const entity of [...around, resource]) all.set(keyOf(entity.uid), entity)
    return [...all.values()]
  }

  #wanted(attributes: CedarAttributes): CedarAttributes {
    return Object.fromEntries(Object.entries(attributes).filter(([name]) => this.#options.wants(name)))
  }

  #aroundOf(subject: PolicySubject, action: PolicyAction): readonly Entity[] {
    const known = this.#around.get(subject) ?? {}
    const made = known[action]
    if (made) return made
    const entities = this.#makeAround(subject, action)
    this.#around.set(subject, { ...known, [action]: entities })
    return entities
  }

  #makeAround(subject: PolicySubject, action: PolicyAction): readonly Entity[] {
    const { configured, named } = this.#options
    const uid = actionUid(action)
    const all = configured.within([subject.principal, uid, ...named])
    const attrs = this.#wanted({ operation: policyActions[action].operation })
    for (const entity of [
      { uid, attrs, parents: [] },
      {
        uid: subject.principal,
        attrs: subject.attributes,
        parents: configured.withAncestors(subject.parents),
      },
    ])
      all.set(keyOf(entity.uid), merged(entity, configured.get(entity.uid)))
    // To the engine, an entity about which nothing is said is no different from an absent one.
    return [...all.values()].filter(
      ({ attrs, parents, tags }) => Object.keys(attrs).length + parents.length > 0 || tags,
    )
  }
}

/** What a configuration says of an origin counts for nothing. */
function withoutOrigin(attrs: CedarAttributes): CedarAttributes {
  if (!originAttributes.some((name) => Object.hasOwn(attrs, name))) return attrs
  const { backend: _backend, original: _original, ...rest } = attrs
  return rest
}

function actionUid(action: PolicyAction): Uid {
  return { type: 'Action', id: action }
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
