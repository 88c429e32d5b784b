/**
 * What a virtual server's sync looks at: every kind that a reference can reach, in the namespace, and by name the
 * Secrets and ConfigMaps that the resource itself names. Spec and name only decide, for the response is cached.
 */
import { fieldsOf, listOf, textOf } from '../../kube.ts'
import { memberKinds } from '../../references/members.ts'
import { virtualServerNames } from '../../children/names.ts'
import type { CustomizeRequest, CustomizeResponse } from '../../sync/protocol.ts'
import { exposureRelated } from '../common/exposure.ts'
import { tlsSecretName } from '../common/serving-tls.ts'
import { relatedRules } from '../../sync/rules.ts'
import { sessionSecretNames } from '../../runtime-config/session-storage.ts'
import type { HookSettings } from '../../settings.ts'
import { secretNamesIn } from '../../references/secret-names.ts'

export const relatedKinds = [
  'MCPGroup',
  ...memberKinds,
  'MCPExternalAuthConfig',
  'MCPOIDCConfig',
  'MCPAuthzConfig',
  'MCPTelemetryConfig',
  'MCPToolConfig',
  'MCPToolLock',
  'MCPWebhookConfig',
  'EmbeddingServer',
  'VirtualMCPCompositeToolDefinition',
] as const

export function customize({ parent }: CustomizeRequest, settings: HookSettings): CustomizeResponse {
  const spec = fieldsOf(parent['spec'])
  const exposure = exposureRelated(spec)
  const authz = fieldsOf(fieldsOf(spec['incomingAuth'])['authzConfig'])
  const map = fieldsOf(authz['configMap'])['name']
  const names = virtualServerNames(parent.metadata.name)
  return relatedRules(parent, {
    kinds: [...new Set([...relatedKinds, ...exposure.kinds])],
    secrets: [
      ...sessionSecretNames(spec['sessionStorage'], settings),
      ...secretNamesIn(authz),
      textOf(exposure.secret),
      tlsSecretName(spec),
      ...secretNamesIn(spec['authServerConfig']),
      ...secretNamesIn(fieldsOf(spec['config'])['console']),
    ],
    configMaps: listOf([map]).filter((name) => typeof name === 'string'),
    own: [
      { kind: 'Deployment', name: names.server },
      { kind: 'Service', name: names.server },
      { kind: 'ConfigMap', name: names.config },
      { kind: 'ConfigMap', name: names.report },
    ],
  })
}
