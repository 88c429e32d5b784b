/**
 * MCPServer: runs an MCP server image behind a proxy.
 *
 * The server is a direct child, so the proxy needs no Kubernetes API access, but to attach to a stdio server without a command,
 * and garbage collection is free. References are checked all at once; a broken one keeps what runs.
 */
import { childKinds, servedKinds } from '../../sync/child-kinds.ts'
import type { SyncContext } from '../../sync/context.ts'
import { fieldsOf, textOf } from '../../kube.ts'
import { serverNames } from '../../children/names.ts'
import type { CustomizeRequest, CustomizeResponse, SyncResponse } from '../../sync/protocol.ts'
import { exposedKinds, exposureRelated } from '../common/exposure.ts'
import { tlsSecretName } from '../common/serving-tls.ts'
import { proxyKinds } from '../common/proxy/spec.ts'
import type { KindHooks } from '../../kind-hooks.ts'
import { coreRelated, ownRelatedKinds, relatedRules } from '../../sync/rules.ts'
import { namesIn } from '../common/named.ts'
import { secretNamesIn } from '../../references/secret-names.ts'
import { sessionSecretNames } from '../../runtime-config/session-storage.ts'
import type { HookSettings } from '../../settings.ts'
import { build } from './build.ts'
import { respond } from './respond.ts'
import { serverViolations } from './validate.ts'
import { serverWarnings } from './warnings.ts'

export const mcpServer: KindHooks<'MCPServer'> = {
  kind: 'MCPServer',
  childKinds: [
    childKinds.ServiceAccount,
    childKinds.Role,
    childKinds.RoleBinding,
    childKinds.ConfigMap,
    childKinds.NetworkPolicy,
    childKinds.Service,
    childKinds.StatefulSet,
    childKinds.Deployment,
    ...servedKinds,
  ],
  relatedKinds: [
    ...ownRelatedKinds([...proxyKinds, ...exposedKinds]),
    coreRelated.Secret,
    coreRelated.ConfigMap,
    coreRelated.Service,
    coreRelated.StatefulSet,
    coreRelated.Deployment,
  ],
  validate: serverViolations,
  warnings: serverWarnings,
  customize,
  sync,
}

function customize({ parent }: CustomizeRequest, settings: HookSettings): CustomizeResponse {
  const names = serverNames(parent.metadata.name)
  const spec = fieldsOf(parent['spec'])
  const exposure = exposureRelated(spec)
  const profile = fieldsOf(spec['permissionProfile'])
  const secrets: unknown[] = Array.isArray(spec['secrets']) ? spec['secrets'] : []
  return relatedRules(parent, {
    kinds: exposure.kinds,
    named: namesIn(parent, proxyKinds),
    secrets: [
      ...secrets.map((item) => textOf(fieldsOf(item)['name'])),
      ...sessionSecretNames(spec['sessionStorage'], settings),
      ...secretNamesIn(spec['authzConfig']),
      textOf(exposure.secret),
      tlsSecretName(spec),
    ],
    configMaps: [
      textOf(fieldsOf(fieldsOf(spec['authzConfig'])['configMap'])['name']),
      profile['type'] === 'configmap' ? textOf(profile['name']) : undefined,
    ],
    own: [
      { kind: 'Deployment', name: names.proxy },
      { kind: 'StatefulSet', name: names.server },
      { kind: 'Service', name: names.proxy },
      { kind: 'Service', name: names.server },
      { kind: 'Service', name: names.headless },
      { kind: 'ConfigMap', name: names.proxyConfig },
      { kind: 'ConfigMap', name: names.serverConfig },
      { kind: 'ConfigMap', name: names.report },
    ],
  })
}

function sync(context: SyncContext<'MCPServer'>): SyncResponse {
  return respond(context, build(context))
}
