/**
 * An in-memory cluster: stores the manifests, runs the hooks as Metacontroller does, and stores their children.
 *
 * The cluster does not run or schedule workloads, validate schemas (the caller does) or persist anything. The semantics
 * follow Metacontroller v4. The cluster calls `customize` once per generation and selects related objects by the
 * returned rules. It deletes children that are no longer returned, and replaces the status as a whole.
 */
import { isDeepStrictEqual } from 'node:util'
import { cloneJson, GatehouseError } from '../../../../schemas/index.ts'
import { applyChild } from './apply.ts'
import { groupKey, type LocalObject, namespacedName, objectKey } from '../../manifests/objects.ts'
import { matchesRule, type LocalRelatedRule } from './related.ts'
import type { ValidateResource } from '../../manifests/check.ts'
import { runtimeImage, version } from '../../terminal/self.ts'

/** The part of a hook that the local cluster calls. The entries in the hooks module's registry satisfy this type. */
export interface Hook {
  readonly childKinds: readonly { readonly apiVersion: string; readonly kind: string }[]
  readonly customize: (request: unknown) => { relatedResources: readonly LocalRelatedRule[] }
  readonly sync: (request: unknown) => { status?: unknown; children: readonly unknown[] }
}

/** The hooks for all kinds. The hooks module's registry satisfies this type. */
export interface Hooks {
  byKind(kind: string): Hook | undefined
}

/** Maximum number of rounds until the hooks' responses must be stable. */
const maxRounds = 40

export class LocalCluster {
  readonly #objects = new Map<string, LocalObject>()
  readonly #rules = new Map<string, readonly LocalRelatedRule[]>()
  readonly #hooks: Hooks
  readonly #now: () => Date
  #version = 0

  constructor(hooks: Hooks, now: () => Date) {
    this.#hooks = hooks
    this.#now = now
  }

  /** All objects, in order of creation. */
  get objects(): readonly LocalObject[] {
    return [...this.#objects.values()]
  }

  /** Returns the objects whose controller is `parent`. */
  childrenOf(parent: LocalObject): readonly LocalObject[] {
    return this.objects.filter((object) => ownerUid(object) === parent.metadata.uid)
  }

  /** Returns the controller of a child, or undefined. */
  parentOf(child: LocalObject): LocalObject | undefined {
    const uid = ownerUid(child)
    return uid === undefined ? undefined : this.objects.find((object) => object.metadata.uid === uid)
  }

  /** True for a kind whose objects have children: a workload, not shared settings. */
  hasChildren({ kind }: LocalObject): boolean {
    return (this.#hooks.byKind(kind)?.childKinds.length ?? 0) > 0
  }

  /**
   * Replaces the declared state with the given manifests. Returns the objects that were created, changed or removed.
   */
  declare(docs: readonly LocalObject[]): LocalObject[] {
    const wanted = new Set<string>()
    const changed: LocalObject[] = []
    for (const doc of docs) {
      const object = { ...doc, metadata: { namespace: 'default', ...doc.metadata } }
      wanted.add(objectKey(object))
      if (this.#put(object)) changed.push(object)
    }
    for (const object of this.objects) {
      if (ownerUid(object) !== undefined || wanted.has(objectKey(object))) continue
      this.#remove(object)
      changed.push(object)
    }
    return changed
  }

  /** Writes a workload's status, as a kubelet does. Returns true if the status changed. */
  setStatus(object: LocalObject, status: Record<string, unknown>): boolean {
    const live = this.#objects.get(objectKey(object))
    if (!live || isDeepStrictEqual(live.status, status)) return false
    this.#store({ ...live, status })
    return true
  }

  /** Runs every hook until nothing changes. Throws INTERNAL after `maxRounds` rounds. */
  reconcile(): void {
    for (let round = 0; round < maxRounds; round++) {
      const before = this.#version
      for (const parent of this.objects) {
        const hook = this.#hooks.byKind(parent.kind)
        if (hook && this.#objects.has(objectKey(parent))) this.#sync(parent, hook)
      }
      if (this.#version === before) return
    }
    throw new GatehouseError('INTERNAL', {
      detail: `the hooks are still changing objects after ${maxRounds} rounds`,
    })
  }

  #sync(parent: LocalObject, hook: Hook): void {
    const controller = {}
    const ruleKey = `${parent.metadata.uid} ${parent.metadata.generation}`
    let rules = this.#rules.get(ruleKey)
    if (!rules) {
      rules = hook.customize({ controller, parent }).relatedResources
      this.#rules.set(ruleKey, rules)
    }
    const children = groups(this.childrenOf(parent), hook.childKinds)
    const { namespace } = parent.metadata
    const related = groups(
      this.objects.filter((object) => rules.some((rule) => matchesRule(object, rule, namespace))),
    )
    const response = hook.sync({
      controller,
      parent: cloneJson(parent),
      children,
      related,
      finalizing: false,
    })
    this.#applyChildren(parent, response.children as readonly LocalObject[])
    const status = { ...(response.status as object), observedGeneration: parent.metadata.generation }
    this.setStatus(parent, status)
  }

  #applyChildren(parent: LocalObject, desired: readonly LocalObject[]): void {
    const wanted = new Set<string>()
    for (const child of desired) {
      const placed = {
        ...child,
        metadata: { namespace: parent.metadata.namespace ?? 'default', ...child.metadata },
      }
      const key = objectKey(placed)
      wanted.add(key)
      const live = this.#objects.get(key)
      if (live && ownerUid(live) !== parent.metadata.uid) continue
      const applied = applyChild(live, placed)
      applied.metadata.ownerReferences = [ownerReference(parent)]
      applied.metadata.labels = { ...applied.metadata.labels, 'controller-uid': parent.metadata.uid ?? '' }
      this.#put(applied)
    }
    for (const child of this.childrenOf(parent)) {
      if (!wanted.has(objectKey(child))) this.#remove(child)
    }
  }

  /** Stores the object unless it is unchanged. Returns true if the object changed. */
  #put(object: LocalObject): boolean {
    const live = this.#objects.get(objectKey(object))
    const next: LocalObject = { ...object, ...(live?.status && { status: live.status }) }
    next.metadata = {
      ...object.metadata,
      uid: live?.metadata.uid ?? crypto.randomUUID(),
      creationTimestamp: live?.metadata.creationTimestamp ?? this.#timestamp(),
      generation: live?.metadata.generation ?? 1,
      ...(live?.metadata.resourceVersion && { resourceVersion: live.metadata.resourceVersion }),
    }
    if (live && isDeepStrictEqual(live, next)) return false
    if (live && !isDeepStrictEqual(live.spec, next.spec)) {
      next.metadata.generation = (live.metadata.generation ?? 0) + 1
    }
    this.#store(next)
    return true
  }

  #store(object: LocalObject): void {
    this.#version++
    object.metadata = { ...object.metadata, resourceVersion: String(this.#version) }
    this.#objects.set(objectKey(object), object)
  }

  #remove(object: LocalObject): void {
    this.#version++
    this.#objects.delete(objectKey(object))
    for (const child of this.childrenOf(object)) this.#remove(child)
  }

  #timestamp(): string {
    return `${this.#now().toISOString().slice(0, 19)}Z`
  }
}

function ownerUid(object: LocalObject): string | undefined {
  return object.metadata.ownerReferences?.find((owner) => owner.controller)?.uid
}

function ownerReference(parent: LocalObject) {
  const { apiVersion, kind, metadata } = parent
  return {
    apiVersion,
    kind,
    name: metadata.name,
    uid: metadata.uid ?? '',
    controller: true,
    blockOwnerDeletion: true,
  }
}

/** Groups objects as in a v2 hook request. Kinds in `always` appear even when they are empty. */
function groups(
  objects: readonly LocalObject[],
  always: readonly { readonly apiVersion: string; readonly kind: string }[] = [],
): Record<string, Record<string, LocalObject>> {
  const result: Record<string, Record<string, LocalObject>> = {}
  for (const kind of always) result[groupKey(kind)] = {}
  for (const object of objects) {
    const group = (result[groupKey(object)] ??= {})
    group[namespacedName(object)] = cloneJson(object)
  }
  return result
}

export interface LocalHooks {
  readonly hooks: Hooks
  /** Validates objects as the webhook does, except for rules that apply only to pods. */
  readonly validate: ValidateResource
}

export async function localHooks(): Promise<LocalHooks> {
  const { hookSettings, makeHooks, validateResource } = await import('../../../../hooks/index.ts')
  const settings = hookSettings({ runtimeImage, version, localCommands: true, allowLoopback: true })
  return { hooks: makeHooks(settings), validate: (doc) => validateResource(doc, { settings }) }
}
