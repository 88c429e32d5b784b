/**
 * Checks references to Secrets and ConfigMaps against the given manifests. Secrets usually exist only on the cluster,
 * so a missing Secret is listed as unchecked. If a given object has a similar name, the check returns a warning.
 */
import { below, formatViolations, nearest, type Violation } from '../../schemas/index.ts'
import { fieldsOf, type KubeObject } from '../base/kube.ts'
import { objectKindOf } from '../references/secret-names.ts'

/** A referenced object that is missing from the given manifests. */
export interface Unchecked {
  readonly kind: 'Secret' | 'ConfigMap'
  readonly name: string
}

export interface SecretFindings {
  readonly violations: readonly Violation[]
  readonly warnings: readonly string[]
  readonly unchecked: readonly Unchecked[]
}

/** Fields whose content is not covered by Gatehouse's schemas. */
export const foreignFields: ReadonlySet<string> = new Set(['podTemplateSpec', 'arguments', 'metadata'])
const maxDepth = 12

export function secretFindings(
  spec: unknown,
  given: (kind: string) => readonly KubeObject[],
): SecretFindings {
  const violations: Violation[] = []
  const warnings: string[] = []
  const unchecked: Unchecked[] = []
  for (const { path, keyPath, kind, name, key } of secretReferences(spec)) {
    const quoted = `${kind} ${JSON.stringify(name)}`
    const objects = given(kind)
    const object = objects.find(({ metadata }) => metadata.name === name)
    if (object) {
      const isMissing = typeof key === 'string' && key !== '' && !mayHaveKey(object, key)
      const message = `${quoted} has no key ${JSON.stringify(key)}`
      if (isMissing) violations.push({ path: keyPath, message })
      continue
    }
    const similar = nearest(
      name,
      objects.map(({ metadata }) => metadata.name),
    )
    const message = `${quoted} is not among the given files; did you mean "${similar}"?`
    if (similar === undefined) unchecked.push({ kind, name })
    else warnings.push(formatViolations([{ path, message }]))
  }
  return { violations, warnings, unchecked }
}

interface Reference extends Unchecked {
  /** Path of the name. */
  readonly path: string
  readonly keyPath: string
  readonly key: unknown
}

/** Lists the Secrets and ConfigMaps that a spec refers to. */
export function secretReferences(spec: unknown): readonly Reference[] {
  return referencesIn(spec, 'spec', '', maxDepth)
}

function referencesIn(value: unknown, path: string, field: string, depth: number): readonly Reference[] {
  if (depth === 0 || foreignFields.has(field)) return []
  if (Array.isArray(value)) {
    return value.flatMap((item, i) => referencesIn(item, below(path, i), field, depth - 1))
  }
  const kind = objectKindOf(field)
  const isText = typeof value === 'string'
  const { name = isText ? value : undefined, key, type } = fieldsOf(value)
  // A permission profile is a ConfigMap only if its type is configmap.
  const isNamed = kind !== undefined && typeof name === 'string' && name !== '' && type !== 'builtin'
  return [
    ...(isNamed
      ? [{ path: isText ? path : below(path, 'name'), keyPath: below(path, 'key'), kind, name, key }]
      : []),
    ...Object.entries(fieldsOf(value)).flatMap(([inner, item]) =>
      referencesIn(item, below(path, inner), inner, depth - 1),
    ),
  ]
}

const members = ['data', 'stringData', 'binaryData']

/** Also returns true for an object without data members, because a generator or a controller will fill the object. */
function mayHaveKey(object: KubeObject, key: string): boolean {
  if (!members.some((member) => object[member] !== undefined)) return true
  return members.some((member) => Object.hasOwn(fieldsOf(object[member]), key))
}
