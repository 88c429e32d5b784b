/**
 * Validates one resource on its own: against the schema with its CEL rules, and with the checks of its kind.
 *
 * The webhook, the command line and the syncs share this function. A sync validates the object again, because it may
 * have been admitted before a rule existed or while the webhook was down. The function does not look at other objects.
 */
import { type Violation, validManifest, byText } from '../../schemas/index.ts'
import { kindHooks } from './registry.ts'
import type { CheckSettings } from '../base/settings.ts'

/** Returns all violations in a resource, or only the schema violations if it violates the schema. */
export function resourceViolations(object: unknown, settings: CheckSettings): readonly Violation[] {
  const { resource, violations } = validManifest(object)
  if (!resource) return sorted(violations)
  return sorted(kindHooks(resource.kind).validate(resource, settings))
}

/** Sorts the violations by path, because the order of fields in the manifest must not affect a status. */
function sorted(violations: readonly Violation[]): readonly Violation[] {
  return violations.toSorted((a, b) => byText(a.path, b.path) || byText(a.message, b.message))
}
