/**
 * MCPRemoteProxy: an authenticating proxy in front of a remote MCP server.
 */
import { childKindsOf, type ChildNames, servedKinds } from '../../sync/child-kinds.ts'
import type { SyncContext } from '../../sync/context.ts'
import { fieldsOf, textOf } from '../../base/kube.ts'
import { remoteProxyNames } from '../../children/names.ts'
import type { CustomizeRequest, CustomizeResponse, SyncResponse } from '../../sync/protocol.ts'
import { exposedKinds, exposureRelated } from '../common/exposure.ts'
import { servedNames } from '../common/served-names.ts'
import { clientAuthorityName, tlsSecretName } from '../common/serving-tls.ts'
import { proxyReferences } from '../common/proxy/references.ts'
import type { KindHooks } from '../kind-hooks.ts'
import { coreRelated, ownRelatedKinds, relatedRules } from '../../sync/rules.ts'
import { sessionSecretNames } from '../../runtime-config/session-storage.ts'
import type { HookSettings } from '../../base/settings.ts'
import { kindsNamedBy, namesByKind } from '../../references/reference.ts'
import { caBundleNamesIn, secretNamesIn } from '../../references/secret-names.ts'
import { build } from './build.ts'
import { respond } from './respond.ts'
import { remoteProxyViolations, remoteProxyWarnings } from './validate.ts'

const children = ['ServiceAccount', 'ConfigMap', 'Deployment', 'Service', ...servedKinds] as const

export const mcpRemoteProxy: KindHooks<'MCPRemoteProxy'> = {
  kind: 'MCPRemoteProxy',
  childKinds: childKindsOf(children),
  relatedKinds: [
    ...ownRelatedKinds([...kindsNamedBy(proxyReferences), ...exposedKinds]),
    coreRelated.Secret,
    ...childKindsOf(children),
  ],
  validate: remoteProxyViolations,
  warnings: remoteProxyWarnings,
  customize,
  sync,
}

function customize({ parent }: CustomizeRequest, settings: HookSettings): CustomizeResponse {
  const names = remoteProxyNames(parent.metadata.name)
  const spec = fieldsOf(parent['spec'])
  const exposure = exposureRelated(spec)
  const map = fieldsOf(fieldsOf(spec['authzConfig'])['configMap'])['name']
  return relatedRules(parent, {
    kinds: exposure.kinds,
    named: namesByKind(proxyReferences, parent),
    secrets: [
      ...sessionSecretNames(spec['sessionStorage'], settings),
      textOf(exposure.secret),
      tlsSecretName(spec),
      ...secretNamesIn(spec['headerForward']),
      textOf(fieldsOf(spec['clientCertificateSecretRef'])['name']),
      ...secretNamesIn(spec['authzConfig']),
    ],
    configMaps: [textOf(map), ...caBundleNamesIn(spec['authzConfig']), clientAuthorityName(spec)],
    own: {
      ...servedNames(spec, names.proxy, settings),
      ServiceAccount: spec['serviceAccount'] === undefined ? [names.proxy] : [],
      ConfigMap: [names.proxyConfig],
      Deployment: [names.proxy],
      Service: [names.proxy],
    } satisfies ChildNames<(typeof children)[number]>,
  })
}

function sync(context: SyncContext<'MCPRemoteProxy'>): SyncResponse {
  return respond(context, build(context))
}
