/**
 * MCPServerEntry: checks of the object alone that need code.
 */
import type { MCPServerEntry, Violation } from '../../../schemas/index.ts'
import { addressFault } from '../../addresses.ts'
import { headerForwardProblems } from '../../admission/headers.ts'

export function entryProblems({ spec }: MCPServerEntry): Violation[] {
  const fault = addressFault(spec.remoteUrl, spec.allowPrivateEndpoint)
  return [
    ...(fault === undefined ? [] : [{ path: 'spec.remoteUrl', message: fault }]),
    ...headerForwardProblems(spec.headerForward, 'spec.headerForward'),
  ]
}
