/** Validates one resource. The /validate route calls this code, which also works without a server. */
import { canonicalJson, type Violation, withDefaults } from '../../schemas/index.ts'
import { isFields, isTerminating, type KubeObject } from '../base/kube.ts'
import { kindHooks } from '../registry/registry.ts'
import { type CheckSettings, defaultSettings } from '../base/settings.ts'
import { resourceViolations } from '../registry/violations.ts'

export interface AdmissionVerdict {
  /** Reasons for the rejection; empty when the resource is valid. */
  readonly violations: readonly Violation[]
  /** Warnings for the user. kubectl displays at most 120 characters of each warning. */
  readonly warnings: readonly string[]
}

export interface ValidateOptions {
  /** The object before an update. */
  readonly old?: unknown
  readonly settings?: CheckSettings
}

/** Validates a manifest of any Gatehouse kind. Never throws for an invalid manifest. */
export function validateResource(
  doc: unknown,
  { old, settings = defaultSettings }: ValidateOptions = {},
): AdmissionVerdict {
  if (old !== undefined && old !== null && isLetThrough(doc, old)) return { violations: [], warnings: [] }
  const violations = resourceViolations(doc, settings)
  if (violations.length > 0) return { violations, warnings: [] }
  const resource = withDefaults(doc)
  return { violations, warnings: kindHooks(resource.kind).warnings?.(resource) ?? [] }
}

/**
 * Returns true when the object is being deleted or its spec has not changed. Users and controllers can then still
 * change finalizers and labels.
 */
function isLetThrough(doc: unknown, old: unknown): boolean {
  if (!isFields(doc) || !isFields(old) || !isFields(doc['metadata'])) return false
  if (isTerminating(doc as unknown as KubeObject)) return true
  return canonicalJson(doc['spec'] ?? null) === canonicalJson(old['spec'] ?? null)
}
