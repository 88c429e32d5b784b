/**
 * The code behind /validate, usable without a server: what is wrong with one resource, and what its author should know.
 */
import { canonicalJson, type Violation, withDefaults } from '../../schemas/index.ts'
import { isFields, isTerminating, type KubeObject } from '../base/kube.ts'
import { kindHooks } from '../registry/registry.ts'
import { type CheckSettings, defaultSettings } from '../base/settings.ts'
import { resourceViolations } from '../registry/violations.ts'

export interface AdmissionVerdict {
  /** Reasons to refuse; empty when the resource is valid. */
  readonly violations: readonly Violation[]
  /** At most 120 characters each are shown by kubectl. */
  readonly warnings: readonly string[]
}

export interface ValidateOptions {
  /** The object before an update. */
  readonly old?: unknown
  readonly settings?: CheckSettings
}

/** Checks a manifest of any kind of this project. Never throws for a bad manifest. */
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

/** An object under deletion, or whose spec stays as it is: its finalizers and labels must remain changeable. */
function isLetThrough(doc: unknown, old: unknown): boolean {
  if (!isFields(doc) || !isFields(old) || !isFields(doc['metadata'])) return false
  if (isTerminating(doc as unknown as KubeObject)) return true
  return canonicalJson(doc['spec'] ?? null) === canonicalJson(old['spec'] ?? null)
}
