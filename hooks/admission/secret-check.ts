/**
 * Checks references to Secrets and ConfigMaps against the given manifests. Secrets usually exist only on the cluster,
 * so a missing Secret is listed as unchecked. If a given object has a similar name, the check returns a warning.
 */
import { below, formatViolations, nearest, type Violation } from '../../schemas/index.ts'
import { fieldsOf, type KubeObject } from '../base/kube.ts'

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

/** Fields that refer to a ConfigMap by `name`, usually together with a `key`. */
const configMapField = /^configMap(Ref)?$/
const secretField = /^(secrets|imagePullSecrets|.*[sS]ecret(Key)?Refs?|passwordRef|initialAccessTokenRef)$/
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
  for (const { path, kind, name, key } of secretReferences(spec)) {
    const quoted = `${kind} ${JSON.stringify(name)}`
    const objects = given(kind)
    const object = objects.find(({ metadata }) => metadata.name === name)
    if (object) {
      const isMissing = typeof key === 'string' && key !== '' && !mayHaveKey(object, key)
      const message = `${quoted} has no key ${JSON.stringify(key)}`
      if (isMissing) violations.push({ path: below(path, 'key'), message })
      continue
    }
    const similar = nearest(
      name,
      objects.map(({ metadata }) => metadata.name),
    )
    const message = `${quoted} is not among the given files; did you mean "${similar}"?`
    if (similar === undefined) unchecked.push({ kind, name })
    else warnings.push(formatViolations([{ path: below(path, 'name'), message }]))
  }
  return { violations, warnings, unchecked }
}

interface Reference extends Unchecked {
  readonly path: string
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
  const { name, key } = fieldsOf(value)
  const kind = configMapField.test(field) ? 'ConfigMap' : secretField.test(field) ? 'Secret' : undefined
  return [
    ...(kind !== undefined && typeof name === 'string' && name !== ''
      ? [{ path, kind, name, key } as const]
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
