/**
 * MCPRemoteProxy: checks of the object alone that need code.
 */
import type { MCPRemoteProxy, Violation } from '../../../schemas/index.ts'
import { addressFailure } from '../../references/addresses.ts'
import { authzViolations } from '../../admission/authz.ts'
import { headerForwardViolations } from '../../admission/headers.ts'
import { podTemplateViolations } from '../../children/pod-template.ts'
import { proxyOverrideViolations, resourcesViolations } from '../../children/spec-checks.ts'

export function remoteProxyViolations({ spec }: MCPRemoteProxy): Violation[] {
  const failure = addressFailure(spec.remoteUrl, spec.allowPrivateEndpoint)
  return [
    ...(failure === undefined ? [] : [{ path: 'spec.remoteUrl', message: failure }]),
    ...headerForwardViolations(spec.headerForward, 'spec.headerForward'),
    ...podTemplateViolations(spec.podTemplateSpec),
    ...authzViolations(spec.authzConfig, 'spec.authzConfig'),
    ...resourcesViolations(spec.resources, 'spec.resources'),
    ...proxyOverrideViolations(spec.resourceOverrides, 'spec.resourceOverrides'),
  ]
}
