/** Checks an MCPRemoteProxy against rules that its schema cannot express. */
import {
  addressViolation,
  endpointPolicy,
  type MCPRemoteProxy,
  type Violation,
} from '../../../schemas/index.ts'
import { authzViolations, policyNameWarnings, primaryProviderWarnings } from '../common/checks/policies.ts'
import { issuerReferenceViolations } from '../../runtime-config/issuers.ts'
import { sizeViolations } from '../../children/size.ts'
import { metadataViolations } from '../../children/checks/metadata-shape.ts'
import { mergedTemplateViolations } from '../../children/pod-template.ts'
import { remoteProxyNames } from '../../children/names.ts'
import type { CheckSettings } from '../../base/settings.ts'
import { checkContext } from '../common/check-context.ts'
import { proxyTemplate, proxyContainer } from '../common/proxy/children.ts'
import { proxyWorkload } from './build.ts'
import { proxyOverrideViolations, resourcesViolations } from '../../children/checks/spec-checks.ts'
import { tlsWarnings } from '../common/serving-tls.ts'
import { headerForwardViolations } from '../../runtime-config/header-forward.ts'

export function remoteProxyViolations(proxy: MCPRemoteProxy, settings: CheckSettings): Violation[] {
  const { spec } = proxy
  const failure = addressViolation(spec.remoteUrl, endpointPolicy(spec.allowPrivateEndpoint))
  return [
    ...(failure === undefined ? [] : [{ path: 'spec.remoteUrl', message: failure }]),
    ...headerForwardViolations(spec.headerForward, 'spec.headerForward'),
    ...templateViolations(proxy, settings),
    ...authzViolations(spec.authzConfig, 'spec.authzConfig'),
    ...issuerReferenceViolations(spec.oidcConfigRefs, 'spec.oidcConfigRefs'),
    ...sizeViolations('spec.authzConfig', 'a ConfigMap', spec.authzConfig?.inline),
    ...sizeViolations('spec.podTemplateSpec', 'a workload', spec.podTemplateSpec),
    ...resourcesViolations(spec.resources, 'spec.resources'),
    ...metadataViolations(spec.exposure?.ingress, 'spec.exposure.ingress'),
    ...proxyOverrideViolations(spec.resourceOverrides, 'spec.resourceOverrides'),
    ...(spec.resourceOverrides?.proxyDeployment?.podTemplateSpec === undefined
      ? []
      : [
          {
            path: 'spec.resourceOverrides.proxyDeployment.podTemplateSpec',
            message: 'is only for MCPServer; use spec.podTemplateSpec here',
          },
        ]),
  ]
}

function templateViolations(proxy: MCPRemoteProxy, settings: CheckSettings): Violation[] {
  const generated = () => proxyTemplate(proxyWorkload(checkContext(proxy, 'MCPRemoteProxy', settings)))
  return mergedTemplateViolations({ user: proxy.spec.podTemplateSpec, generated, container: proxyContainer })
}

export function remoteProxyWarnings({ metadata, spec }: MCPRemoteProxy): readonly string[] {
  return [
    ...primaryProviderWarnings(spec.authzConfig),
    ...policyNameWarnings(spec.authzConfig),
    ...tlsWarnings(spec, remoteProxyNames(metadata.name).proxy),
  ]
}
