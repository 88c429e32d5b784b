/**
 * A small world for hook tests: objects in a map, and a sync like Metacontroller v2's. Requests have the wire format.
 * Responses are applied by three-way merge with the last-applied annotation, and the status replaces the previous one.
 * The world has no clock: each write is stamped with the number of writes so far.
 */
import { createHash } from 'node:crypto'
import {
  makeHooks,
  type HookSettings,
  hookSettings,
  type RelatedRule,
  type SyncResponse,
} from '../../hooks/index.ts'
import { withDefaults } from '../../schemas/index.ts'

/** A condition of a status. */
export interface Condition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
}

export interface Stored {
  apiVersion: string
  kind: string
  metadata: Record<string, unknown> & { name: string; namespace: string }
  [field: string]: unknown
}

const apiVersion = 'gatehouse.dev/v1beta1'
const lastApplied = 'metacontroller.k8s.io/last-applied-configuration'

export const testSettings: HookSettings = hookSettings({
  runtimeImage: 'registry.example/gatehouse:1.2.3',
  version: '1.2.3',
})

/** Returns a Gatehouse manifest in namespace `team`. */
export function resource(kind: string, name: string, spec: unknown, more: Record<string, unknown> = {}) {
  return { apiVersion, kind, metadata: { name, namespace: 'team', ...more }, spec } as unknown as Stored
}

export function secret(name: string, data: Record<string, string>): Stored {
  const encoded = Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')])
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: 'team' },
    data: Object.fromEntries(encoded),
  }
}

export function configMap(name: string, data: Record<string, string>): Stored {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'team' }, data }
}

export class World {
  readonly objects = new Map<string, Stored>()
  /** Number of writes so far. A world is settled when a round adds none. */
  #writes = 0
  readonly hooks: ReturnType<typeof makeHooks>

  constructor(settings: HookSettings = testSettings) {
    this.hooks = makeHooks(settings)
  }

  /** Returns a world with the same objects. Later changes of one do not affect the other. */
  copy(): World {
    const copy = new World(this.hooks.settings)
    for (const [key, object] of this.objects) copy.objects.set(key, structuredClone(object))
    copy.#writes = this.#writes
    return copy
  }

  /** Creates or replaces objects. Gatehouse objects get their defaults, as on an API server. */
  apply(...objects: Stored[]): this {
    for (const given of objects) {
      const object = given.apiVersion === apiVersion ? (withDefaults(given) as unknown as Stored) : given
      const before = this.objects.get(keyOf(object))
      this.#write(
        structuredClone({ ...object, ...(before?.['status'] !== undefined && { status: before['status'] }) }),
      )
    }
    return this
  }

  get(kind: string, name: string): Stored {
    const found = this.find(kind, name)
    if (!found) throw new Error(`there is no ${kind} ${name}`)
    return found
  }

  find(kind: string, name: string): Stored | undefined {
    return [...this.objects.values()].find((object) => object.kind === kind && object.metadata.name === name)
  }

  list(kind: string): Stored[] {
    return [...this.objects.values()].filter((object) => object.kind === kind)
  }

  remove(kind: string, name: string): this {
    this.objects.delete(keyOf(this.get(kind, name)))
    return this
  }

  setStatus(kind: string, name: string, status: unknown): this {
    this.#write({ ...this.get(kind, name), status })
    return this
  }

  /** Sets the data that a pod writes into a ConfigMap. */
  setData(name: string, data: Record<string, string>): this {
    this.#write({ ...this.get('ConfigMap', name), data })
    return this
  }

  /** Returns the sync request for one parent, as Metacontroller would send it. */
  request(kind: string, name: string): Record<string, unknown> {
    const hook = this.#hook(kind)
    const parent = structuredClone(this.get(kind, name))
    const { relatedResources } = hook.customize({ controller: {}, parent })
    const related: Record<string, Record<string, Stored>> = {}
    for (const rule of relatedResources) {
      for (const object of this.objects.values()) {
        if (object.apiVersion !== rule.apiVersion || pluralOf(object.kind) !== rule.resource) continue
        if (!selects(rule, object, parent.metadata.namespace)) continue
        const group = (related[`${object.kind}.${object.apiVersion}`] ??= {})
        group[`${object.metadata.namespace}/${object.metadata.name}`] = structuredClone(object)
      }
    }
    const children: Record<string, Record<string, Stored>> = {}
    for (const child of hook.childKinds) children[`${child.kind}.${child.apiVersion}`] = {}
    for (const object of this.#childrenOf(parent)) {
      const group = children[`${object.kind}.${object.apiVersion}`]
      if (group) group[`${object.metadata.namespace}/${object.metadata.name}`] = structuredClone(object)
    }
    return { controller: {}, parent, children, related, finalizing: false }
  }

  /** Syncs one parent and applies the response. Returns the response. */
  sync(kind: string, name: string): SyncResponse {
    const response = this.#hook(kind).sync(this.request(kind, name))
    this.#applyAnswer(this.get(kind, name), response)
    return response
  }

  /** Syncs all objects until nothing changes. Throws when the world does not settle. */
  settle(): this {
    for (let round = 0; round < 20; round++) {
      const before = this.#writes
      for (const object of this.objects.values().toArray()) {
        if (object.apiVersion === apiVersion) this.sync(object.kind, object.metadata.name)
      }
      if (this.#writes === before) return this
    }
    throw new Error('the hooks do not come to rest')
  }

  /** Makes every workload ready, and settles. */
  ready(): this {
    for (let round = 0; round < 5; round++) {
      this.settle()
      const before = this.#writes
      for (const object of [...this.list('Deployment'), ...this.list('StatefulSet')]) {
        const replicas = (object['spec'] as { replicas?: number }).replicas ?? 1
        this.setStatus(object.kind, object.metadata.name, {
          observedGeneration: object.metadata['generation'],
          replicas,
          updatedReplicas: replicas,
          readyReplicas: replicas,
          availableReplicas: replicas,
        })
      }
      if (this.#writes === before) return this
    }
    return this.settle()
  }

  #hook(kind: string) {
    const hook = this.hooks.byKind(kind)
    if (!hook) throw new Error(`no hook for ${kind}`)
    return hook
  }

  #applyAnswer(parent: Stored, { status, children }: SyncResponse): void {
    const wanted = new Set<string>()
    for (const child of children as unknown as Stored[]) {
      const key = keyOf(child)
      wanted.add(key)
      const live = this.objects.get(key)
      if (live && ownerOf(live) !== parent.metadata['uid']) continue
      this.#write(this.#merged(live, child, parent))
    }
    for (const child of this.#childrenOf(parent))
      if (!wanted.has(keyOf(child))) this.objects.delete(keyOf(child))
    this.#write({ ...this.get(parent.kind, parent.metadata.name), status: structuredClone(status) })
  }

  #merged(live: Stored | undefined, child: Stored, parent: Stored): Stored {
    const text = (live?.metadata['annotations'] as Record<string, string> | undefined)?.[lastApplied]
    const before = text === undefined ? {} : (JSON.parse(text) as Record<string, unknown>)
    const merged = threeWay(live ?? {}, before, child) as Stored
    merged.metadata['annotations'] = {
      ...(merged.metadata['annotations'] as object),
      [lastApplied]: JSON.stringify(child),
    }
    merged.metadata['ownerReferences'] ??= [
      {
        apiVersion: parent.apiVersion,
        kind: parent.kind,
        name: parent.metadata.name,
        uid: parent.metadata['uid'],
        controller: true,
      },
    ]
    return merged
  }

  #childrenOf(parent: Stored): Stored[] {
    return [...this.objects.values()].filter((object) => ownerOf(object) === parent.metadata['uid'])
  }

  #write(object: Stored): void {
    const key = keyOf(object)
    const live = this.objects.get(key)
    const { resourceVersion: _, ...metadata } = object.metadata
    const generation = live?.metadata['generation'] as number | undefined
    const changed = JSON.stringify(live?.['spec']) !== JSON.stringify(object['spec'])
    const next = {
      ...object,
      metadata: {
        ...metadata,
        uid: live?.metadata['uid'] ?? `uid-${object.kind}-${object.metadata.name}`,
        generation: generation === undefined ? 1 : generation + (changed ? 1 : 0),
        creationTimestamp: live?.metadata['creationTimestamp'] ?? timeOf(key),
      },
    }
    const { resourceVersion: version, ...before } = (live?.metadata ?? {}) as Record<string, unknown>
    if (live && same({ ...live, metadata: before }, next)) return
    this.#writes += 1
    this.objects.set(key, {
      ...next,
      metadata: { ...next.metadata, resourceVersion: String(Number(version ?? numberOf(key) * 100) + 1) },
    })
  }
}

/**
 * Versions and times are derived from kind and name, so that an additional object in a scenario does not change other
 * objects. The n-th write of an object has the n-th version after its first.
 */
function numberOf(key: string): number {
  return createHash('sha256').update(key).digest().readUInt16BE(0)
}

function timeOf(key: string): string {
  return `${new Date(Date.UTC(2026, 0, 1) + numberOf(key) * 1000).toISOString().slice(0, 19)}Z`
}

function keyOf({ apiVersion, kind, metadata }: Stored): string {
  return `${apiVersion} ${kind} ${metadata.namespace}/${metadata.name}`
}

function ownerOf(object: Stored): unknown {
  const owners = object.metadata['ownerReferences'] as { uid: string; controller?: boolean }[] | undefined
  return owners?.find((owner) => owner.controller)?.uid
}

/** Matches like Metacontroller, which rejects a selector combined with a namespace or names. */
function selects(
  { namespace, names, labelSelector }: RelatedRule,
  { metadata }: Stored,
  parentNamespace: string,
): boolean {
  if (labelSelector && (namespace !== undefined || names !== undefined))
    throw new Error('related rule cannot have both labelSelector and Namespace/Names')
  if (metadata.namespace !== (namespace ?? parentNamespace)) return false
  const labels = (metadata['labels'] ?? {}) as Record<string, string>
  const wanted = Object.entries(labelSelector?.matchLabels ?? {})
  return (
    (names === undefined || names.includes(metadata.name)) &&
    wanted.every(([label, value]) => labels[label] === value)
  )
}

function pluralOf(kind: string): string {
  const irregular: Record<string, string> = {
    MCPRemoteProxy: 'mcpremoteproxies',
    MCPServerEntry: 'mcpserverentries',
    NetworkPolicy: 'networkpolicies',
    Ingress: 'ingresses',
  }
  return irregular[kind] ?? `${kind.toLowerCase()}s`
}

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(sorted(a)) === JSON.stringify(sorted(b))
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(([, item]) => item !== undefined)
  return Object.fromEntries(
    entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, item]) => [key, sorted(item)]),
  )
}

type Json = Record<string, unknown>

function threeWay(live: Json, before: Json, desired: Json): Json {
  const result: Json = structuredClone(live)
  for (const key of Object.keys(before)) if (!(key in desired)) delete result[key]
  for (const [key, value] of Object.entries(desired)) {
    const isMap = typeof value === 'object' && value !== null && !Array.isArray(value)
    result[key] = isMap
      ? threeWay((result[key] ?? {}) as Json, (before[key] ?? {}) as Json, value as Json)
      : structuredClone(value)
  }
  return result
}
