/** Builds the authentication and authorization of callers from the resolved references. */
import type { IncomingAuthFile, RuntimeAuthz } from '../../../../schemas/index.ts'
import { fieldsOf } from '../../../base/kube.ts'
import type { ResolvedReferences } from '../../../references/reference.ts'
import type { SyncContext } from '../../../sync/context.ts'
import type { virtualServerReferences } from '../references.ts'

type Context = SyncContext<'VirtualMCPServer'>

export const deprecatedReason = 'AuthzPrimaryUpstreamProviderDeprecated'
export const deprecatedMessage =
  'authzConfig.inline.primaryUpstreamProvider is deprecated; set spec.authServerConfig.primaryUpstreamProvider'

/** Sets the condition AuthConfigured, which summarizes the references. Returns undefined if a reference failed. */
export function incomingAuth(
  context: Context,
  { values, failures }: ResolvedReferences<typeof virtualServerReferences>,
): IncomingAuthFile | undefined {
  const failure = failures.oidc ?? failures.issuers ?? failures.authz
  const reason = failure?.reason.startsWith('AuthzConfigMap') ? failure.reason : 'AuthInvalid'
  const summary = failure && { reason, message: failure.message }
  context.conditions.check('AuthConfigured', summary, 'AuthValid', 'Authentication configuration is valid')
  const authz = values.authz && withPrimary(context, values.authz)
  if (failure) return undefined
  const oidc = values.issuers?.oidc ?? values.oidc
  return {
    type: context.spec.incomingAuth.type,
    ...(oidc && { oidc }),
    ...(values.issuers?.issuers.length && { issuers: values.issuers.issuers }),
    ...(context.spec.incomingAuth.dpop && { dpop: context.spec.incomingAuth.dpop }),
    ...(authz && { authz }),
  }
}

/** Returns the deprecated inline field; undefined when spec.authServerConfig overrides it. */
export function deprecatedPrimary(server: object): string | undefined {
  const spec = fieldsOf(fieldsOf(server)['spec'])
  const authzConfig = fieldsOf(fieldsOf(spec['incomingAuth'])['authzConfig'])
  const inline = fieldsOf(authzConfig['inline'])['primaryUpstreamProvider']
  if (typeof inline !== 'string') return undefined
  return fieldsOf(spec['authServerConfig'])['primaryUpstreamProvider'] === undefined ? inline : undefined
}

/**
 * Sets the upstream whose claims the policies read: from spec.authServerConfig, otherwise from the deprecated inline
 * field, otherwise the first upstream. Undefined without an embedded server.
 */
function withPrimary(context: Context, authz: RuntimeAuthz): RuntimeAuthz {
  if (deprecatedPrimary(context.parent) !== undefined) {
    context.conditions.set(
      'AuthzPrimaryUpstreamProviderDeprecated',
      'True',
      deprecatedReason,
      deprecatedMessage,
    )
  }
  const server = context.parent.spec.authServerConfig
  const { primaryUpstreamProvider: deprecated, ...rest } = authz
  const primary =
    server && (server.primaryUpstreamProvider ?? deprecated ?? server.upstreamProviders[0]?.name)
  return { ...rest, ...(primary !== undefined && { primaryUpstreamProvider: primary }) }
}
