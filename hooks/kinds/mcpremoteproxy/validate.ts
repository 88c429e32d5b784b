/**
 * MCPRemoteProxy: checks of the object alone that need code.
 */
import type { MCPRemoteProxy, Violation } from '../../../schemas/index.ts'
import { addressFault } from '../../addresses.ts'
import { authzProblems } from '../../admission/authz.ts'
import { headerForwardProblems } from '../../admission/headers.ts'
import { podTemplateProblems } from '../../children/pod-template.ts'
import { proxyOverrideProblems, resourcesProblems } from '../../children/spec-checks.ts'

export function remoteProxyProblems({ spec }: MCPRemoteProxy): Violation[] {
  const fault = addressFault(spec.remoteUrl, spec.allowPrivateEndpoint)
  return [
    ...(fault === undefined ? [] : [{ path: 'spec.remoteUrl', message: fault }]),
    ...headerForwardProblems(spec.headerForward, 'spec.headerForward'),
    ...podTemplateProblems(spec.podTemplateSpec),
    ...authzProblems(spec.authzConfig, 'spec.authzConfig'),
    ...resourcesProblems(spec.resources, 'spec.resources'),
    ...proxyOverrideProblems(spec.resourceOverrides, 'spec.resourceOverrides'),
  ]
}
