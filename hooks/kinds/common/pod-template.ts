/** Sets a condition that reports errors in a user's pod template or in its merge with the generated template. */
import type { Violation } from '../../../schemas/index.ts'
import { specFailure } from '../../references/resolve.ts'
import type { Conditions, SyncFailure } from '../../sync/conditions.ts'

const invalidTemplate = 'InvalidPodTemplateSpec'

/** Returns the manifest's violations that concern a pod template. */
export function templateFailure(violations: readonly Violation[]): SyncFailure | undefined {
  const own = violations.filter(({ path }) => path.split(/[.[]/).includes('podTemplateSpec'))
  return specFailure(own, invalidTemplate)
}

/** Returns the failure for a template that cannot be merged into the generated one. */
export function mergeFailure(violations: readonly string[]): SyncFailure {
  return { reason: invalidTemplate, message: violations.join('; ') }
}

export function checkPodTemplate(conditions: Conditions, failure: SyncFailure | undefined): void {
  conditions.check('PodTemplateValid', failure, 'ValidPodTemplateSpec', 'The pod template is valid')
}
