/**
 * Checks labels and annotations against the API server's rules.
 * Source: Kubernetes, "Labels and Selectors", "Annotations".
 */
import type { MetadataOverrides, Violation } from '../../../schemas/index.ts'

const nameForm = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/
const prefixForm = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const maxPrefix = 253
/** Leaves room for the last-applied annotation within the API server's limit of 256 KiB. */
const maxAnnotationBytes = 64 * 1024

/** True for a name of at most 63 characters, optionally preceded by a DNS prefix and a slash. */
function isQualifiedName(key: string): boolean {
  const slash = key.indexOf('/')
  if (slash === -1) return nameForm.test(key)
  const prefix = key.slice(0, slash)
  return prefix.length <= maxPrefix && prefixForm.test(prefix) && nameForm.test(key.slice(slash + 1))
}

/** Returns the error for a label, or undefined when it is valid. */
export function labelFailure(key: string, value: string): string | undefined {
  if (!isQualifiedName(key)) return 'is not a valid label key'
  if (value !== '' && !nameForm.test(value)) {
    return "must be a label value: at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends"
  }
  return undefined
}

/** Returns the error for an annotation key, or undefined when it is valid. Prefixes may contain uppercase letters. */
export function annotationFailure(key: string): string | undefined {
  return isQualifiedName(key.toLowerCase()) ? undefined : 'is not a valid annotation key'
}

/** Returns the errors in the labels and annotations that a resource sets on its children. */
export function metadataViolations(given: MetadataOverrides | undefined, path: string): Violation[] {
  const violations: Violation[] = []
  const add = (at: string, message: string | undefined) => {
    if (message !== undefined) violations.push({ path: `${path}.${at}`, message })
  }
  for (const [key, value] of Object.entries(given?.labels ?? {}))
    add(`labels.${key}`, labelFailure(key, value))
  for (const key of Object.keys(given?.annotations ?? {})) add(`annotations.${key}`, annotationFailure(key))
  if (Buffer.byteLength(JSON.stringify(given?.annotations ?? {})) > maxAnnotationBytes) {
    add('annotations', `must not exceed ${maxAnnotationBytes} bytes in total`)
  }
  return violations
}
