/**
 * Checks references in manifests offline: references to other Gatehouse objects in the same namespace, to a virtual
 * server's backends, and to OpenAPI documents. Also checks that tool locks name an existing backend. The check reads
 * only the given manifests. A dangling reference is an error when the manifests contain other objects of that kind.
 * Otherwise, it is reported as a warning, because the object may already be on the cluster.
 *
 * Documents do not have to be valid.
 */
import { below, formatViolations, type KindName, nearest, type Violation } from '../../schemas/index.ts'
import { type Fields, fieldsOf, isFields, type KubeObject, listOf } from '../base/kube.ts'
import { kindOfField } from '../kinds/referrers.ts'
import { documentFindings } from './document-check.ts'
import { lockWarnings } from './lock-check.ts'
import { foreignFields, secretFindings, secretReferences, type Unchecked } from './secret-check.ts'
import {
  unknownBackendsOf,
  unknownPolicyBackends,
  unknownWebhookBackends,
} from '../references/backend-names.ts'
import { groupMembers } from '../references/members.ts'

export interface ReferenceFindings {
  readonly violations: readonly Violation[]
  readonly warnings: readonly string[]
  /** Referenced Secrets and ConfigMaps that are missing from the given manifests. */
  readonly unchecked: readonly Unchecked[]
}

/** Maximum depth of the search for references. References are nested at most five levels deep. */
const maxDepth = 10

/** Returns a function that checks one document against all given documents. */
export function referenceCheck(docs: readonly unknown[]): (doc: unknown) => ReferenceFindings {
  const objects = docs.map(fieldsOf).filter(isNamed)
  const inNamespace = (namespace: string) => (kind: string) =>
    objects.filter((object) => object.kind === kind && namespaceOf(object) === namespace)
  return (doc) => {
    const object = fieldsOf(doc)
    const given = inNamespace(namespaceOf(object))
    const findings = referencesIn(object['spec'], 'spec', maxDepth).map((reference) =>
      findingOf(
        reference,
        given(reference.kind).map(({ metadata }) => metadata.name),
      ),
    )
    const named = findings.flatMap(({ violation }) => violation ?? [])
    const warnings = findings.flatMap(({ warning }) => warning ?? [])
    const names = object['kind'] === 'VirtualMCPServer' ? backendViolations(object, given) : []
    const secrets = secretFindings(object['spec'], given)
    const documents = documentFindings(object, given)
    return {
      violations: [...named, ...secrets.violations, ...documents.violations, ...names],
      warnings: [
        ...warnings,
        ...webhookWarnings(object, given),
        ...policyWarnings(object, given),
        ...lockWarnings(object, given),
        ...secrets.warnings,
        ...documents.warnings,
      ],
      unchecked: secrets.unchecked,
    }
  }
}

function isNamed(doc: Fields): doc is Fields & KubeObject {
  return typeof doc['kind'] === 'string' && typeof fieldsOf(doc['metadata'])['name'] === 'string'
}

function namespaceOf(doc: Fields): string {
  const { namespace } = fieldsOf(doc['metadata'])
  return typeof namespace === 'string' && namespace !== '' ? namespace : 'default'
}

/** An object that a spec refers to by name. */
export interface SpecReference {
  readonly kind: KindName | 'Secret' | 'ConfigMap'
  readonly name: string
}

/** Lists the references in a spec without duplicates, in spec order. The spec does not have to be valid. */
export function referencesOf(spec: unknown): readonly SpecReference[] {
  const all = [...referencesIn(spec, 'spec', maxDepth), ...secretReferences(spec)]
  return [...new Map(all.map(({ kind, name }) => [`${kind}/${name}`, { kind, name }])).values()]
}

interface Reference {
  readonly path: string
  readonly kind: KindName
  readonly name: string
}

function referencesIn(value: unknown, path: string, depth: number): readonly Reference[] {
  if (depth === 0) return []
  if (Array.isArray(value)) {
    return value.flatMap((item, i) => referencesIn(item, below(path, i), depth - 1))
  }
  return Object.entries(fieldsOf(value)).flatMap(([field, inner]) => {
    if (foreignFields.has(field)) return []
    const at = below(path, field)
    const kind = kindOfField.get(field)
    if (kind === undefined) return referencesIn(inner, at, depth - 1)
    return Array.isArray(inner)
      ? inner.flatMap((item, i) => referenceTo(kind, item, below(at, i)))
      : referenceTo(kind, inner, at)
  })
}

function referenceTo(kind: KindName, value: unknown, path: string): readonly Reference[] {
  const { name } = fieldsOf(value)
  return typeof name === 'string' && name !== '' ? [{ kind, name, path: below(path, 'name') }] : []
}

function findingOf({ path, kind, name }: Reference, given: readonly string[]) {
  if (given.includes(name)) return {}
  const quoted = JSON.stringify(name)
  if (given.length === 0) {
    const message = `${kind} ${quoted} is not among the given files; it must be on the cluster`
    return { warning: formatViolations([{ path, message }]) }
  }
  const similar = nearest(name, given)
  const guess = similar === undefined ? '' : `; did you mean "${similar}"?`
  return { violation: { path, message: `${kind} ${quoted} is not among the given files${guess}` } }
}

function backendViolations(
  server: Fields,
  given: (kind: string) => readonly KubeObject[],
): readonly Violation[] {
  const known = knownBackends(server, given)
  if (known.length === 0) return []
  const spec = fieldsOf(server['spec'])
  const definitions = given('VirtualMCPCompositeToolDefinition')
  return unknownBackendsOf(
    { outgoingAuth: spec['outgoingAuth'], config: fieldsOf(spec['config']) },
    known,
    (name) => definitions.find(({ metadata }) => metadata.name === name),
  )
}

/** Returns warnings instead of errors, because other servers may share the MCPWebhookConfig. */
function webhookWarnings(server: Fields, given: (kind: string) => readonly KubeObject[]): readonly string[] {
  const known =
    server['kind'] === 'VirtualMCPServer'
      ? knownBackends(server, given)
      : [fieldsOf(server['metadata'])['name']]
  const names = known.filter((name) => typeof name === 'string')
  if (names.length === 0) return []
  const configs = given('MCPWebhookConfig')
  const find = (name: string) => configs.find(({ metadata }) => metadata.name === name)
  const unknown = unknownWebhookBackends(fieldsOf(server['spec'])['webhookConfigRef'], names, find)
  return unknown.map((violation) => formatViolations([violation]))
}

/** Returns warnings instead of errors, because a policy may refer to a backend that will be added later. */
function policyWarnings(server: Fields, given: (kind: string) => readonly KubeObject[]): readonly string[] {
  const known = server['kind'] === 'VirtualMCPServer' ? knownBackends(server, given) : []
  if (known.length === 0) return []
  return unknownPolicyBackends(fieldsOf(server['spec']), known).map((violation) =>
    formatViolations([violation]),
  )
}

/** Returns an empty list when none of the group's members are given, because they may all be on the cluster. */
function knownBackends(server: Fields, given: (kind: string) => readonly KubeObject[]): readonly string[] {
  const spec = fieldsOf(server['spec'])
  const group = fieldsOf(spec['groupRef'])['name']
  if (typeof group !== 'string') return []
  const { members } = groupMembers({ members: given }, group)
  if (members.length === 0) return []
  const isInline = fieldsOf(spec['outgoingAuth'])['source'] === 'inline'
  const backends = isInline ? listOf(fieldsOf(spec['config'])['backends']).filter(isFields) : []
  return [...members, ...backends].flatMap(({ name }) => (typeof name === 'string' ? [name] : []))
}
