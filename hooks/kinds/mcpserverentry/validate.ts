/**
 * MCPServerEntry: checks of the object alone that need code.
 */
<<<<<<< HEAD
import type { MCPServerEntry, Violation } from '../../../schemas/index.ts'
import { addressFailure } from '../../references/addresses.ts'
import type { CheckSettings } from '../../settings.ts'
import { headerForwardViolations } from '../../admission/headers.ts'

export function entryViolations({ spec }: MCPServerEntry, settings: CheckSettings): Violation[] {
  const failure = addressFailure(spec.remoteUrl, spec.allowPrivateEndpoint, settings.allowLoopback)
=======
import {
  addressViolation,
  endpointPolicy,
  type MCPServerEntry,
  type Violation,
} from '../../../schemas/index.ts'
import { headerForwardViolations } from '../../admission/headers.ts'

export function entryViolations({ spec }: MCPServerEntry): Violation[] {
  const failure = addressViolation(spec.remoteUrl, endpointPolicy(spec.allowPrivateEndpoint))
>>>>>>> 06647c2 (fix: one rule for addresses, at admission and where they are dialled)
  return [
    ...(failure === undefined ? [] : [{ path: 'spec.remoteUrl', message: failure }]),
    ...headerForwardViolations(spec.headerForward, 'spec.headerForward'),
  ]
}
