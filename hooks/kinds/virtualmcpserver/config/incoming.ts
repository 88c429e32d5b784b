/**
 * Who may call the virtual server: incoming authentication and authorization of the configuration, with the conditions
 * of the references they come from.
 */
import type { RuntimeAuthz, RuntimeIncomingAuth, RuntimeOidc } from '../../../../schemas/index.ts'
import { type SyncFailure, failed, type ConfigPart } from '../../../sync/conditions.ts'
import type { SyncContext } from '../../../sync/context.ts'
import { fieldsOf } from '../../../base/kube.ts'
import type { PodNeeds } from '../../../runtime-config/needs.ts'
import { ownAuthz, sharedPolicies } from '../../../runtime-config/authz.ts'
import { ownDecisionPoint, pointIn } from '../../../runtime-config/decision-point.ts'
import { oidcPart } from '../../../runtime-config/oidc.ts'
import {
  authzReasons,
  configCalled,
  configHashOf,
  checkedConfig,
  oidcCondition,
} from '../../../references/resolve.ts'

type Context = SyncContext<'VirtualMCPServer'>

export const deprecatedReason = 'AuthzPrimaryUpstreamProviderDeprecated'
export const deprecatedMessage =
  'authzConfig.inline.primaryUpstreamProvider is deprecated; set spec.authServerConfig.primaryUpstreamProvider'

export interface Incoming {
  readonly auth: RuntimeIncomingAuth | undefined
  /** Hash of the referenced MCPOIDCConfig and MCPAuthzConfig, while they are referenced. */
  readonly oidcConfigHash: string | undefined
  readonly authzConfigHash: string | undefined
  /** Errors that stop the sync, the first one first. */
  readonly failures: readonly SyncFailure[]
}

export function incomingAuth(context: Context, needs: PodNeeds, resource: string): Incoming {
  const { incomingAuth } = context.parent.spec
  const { name: oidcName } = incomingAuth.oidcConfigRef ?? {}
  const { name: authzName } = incomingAuth.authzConfigRef ?? {}
  const oidc = incomingAuth.type === 'oidc' ? oidcOf(context, needs, resource) : undefined
  const authz = authzOf(context, needs)
  const failures = [oidc?.failure, authz?.failure].filter((failure) => failure !== undefined)
  checkAuth(context, failures[0])
  const auth: RuntimeIncomingAuth = {
    type: incomingAuth.type,
    ...(oidc?.value && { oidc: oidc.value }),
    ...(authz?.value && { authz: withPrimary(context, authz.value) }),
  }
  return {
    auth: failures.length === 0 ? auth : undefined,
    oidcConfigHash: oidcName && configHashOf(context, 'MCPOIDCConfig', oidcName),
    authzConfigHash: authzName && configHashOf(context, 'MCPAuthzConfig', authzName),
    failures,
  }
}

/** One word on all of incoming authentication. */
function checkAuth({ conditions }: Context, failure: SyncFailure | undefined): void {
  const reason = failure?.reason.startsWith('AuthzConfigMap') ? failure.reason : 'AuthInvalid'
  const shown = failure && { reason, message: failure.message }
  conditions.check('AuthConfigured', shown, 'AuthValid', 'Authentication configuration is valid')
}

function oidcOf(context: Context, needs: PodNeeds, defaultResource: string): ConfigPart<RuntimeOidc> {
  const reference = context.parent.spec.incomingAuth.oidcConfigRef
  if (!reference)
    return failed('OIDCConfigRefNotFound', 'spec.incomingAuth.oidcConfigRef is required for type oidc')
  const config = checkedConfig(context, 'MCPOIDCConfig', reference.name, oidcCondition)
  if (config.failure) return config
  return {
    value: oidcPart(config.value, reference, {
      namespace: context.namespace,
      defaultResource,
      clientSecretEnv: 'VMCP_OIDC_CLIENT_SECRET',
      needs,
    }),
  }
}

function authzOf(context: Context, needs: PodNeeds): ConfigPart<RuntimeAuthz> | undefined {
  const { authzConfig, authzConfigRef } = context.parent.spec.incomingAuth
  if (authzConfigRef) {
    const part = sharedAuthzOf(context, authzConfigRef.name)
    context.conditions.check(
      'AuthzConfigRefValidated',
      part.failure,
      'AuthzConfigRefValid',
      'The MCPAuthzConfig is valid',
    )
    return part
  }
  if (!authzConfig) return undefined
  const point = pointIn(authzConfig)
  if (point) return ownDecisionPoint(point, context, needs)
  const map = authzConfig.configMap && context.configMap(authzConfig.configMap.name)
  return ownAuthz(authzConfig, map, needs)
}

function sharedAuthzOf(context: Context, name: string): ConfigPart<RuntimeAuthz> {
  const config = configCalled(context, 'MCPAuthzConfig', name, authzReasons)
  return config.failure ? config : sharedPolicies(config.value)
}

/** The deprecated inline field, when it is what decides; undefined otherwise. */
export function deprecatedPrimary(server: object): string | undefined {
  const spec = fieldsOf(fieldsOf(server)['spec'])
  const authzConfig = fieldsOf(fieldsOf(spec['incomingAuth'])['authzConfig'])
  const inline = fieldsOf(authzConfig['inline'])['primaryUpstreamProvider']
  if (typeof inline !== 'string') return undefined
  return fieldsOf(spec['authServerConfig'])['primaryUpstreamProvider'] === undefined ? inline : undefined
}

/**
 * The upstream that policies read claims from: spec.authServerConfig decides, then the deprecated inline field, then the
 * first upstream. Without an embedded server there is none.
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
