/**
 * MCPServer: runs an MCP server image behind a proxy.
 *
 * The server is a direct child, so garbage collection is automatic. The proxy needs Kubernetes API access only to
 * attach to a stdio server without a command. All references are checked at once. A broken reference leaves the running
 * children in place.
 */
import { childKindsOf, type ChildNames, servedKinds } from '../../sync/child-kinds.ts'
import type { SyncContext } from '../../sync/context.ts'
import { type Fields, fieldsOf, textOf } from '../../base/kube.ts'
import { serverNames } from '../../children/names.ts'
import type { CustomizeRequest, CustomizeResponse, SyncResponse } from '../../sync/protocol.ts'
import { exposedKinds, exposureRelated } from '../common/exposure.ts'
import { canHaveSeveralPods, servedNames } from '../common/served-names.ts'
import { clientAuthorityName, tlsSecretName } from '../common/serving-tls.ts'
import { proxyReferences } from '../common/proxy/references.ts'
import type { KindHooks } from '../kind-hooks.ts'
import { coreRelated, ownRelatedKinds, relatedRules } from '../../sync/rules.ts'
import { kindsNamedBy, namesByKind } from '../../references/reference.ts'
import { caBundleNamesIn, secretNamesIn } from '../../references/secret-names.ts'
import { sessionSecretNames } from '../../runtime-config/session-storage.ts'
import type { HookSettings } from '../../base/settings.ts'
import { build } from './build.ts'
import { respond } from './respond.ts'
import { attachesTo } from './stdio.ts'
import { serverViolations, serverWarnings } from './validate.ts'

const children = [
  'ServiceAccount',
  'Role',
  'RoleBinding',
  'ConfigMap',
  'NetworkPolicy',
  'Service',
  'StatefulSet',
  'Deployment',
  ...servedKinds,
] as const

export const mcpServer: KindHooks<'MCPServer'> = {
  kind: 'MCPServer',
  childKinds: childKindsOf(children),
  relatedKinds: [
    ...ownRelatedKinds([...kindsNamedBy(proxyReferences), ...exposedKinds]),
    coreRelated.Secret,
    ...childKindsOf(children),
  ],
  validate: serverViolations,
  warnings: serverWarnings,
  customize,
  sync,
}

function customize({ parent }: CustomizeRequest, settings: HookSettings): CustomizeResponse {
  const spec = fieldsOf(parent['spec'])
  const exposure = exposureRelated(spec)
  const profile = fieldsOf(spec['permissionProfile'])
  const secrets: unknown[] = Array.isArray(spec['secrets']) ? spec['secrets'] : []
  return relatedRules(parent, {
    kinds: exposure.kinds,
    named: namesByKind(proxyReferences, parent),
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
      ...caBundleNamesIn(spec['authzConfig']),
      clientAuthorityName(spec),
    ],
    own: childNames(parent.metadata.name, spec, settings),
  })
}

function childNames(name: string, spec: Fields, settings: HookSettings): ChildNames {
  const names = serverNames(name)
  const isAttached = attachesTo(spec, settings)
  const access = isAttached ? [names.proxy] : []
  const served = servedNames(spec, names.proxy, settings)
  return {
    ...served,
    PodDisruptionBudget: [
      ...served.PodDisruptionBudget,
      ...(canHaveSeveralPods(spec['backendReplicas']) ? [names.server] : []),
    ],
    ServiceAccount: [names.proxy, spec['serviceAccount'] === undefined ? names.server : undefined],
    Role: access,
    RoleBinding: access,
    ConfigMap: [names.proxyConfig, names.serverConfig, isAttached ? names.report : undefined],
    NetworkPolicy: [names.server],
    Service: [names.proxy, ...(isAttached ? [] : [names.server, names.headless])],
    StatefulSet: [names.server],
    Deployment: [names.proxy],
  }
}

function sync(context: SyncContext<'MCPServer'>): SyncResponse {
  return respond(context, build(context))
}
