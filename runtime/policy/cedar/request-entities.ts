/**
 * Builds the engine input for one decision: the principal, action and resource with their attributes, and the
 * configured entities that a policy can reach. Omits attributes that no policy reads.
 *
 * An entity's configured attributes are merged into the request's entity. The request takes precedence, except for a
 * tool's hints, where the configuration takes precedence.
 * Source: docs/reference/specification/virtual-server.md#incomingAuth, incomingAuth.authz.entitiesJson.
 */
import { keyOf, type Uid } from '../../../schemas/cedar/index.ts'
import { originAttributes, originUids, policyActions, type PolicyRequest, resourceOf } from '../requests.ts'
import { referencesIn, type StaticEntities, type CedarAttributes, type Entity } from './static-entities.ts'
import type { PolicySubject } from '../subject.ts'

export interface RequestEntitiesOptions {
  readonly configured: StaticEntities
  /** The server's name, which is the parent of everything that the server offers. */
  readonly serverName: string
  /** Entities that policies read by name. */
  readonly named: readonly Uid[]
  /** True when a policy reads an attribute. */
  readonly wants: (attribute: string) => boolean
}

type PolicyAction = PolicyRequest['action']
type ByAction = Partial<Record<PolicyAction, readonly Entity[]>>

export class RequestEntities {
  readonly #options: RequestEntitiesOptions
  /** The server and its ancestors. */
  readonly #server: readonly Uid[]
  /** Engine input without the resource, built once per subject. */
  readonly #around = new WeakMap<PolicySubject, ByAction>()

  constructor(options: RequestEntitiesOptions) {
    this.#options = options
    this.#server = options.configured.withAncestors([{ type: 'MCP', id: options.serverName }])
  }

  /** Keys of an action and its ancestors. */
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
      ...(uid.type === 'Resource' || uid.type === 'Skill' ? { uri: uid.id } : {}),
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
    // Merges entities, because the resource, or an entity that it references, may already be present.
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
    const principal = all.get(keyOf(subject.principal))
    // Configured attributes take precedence over facts, because facts were introduced after many configurations were
    // written.
    if (principal)
      all.set(keyOf(principal.uid), { ...principal, attrs: { ...subject.facts, ...principal.attrs } })
    // Omits an entity without attributes or parents, which the engine treats as absent.
    return [...all.values()].filter(
      ({ attrs, parents, tags }) => Object.keys(attrs).length + parents.length > 0 || tags,
    )
  }
}

/** Ignores an origin entity's configured attributes. */
function withoutOrigin(attrs: CedarAttributes): CedarAttributes {
  if (!originAttributes.some((name) => Object.hasOwn(attrs, name))) return attrs
  const { backend: _backend, original: _original, ...rest } = attrs
  return rest
}

function actionUid(action: PolicyAction): Uid {
  return { type: 'Action', id: action }
}

/** Merges a request's entity with its configured attributes. */
function merged(entity: Entity, configured: Entity | undefined): Entity {
  if (!configured) return entity
  return {
    ...configured,
    attrs: { ...configured.attrs, ...entity.attrs },
    parents: [...entity.parents, ...configured.parents],
  }
}
