/**
 * What is wrong with one resource by itself: the schema with its CEL rules, and its kind's checks that need code.
 *
 * The same function serves the webhook, the command line and the syncs (an object may have been admitted before a rule
 * was made, or while the webhook was away). It looks at no other object.
 */
import { type Violation, validManifest, byText } from '../../schemas/index.ts'
import { kindHooks } from './registry.ts'
import type { CheckSettings } from '../base/settings.ts'

/** All violations of one resource; the schema's alone when it does not even pass those. */
export function resourceViolations(object: unknown, settings: CheckSettings): readonly Violation[] {
  const { resource, violations } = validManifest(object)
  if (!resource) return inOrder(violations)
  return inOrder(kindHooks(resource.kind).validate(resource, settings))
}

/** By path: the order of members in the manifest must not show in a status. */
function inOrder(violations: readonly Violation[]): readonly Violation[] {
  return violations.toSorted((a, b) => byText(a.path, b.path) || byText(a.message, b.message))
}
