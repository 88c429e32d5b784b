/**
 * The protocol between Metacontroller and the hooks (CompositeController, hooks v2): request and response types, and
 * the parser for untrusted request bodies.
 *
 * Does not inspect specs, which each kind validates.
 * Source: Metacontroller CompositeController API, `version: v2` (maps of related and children objects are keyed
 * `namespace/name`).
 */
import { GatehouseError, byText } from '../../schemas/index.ts'
import { type Fields, isFields, type KubeObject } from '../base/kube.ts'

/** Objects, keyed by group key (`Kind.group/version`, or `Kind.version` for core kinds) and sorted by name. */
export type ObjectGroups = ReadonlyMap<string, readonly KubeObject[]>

export interface CustomizeRequest {
  readonly parent: KubeObject
}

export interface SyncRequest {
  readonly parent: KubeObject
  /** Objects that the parent controls, keyed by group key and sorted by name. */
  readonly children: ObjectGroups
  /** Objects that a related rule selected in the parent's namespace, sorted by name. */
  readonly related: ObjectGroups
  readonly finalizing: boolean
}

interface RelatedResource {
  readonly apiVersion: string
  /** Plural resource name, in lowercase. */
  readonly resource: string
}

export interface NamespaceRule extends RelatedResource {
  readonly namespace: string
  /**
   * Names of the objects. Omit this list to select every object in the namespace. An empty list would also select every
   * object, so the list is never empty.
   */
  readonly names?: readonly string[]
  readonly labelSelector?: never
}

/** Selects by label in all namespaces. The request parser skips objects from other namespaces. */
interface LabelRule extends RelatedResource {
  readonly labelSelector: { readonly matchLabels: Readonly<Record<string, string>> }
  readonly namespace?: never
  readonly names?: never
}

/**
 * A rule has either a selector or a namespace. If a rule has both, Metacontroller rejects it, and the whole sync fails.
 */
export type RelatedRule = NamespaceRule | LabelRule

export interface CustomizeResponse {
  readonly relatedResources: readonly RelatedRule[]
}

export interface SyncResponse {
  /** Replaces the parent's whole status. */
  readonly status: Fields
  /** All desired children. Metacontroller deletes owned children that this list omits. */
  readonly children: readonly KubeObject[]
}

/** A Kubernetes Event that a parent's state requires. */
export interface HookEvent {
  readonly parent: KubeObject
  readonly type: 'Warning' | 'Normal'
  readonly reason: string
  readonly message: string
}

const nameForm = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/

/** Reads the body of a customize call. Throws GatehouseError BAD_REQUEST, which names the invalid field. */
export function readCustomizeRequest(body: unknown, kind: string): CustomizeRequest {
  return { parent: readParent(envelope(body)['parent'], kind) }
}

/** Reads the body of a sync call. Throws GatehouseError BAD_REQUEST, which names the invalid field. */
export function readSyncRequest(body: unknown, kind: string): SyncRequest {
  const fields = envelope(body)
  const parent = readParent(fields['parent'], kind)
  return {
    parent,
    children: readGroups(fields['children'], 'children', parent),
    related: readGroups(fields['related'], 'related', parent),
    finalizing: fields['finalizing'] === true,
  }
}

/** Returns the object with this name from a group. */
export function findByName(groups: ObjectGroups, group: string, name: string): KubeObject | undefined {
  const objects = groups.get(group)
  if (!objects) return undefined
  let byName = indexes.get(objects)
  if (!byName) {
    byName = new Map(objects.toReversed().map((object) => [object.metadata.name, object]))
    indexes.set(objects, byName)
  }
  return byName.get(name)
}

/** A lazily created index of each group, by name. If several objects share a name, the index contains the first. */
const indexes = new WeakMap<readonly KubeObject[], ReadonlyMap<string, KubeObject>>()

/** Returns `Kind.group/version`, or `Kind.version` for core kinds. */
export function groupKey(object: { readonly apiVersion: string; readonly kind: string }): string {
  return `${object.kind}.${object.apiVersion}`
}

function envelope(body: unknown): Fields {
  if (!isFields(body)) throw malformed('the request body must be a JSON object')
  return body
}

function readParent(value: unknown, kind: string): KubeObject {
  if (!isObject(value)) throw malformed('parent: must be an object with apiVersion, kind and metadata.name')
  if (value.kind !== kind) throw malformed(`parent.kind: must be ${kind}`)
  if (!nameForm.test(value.metadata.name)) throw malformed('parent.metadata.name: must be a DNS subdomain')
  if (value.metadata.namespace === undefined) throw malformed('parent.metadata.namespace: required')
  return value
}

/**
 * Skips objects in other namespaces, because references never leave the parent's namespace. Also skips entries that are
 * not objects.
 */
function readGroups(value: unknown, member: string, parent: KubeObject): ObjectGroups {
  if (value === undefined || value === null) return new Map()
  if (!isFields(value)) throw malformed(`${member}: must be an object`)
  const groups = new Map<string, readonly KubeObject[]>()
  for (const [group, entries] of Object.entries(value)) {
    if (entries === null || entries === undefined) continue
    if (!isFields(entries)) throw malformed(`${member}: each kind must contain an object`)
    const objects = Object.values(entries)
      .filter(isObject)
      .filter((object) => groupKey(object) === group)
      .filter((object) => object.metadata.namespace === parent.metadata.namespace)
    groups.set(
      group,
      objects.sort((a, b) => byText(a.metadata.name, b.metadata.name)),
    )
  }
  return groups
}

const textMembers = ['namespace', 'uid', 'resourceVersion', 'creationTimestamp', 'deletionTimestamp'] as const

function isObject(value: unknown): value is KubeObject {
  if (!isFields(value) || typeof value['apiVersion'] !== 'string' || typeof value['kind'] !== 'string')
    return false
  const metadata = value['metadata']
  if (!isFields(metadata) || typeof metadata['name'] !== 'string') return false
  if (!textMembers.every((key) => metadata[key] === undefined || typeof metadata[key] === 'string'))
    return false
  if (metadata['generation'] !== undefined && !isCount(metadata['generation'])) return false
  if (!isStringMap(metadata['labels']) || !isStringMap(metadata['annotations'])) return false
  return isOwnerList(metadata['ownerReferences'])
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

function isStringMap(value: unknown): boolean {
  return (
    value === undefined || (isFields(value) && Object.values(value).every((item) => typeof item === 'string'))
  )
}

function isOwnerList(value: unknown): boolean {
  return value === undefined || (Array.isArray(value) && value.every(isFields))
}

function malformed(detail: string): GatehouseError {
  return new GatehouseError('BAD_REQUEST', { detail })
}
