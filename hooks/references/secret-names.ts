/**
 * Recognizes fields that refer to a Secret or a ConfigMap by the field's name, and finds the names of Secrets and CA
 * bundle ConfigMaps in an unvalidated part of a spec. `customize` needs these names before any validation.
 */
import { isFields, fieldsOf, filledTextOf } from '../base/kube.ts'

/** The shape of a field alone is not enough, because references to other kinds have the same shape. */
const secretField =
  /^(secrets|imagePullSecrets|.*[sS]ecret(Key)?Refs?|.*_secret_ref|.*[sS]ecretName|privateKeyRef|passwordRef|initialAccessTokenRef)$/
/** Fields that refer to a ConfigMap by `name`, usually together with a `key`. */
const configMapField = /^(configMap(Ref)?|caBundleRef|permissionProfile)$/

/** Returns the kind of the object that a field names. Returns undefined for fields that name other kinds, or nothing. */
export function objectKindOf(field: string): 'Secret' | 'ConfigMap' | undefined {
  if (secretField.test(field)) return 'Secret'
  return configMapField.test(field) ? 'ConfigMap' : undefined
}

/** Secrets of type kubernetes.io/tls have fixed keys. */
const pairField = /(CertificateSecretRef|_certificate_secret_ref)$/
const maxDepth = 20

/** Returns sorted, unique names. */
export function secretNamesIn(value: unknown): string[] {
  const names = new Set<string>()
  collect(value, '', names, 0)
  return [...names].sort()
}

/** `member` is the name of the value or of the list that contains the value. */
function collect(value: unknown, member: string, names: Set<string>, depth: number): void {
  if (depth > maxDepth) return
  if (Array.isArray(value)) {
    for (const item of value) collect(item, member, names, depth + 1)
    return
  }
  if (!isFields(value)) return
  const { name, key } = value
  const isRef = objectKindOf(member) === 'Secret' && (typeof key === 'string' || pairField.test(member))
  if (isRef && typeof name === 'string' && name !== '') names.add(name)
  for (const [key, item] of Object.entries(value)) collect(item, key, names, depth + 1)
}

/** `bundleSource` refers to the bundle of a SPIFFE trust domain. */
const bundleMember = /^(caBundleRef|ca_bundle_ref|bundleSource)$/

/** Returns the names of the ConfigMaps with CA bundles and SPIFFE bundles. */
export function caBundleNamesIn(value: unknown, depth = 0): string[] {
  if (depth > maxDepth) return []
  if (Array.isArray(value)) return value.flatMap((item: unknown) => caBundleNamesIn(item, depth + 1))
  return Object.entries(fieldsOf(value)).flatMap(([key, item]) => {
    if (!bundleMember.test(key)) return caBundleNamesIn(item, depth + 1)
    // A decision point refers to the ConfigMap directly.
    const named = fieldsOf(item)['configMapRef'] ?? item
    const name = filledTextOf(fieldsOf(named)['name'])
    return name === undefined ? [] : [name]
  })
}
