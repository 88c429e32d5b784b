/**
 * Reconstructs the fields that a manager applied, from the object and its `metadata.managedFields` (server-side apply).
 *
 * In the `fieldsV1` tree, `f:<name>` is an owned field, `k:<json of its keys>` is a list item, `v:<json>` is a set
 * member, and `.` is the item itself. The manager's name is Metacontroller's default.
 * Source: Kubernetes API conventions, "Field management".
 */
import { parseEmbeddedJson } from '../base/json-bounds.ts'
import { fieldsOf, isFields, type KubeObject, listOf } from '../base/kube.ts'

const manager = 'metacontroller'

/** Returns the part of the object that Metacontroller applied; undefined when it applied nothing. */
export function ownedFields(object: KubeObject): KubeObject | undefined {
  const entries = listOf(fieldsOf(object.metadata)['managedFields']).filter(isFields)
  const entry = entries.find(
    (item) =>
      item['manager'] === manager && item['operation'] === 'Apply' && item['subresource'] === undefined,
  )
  if (!entry || !isFields(entry['fieldsV1'])) return undefined
  const owned = fieldsOf(pick(object, entry['fieldsV1']))
  const { apiVersion, kind, metadata } = object
  const { ownerReferences: _, ...ownedMetadata } = fieldsOf(owned['metadata'])
  const { name, namespace } = metadata
  return {
    ...owned,
    apiVersion,
    kind,
    metadata: { ...ownedMetadata, name, ...(namespace !== undefined && { namespace }) },
  }
}

function pick(value: unknown, tree: Readonly<Record<string, unknown>>): unknown {
  const steps = Object.keys(tree).filter((step) => step !== '.')
  if (steps.length === 0) return value
  if (Array.isArray(value)) return pickItems(value, tree)
  if (!isFields(value)) return value
  return Object.fromEntries(
    steps.flatMap((step) => {
      const name = step.startsWith('f:') ? step.slice(2) : undefined
      if (name === undefined || !Object.hasOwn(value, name)) return []
      return [[name, pick(value[name], fieldsOf(tree[step]))]]
    }),
  )
}

/**
 * List items that are identified by the same key fields. The map contains their subtrees, keyed by the key values as
 * JSON.
 */
interface Keyed {
  readonly names: readonly string[]
  readonly subtrees: Map<string, unknown>
}

/**
 * Maximum number of key sets. All items of a list use one set of keys, and the API server never writes a tree with many
 * sets.
 */
const maxKeySets = 8

/** Looks up each item in maps, because a list and its tree may both be long. */
function pickItems(items: readonly unknown[], tree: Readonly<Record<string, unknown>>): unknown[] {
  const members = new Set<unknown>()
  const keySets = new Map<string, Keyed>()
  for (const [step, subtree] of Object.entries(tree)) {
    const wanted = parseEmbeddedJson(step.slice(2))
    if (step.startsWith('v:')) members.add(wanted)
    if (!step.startsWith('k:') || !isFields(wanted)) continue
    const names = Object.keys(wanted).sort()
    const signature = JSON.stringify(names)
    const keyed = keySets.get(signature) ?? { names, subtrees: new Map() }
    if (keySets.size < maxKeySets) keySets.set(signature, keyed)
    keyed.subtrees.set(valuesOf(wanted, names), subtree)
  }
  return items.flatMap((item) => {
    if (members.has(item)) return [item]
    if (!isFields(item)) return []
    for (const { names, subtrees } of keySets.values()) {
      const subtree = subtrees.get(valuesOf(item, names))
      if (subtree !== undefined) return [pick(item, fieldsOf(subtree))]
    }
    return []
  })
}

function valuesOf(item: Readonly<Record<string, unknown>>, names: readonly string[]): string {
  return JSON.stringify(names.map((name) => item[name] ?? null))
}
