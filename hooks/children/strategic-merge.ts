/**
 * Strategic merge of a user's pod template over a generated one: lists of containers, environment, volumes, mounts and
 * ports are merged item by item, by the keys that Kubernetes declares for them; other lists are replaced whole.
 *
 * Directives: `$patch: delete` removes a list item or an object, `$patch: replace` puts the rest of the object (or of
 * the list that holds the item) in place of the generated value, null removes a member. The result holds no null, no
 * directive, and no empty list or object that was not there before.
 * Source: Kubernetes "Strategic Merge Patch"; merge keys of core/v1 PodSpec.
 */
import { own } from '../../schemas/index.ts'
import { type Fields, fieldsOf, isFields } from '../base/kube.ts'

/** Merge keys by the name of the list. `ports` differs between containers and everything else, but only occurs there. */
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

/** Deepest nesting that is followed; a pod template needs about twelve. */
const maxDepth = 40

/** `patch` over `base`. Neither is changed. */
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
    const at = result.findIndex((other) => isFields(other) && sameKey(other, item, keys))
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
