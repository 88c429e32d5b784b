/**
 * Keys of Secrets and ConfigMaps that a spec names, as far as the objects are among the given manifests. One that is not
 * given is on the cluster, which is where Secrets belong: nothing is said about it.
 */
import { below, type Violation } from '../../schemas/index.ts'
import { fieldsOf, type KubeObject } from '../kube.ts'

/** A field that holds `name` and `key` of such an object. */
const reference = /^(configMapRef|.*[sS]ecret(Key)?Refs?|passwordRef|initialAccessTokenRef)$/
const maxDepth = 12

export function missingKeys(
  spec: unknown,
  given: (kind: string) => readonly KubeObject[],
): readonly Violation[] {
  return keysIn(spec, 'spec', '', maxDepth, given)
}

function keysIn(
  value: unknown,
  path: string,
  field: string,
  depth: number,
  given: (kind: string) => readonly KubeObject[],
): readonly Violation[] {
  if (depth === 0 || field === 'podTemplateSpec') return []
  if (Array.isArray(value)) {
    return value.flatMap((item, i) => keysIn(item, below(path, i), field, depth - 1, given))
  }
  const { name, key } = fieldsOf(value)
  const kind = field === 'configMapRef' ? 'ConfigMap' : 'Secret'
  const object = reference.test(field)
    ? given(kind).find(({ metadata }) => metadata.name === name)
    : undefined
  const isMissing = object !== undefined && typeof key === 'string' && key !== '' && !hasKey(object, key)
  const message = `${kind} ${JSON.stringify(name)} has no key ${JSON.stringify(key)}`
  return [
    ...(isMissing ? [{ path: below(path, 'key'), message }] : []),
    ...Object.entries(fieldsOf(value)).flatMap(([inner, item]) =>
      keysIn(item, below(path, inner), inner, depth - 1, given),
    ),
  ]
}

function hasKey(object: KubeObject, key: string): boolean {
  return ['data', 'stringData', 'binaryData'].some((member) => Object.hasOwn(fieldsOf(object[member]), key))
}
