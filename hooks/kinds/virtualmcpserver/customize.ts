/**
 * Requests a virtual server's related objects: all possible group members in the namespace with their configurations,
 * and the objects that the resource refers to by name. The response is cached, so it depends only on the spec and the
 * name.
 */
import { fieldsOf, textOf } from '../../base/kube.ts'
import { memberKinds } from '../../references/members.ts'
import { virtualServerNames } from '../../children/names.ts'
import type { CustomizeRequest, CustomizeResponse } from '../../sync/protocol.ts'
import { exposureRelated } from '../common/exposure.ts'
import { servedNames } from '../common/served-names.ts'
import { clientAuthorityName, tlsSecretName } from '../common/serving-tls.ts'
import { kindsNamedBy, namesByKind } from '../../references/reference.ts'
import { virtualServerReferences } from './references.ts'
import { type ChildNames, servedKinds } from '../../sync/child-kinds.ts'
import { relatedRules } from '../../sync/rules.ts'
import { sessionSecretNames } from '../../runtime-config/session-storage.ts'
import type { HookSettings } from '../../base/settings.ts'
import { caBundleNamesIn, secretNamesIn } from '../../references/secret-names.ts'

/** Each member refers to the group that it joins and to its own MCPExternalAuthConfig. */
const anyName = [...memberKinds, 'MCPExternalAuthConfig'] as const

const locks = 'MCPToolLock'

export const children = [
  'ServiceAccount',
  'Role',
  'RoleBinding',
  'ConfigMap',
  'Deployment',
  'Service',
  ...servedKinds,
] as const

export const relatedKinds = [...memberKinds, ...kindsNamedBy(virtualServerReferences), locks] as const

export function customize({ parent }: CustomizeRequest, settings: HookSettings): CustomizeResponse {
  const spec = fieldsOf(parent['spec'])
  const exposure = exposureRelated(spec)
  const authz = fieldsOf(fieldsOf(spec['incomingAuth'])['authzConfig'])
  const map = fieldsOf(authz['configMap'])['name']
  const names = virtualServerNames(parent.metadata.name)
  // A user-supplied account has its own permissions.
  const access = spec['serviceAccount'] === undefined ? [names.account] : []
  // Locks are read only when pinning is on.
  const pinned = fieldsOf(spec['config'])['pinning'] === undefined ? [] : [locks]
  const { MCPExternalAuthConfig: _, ...named } = namesByKind(virtualServerReferences, parent)
  return relatedRules(parent, {
    kinds: [...new Set([...anyName, ...pinned, ...exposure.kinds])],
    named,
    secrets: [
      ...sessionSecretNames(spec['sessionStorage'], settings),
      ...secretNamesIn(authz),
      textOf(exposure.secret),
      tlsSecretName(spec),
      ...secretNamesIn(spec['authServerConfig']),
      ...secretNamesIn(fieldsOf(spec['config'])['console']),
    ],
    configMaps: [
      textOf(map),
      ...caBundleNamesIn(authz),
      ...caBundleNamesIn(spec['authServerConfig']),
      clientAuthorityName(spec),
    ],
    own: {
      ...servedNames(spec, names.server, settings),
      ServiceAccount: access,
      Role: access,
      RoleBinding: access,
      ConfigMap: [names.config, names.report],
      Deployment: [names.server],
      Service: [names.server],
    } satisfies ChildNames<(typeof children)[number]>,
  })
}
