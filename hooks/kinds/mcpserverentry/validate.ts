/**
 * MCPServerEntry: checks of the object alone that need code.
 */
import type { MCPServerEntry, Violation } from '../../../schemas/index.ts'
import { addressFailure } from '../../references/addresses.ts'
import type { CheckSettings } from '../../base/settings.ts'
import { headerForwardViolations } from '../common/checks/headers.ts'

export function entryViolations({ spec }: MCPServerEntry, settings: CheckSettings): Violation[] {
  const failure = addressFailure(spec.remoteUrl, {
    allowPrivateEndpoint: spec.allowPrivateEndpoint,
    allowLoopback: settings.allowLoopback,
  })
  return [
    ...(failure === undefined ? [] : [{ path: 'spec.remoteUrl', message: failure }]),
    ...headerForwardViolations(spec.headerForward, 'spec.headerForward'),
  ]
}
