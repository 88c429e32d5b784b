/**
 * Rebuilds what a field manager applied, from the object and its `metadata.managedFields` (server-side apply).
 *
 * The `fieldsV1` tree names owned members as `f:<name>`, list items as `k:<json of their keys>`, and set members as
 * `v:<json>`; `.` stands for the item itself. The manager's name is Metacontroller's default.
 * Source: Kubernetes API conventions, "Field management".
 */
import { fieldsOf, isFields, type KubeObject, listOf } from '../kube.ts'

const manager = 'metacontroller'

/** The part of the object that Metacontroller applied; undefined when it applied nothing. */
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
  if (Array.isArray(value)) return value.flatMap((item: unknown) => pickItem(item, tree))
  if (!isFields(value)) return value
  return Object.fromEntries(
    steps.flatMap((step) => {
      const name = step.startsWith('f:') ? step.slice(2) : undefined
      if (name === undefined || !Object.hasOwn(value, name)) return []
      return [[name, pick(value[name], fieldsOf(tree[step]))]]
    }),
  )
}

function pickItem(item: unknown, tree: Readonly<Record<string, unknown>>): unknown[] {
  for (const [step, subtree] of Object.entries(tree)) {
    const wanted = parse(step.slice(2))
    if (step.startsWith('v:') && wanted === item) return [item]
    if (step.startsWith('k:') && isFields(item) && isFields(wanted) && matches(item, wanted)) {
      return [pick(item, fieldsOf(subtree))]
    }
  }
  return []
}

function matches(item: Readonly<Record<string, unknown>>, keys: Readonly<Record<string, unknown>>): boolean {
  return Object.entries(keys).every(([key, value]) => item[key] === value)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
