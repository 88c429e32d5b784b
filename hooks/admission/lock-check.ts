/** Checks that an MCPToolLock names a backend of the given manifests. A lock for another backend protects nothing. */
import { formatViolations } from '../../schemas/index.ts'
import { type Fields, fieldsOf, isFields, type KubeObject, listOf } from '../base/kube.ts'
import { memberKinds } from '../references/members.ts'

/**
 * Returns warnings instead of errors, because the backend may be on the cluster. Returns no warnings if the manifests
 * contain no backends.
 */
export function lockWarnings(
  object: Fields,
  given: (kind: string) => readonly KubeObject[],
): readonly string[] {
  if (object['kind'] !== 'MCPToolLock') return []
  const { kind, name } = fieldsOf(fieldsOf(object['spec'])['backendRef'])
  if (typeof kind !== 'string' || typeof name !== 'string') return []
  const members = memberKinds.flatMap((memberKind) =>
    given(memberKind).map(({ metadata }) => ({ kind: memberKind as string, name: metadata.name })),
  )
  const inline = given('VirtualMCPServer')
    .flatMap(({ spec }) => listOf(fieldsOf(fieldsOf(spec)['config'])['backends']))
    .filter(isFields)
    .flatMap((backend) => (typeof backend['name'] === 'string' ? [backend['name']] : []))
  const backends = [...members, ...inline.map((backend) => ({ kind: 'Backend', name: backend }))]
  const named = backends.filter((backend) => backend.name === name)
  if (backends.length === 0 || named.some((backend) => backend.kind === kind)) return []
  const [other] = named
  const message = other
    ? `the lock does not apply to ${other.kind} ${JSON.stringify(name)}; set kind to ${other.kind}`
    : `${kind} ${JSON.stringify(name)} is not among the given files; without this backend, the lock has no effect`
  return [formatViolations([{ path: 'spec.backendRef', message }])]
}
