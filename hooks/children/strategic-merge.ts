/**
 * Merges a user's pod template into a generated one (strategic merge). Merges containers, environment variables,
 * volumes, mounts and ports item by item, with the merge keys that Kubernetes declares. Replaces all other lists.
 *
 * Directives: `$patch: delete` removes a list item or an object. `$patch: replace` replaces the generated object, or
 * the list that contains the item, with the remaining fields or items. Null removes a field. The result contains no
 * nulls and no directives, and no newly empty lists or objects.
 * Source: Kubernetes "Strategic Merge Patch"; merge keys of core/v1 PodSpec.
 */
import { own } from '../../schemas/index.ts'
import { type Fields, fieldsOf, isFields } from '../base/kube.ts'

/**
 * Merge keys for each list, by list name. In a pod template, `ports` occurs only in containers, so no other key is
 * needed.
 */
const mergeKeys: Readonly<Record<string, readonly string[]>> = {
  containers: ['name'],
  initContainers: ['name'],
  ephemeralContainers: ['name'],
  volumes: ['name'],
  env: ['name'],
  imagePullSecrets: ['name'],
  volumeMounts: ['mountPath'],
  volumeDevices: ['devicePath'],
  ports: ['containerPort', 'protocol'],
  hostAliases: ['ip'],
  topologySpreadConstraints: ['topologyKey', 'whenUnsatisfiable'],
  resourceClaims: ['name'],
  ownerReferences: ['uid'],
}

const defaults: Readonly<Record<string, unknown>> = { protocol: 'TCP' }

const directive = '$patch'

/** Maximum nesting depth. A real pod template is about twelve levels deep. */
const maxDepth = 40

/** Merges `patch` into a copy of `base`. */
export function strategicMerge(base: Fields, patch: Fields, depth = 0): Fields {
  if (depth > maxDepth) return base
  if (patch[directive] === 'delete') return {}
  if (patch[directive] === 'replace') return fieldsWithoutNulls(patch)
  const merged = new Map<string, unknown>(Object.entries(base))
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith('$')) continue
    const before = own(base, key)
    const next = mergeValue(key, before, value, depth + 1)
    if (next === undefined) merged.delete(key)
    else merged.set(key, next)
  }
  return Object.fromEntries(merged)
}

function mergeValue(key: string, before: unknown, value: unknown, depth: number): unknown {
  if (value === null || value === undefined) return undefined
  if (Array.isArray(value)) return mergeList(key, Array.isArray(before) ? before : [], value, depth)
  if (!isFields(value)) return value
  if (value[directive] === 'delete') return undefined
  return isFields(before) ? strategicMerge(before, value, depth) : fieldsWithoutNulls(value)
}

function mergeList(
  key: string,
  before: readonly unknown[],
  patch: readonly unknown[],
  depth: number,
): unknown {
  const keys = own(mergeKeys, key)
  const replaces = patch.some((item) => isFields(item) && item[directive] === 'replace')
  const items = patch.filter((item) => !(isFields(item) && item[directive] === 'replace'))
  if (!keys || replaces) return items.map(withoutNulls)
  const result: unknown[] = [...before]
  for (const item of items) {
    if (!isFields(item)) {
      result.push(item)
      continue
    }
    const at = result.findIndex((entry) => isFields(entry) && sameKey(entry, item, keys))
    if (item[directive] === 'delete') {
      if (at >= 0) result.splice(at, 1)
    } else if (at >= 0) result[at] = strategicMerge(fieldsOf(result[at]), item, depth)
    else result.push(fieldsWithoutNulls(item))
  }
  return result.length > 0 || before.length === 0 ? result : undefined
}

function sameKey(a: Fields, b: Fields, keys: readonly string[]): boolean {
  return keys.every((key) => (a[key] ?? defaults[key]) === (b[key] ?? defaults[key]))
}

function fieldsWithoutNulls(value: Fields): Fields {
  const rest = Object.entries(value).filter(
    ([key, item]) => item !== null && item !== undefined && !key.startsWith('$'),
  )
  return Object.fromEntries(rest.map(([key, item]) => [key, withoutNulls(item)]))
}

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value))
    return value.filter((item) => item !== null && item !== undefined).map(withoutNulls)
  return isFields(value) ? fieldsWithoutNulls(value) : value
}
