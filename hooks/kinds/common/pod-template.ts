/**
 * The condition of a kind's pod template: errors of the manifest, or of the merge with what is generated.
 */
import type { Violation } from '../../../schemas/index.ts'
import { specFailure } from '../../references/resolve.ts'
import type { Conditions, SyncFailure } from '../../sync/conditions.ts'

const invalidTemplate = 'InvalidPodTemplateSpec'

/** Those of a manifest's violations that are about a pod template. */
export function templateFailure(violations: readonly Violation[]): SyncFailure | undefined {
  const own = violations.filter(({ path }) => path.split(/[.[]/).includes('podTemplateSpec'))
  return specFailure(own, invalidTemplate)
}

/** Why the user's template cannot be put over the generated one. */
export function mergeFailure(violations: readonly string[]): SyncFailure {
  return { reason: invalidTemplate, message: violations.join('; ') }
}

export function checkPodTemplate(conditions: Conditions, failure: SyncFailure | undefined): void {
  conditions.check('PodTemplateValid', failure, 'ValidPodTemplateSpec', 'The pod template is valid')
}
