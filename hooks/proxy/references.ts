/**
 * The references of a proxy's resource: each sets its condition, and gives its part of the configuration or a fault.
 *
 * All are judged, so that every fault is known at once. The group never blocks: a proxy works without one.
 */
import {
  type MCPAuthzConfig,
  type MCPExternalAuthConfig,
  type MCPOIDCConfig,
  type MCPTelemetryConfig,
  type MCPToolConfig,
  type ProxyTools,
  type RuntimeAuthz,
  type RuntimeOidc,
  type Telemetry,
  withDefaults,
} from '../../schemas/index.ts'
import type { Fault } from '../conditions.ts'
import type { SyncContext } from '../context.ts'
import { conditionOf } from '../conditions.ts'
import type { PodNeeds } from '../needs.ts'
import { ownAuthz, sharedAuthz } from '../parts/authz.ts'
import { needsAccountToken, oidcPart } from '../parts/oidc.ts'
import type { Part } from '../parts/part.ts'
import { telemetryPart } from '../parts/telemetry.ts'
import { authConfigFault, configFault, groupFault } from '../references.ts'
import { definedFields } from '../status.ts'
import type { FrontParent } from './spec.ts'

type Context = SyncContext<FrontParent>

/** A part that is absent when its reference is. */
export type Optional<T> = Part<T | undefined>

export function judgeGroup(context: Context): void {
  const { groupRef } = context.parent.spec
  if (!groupRef) return
  context.conditions.check(
    'GroupRefValidated',
    groupFault(context, groupRef.name),
    'GroupRefIsValid',
    'The group exists',
  )
}

export interface Oidc {
  readonly oidc: RuntimeOidc
  /** The pod needs its service account's token to fetch keys. */
  readonly accountToken: boolean
}

export function oidc(context: Context, needs: PodNeeds, defaultResource: string): Optional<Oidc> {
  const reference = context.parent.spec.oidcConfigRef
  if (!reference) return { value: undefined }
  const fault = configFault(context, 'MCPOIDCConfig', reference.name, {
    notFound: 'OIDCConfigRefNotFound',
    notValid: 'OIDCConfigRefNotValid',
  })
  context.conditions.check(
    'OIDCConfigRefValidated',
    fault,
    'OIDCConfigRefValid',
    'The MCPOIDCConfig is valid',
  )
  if (fault) return { fault }
  const stored = context.find('MCPOIDCConfig', reference.name)
  const config = withDefaults(stored) as MCPOIDCConfig
  if (config.spec.inline?.caBundleRef && stored) mirrorCaBundle(context, stored)
  const target = {
    namespace: context.namespace,
    defaultResource,
    clientSecretEnv: 'GATEHOUSE_OIDC_CLIENT_SECRET',
    needs,
  }
  return { value: { oidc: oidcPart(config, reference, target), accountToken: needsAccountToken(config) } }
}

/** The CA bundle is two hops away: the MCPOIDCConfig's own sync has looked at it. Advisory. */
function mirrorCaBundle(context: Context, config: NonNullable<ReturnType<Context['find']>>): void {
  const verdict = conditionOf(config, 'CABundleRefValidated')
  if (!verdict) return
  const { status, reason, message } = verdict
  context.conditions.set('CABundleRefValidated', status === 'True', String(reason), String(message))
}

export function authz(context: Context): Optional<RuntimeAuthz> {
  const { authzConfig, authzConfigRef } = context.parent.spec
  if (authzConfig?.inline?.primaryUpstreamProvider !== undefined) {
    context.conditions.set(
      'AuthzPrimaryUpstreamProviderIgnored',
      true,
      'PrimaryUpstreamProviderIgnored',
      'authzConfig.inline.primaryUpstreamProvider means something for a VirtualMCPServer only',
    )
  }
  const part = authzConfigRef ? sharedPolicies(context, authzConfigRef.name) : ownPolicies(context)
  if (part.fault || !part.value) return part
  const { primaryUpstreamProvider: _, ...rest } = part.value
  return { value: rest }
}

function ownPolicies(context: Context): Optional<RuntimeAuthz> {
  const { authzConfig } = context.parent.spec
  if (!authzConfig) return { value: undefined }
  return ownAuthz(authzConfig, authzConfig.configMap && context.configMap(authzConfig.configMap.name))
}

function sharedPolicies(context: Context, name: string): Part<RuntimeAuthz> {
  const missing = configFault(context, 'MCPAuthzConfig', name, {
    notFound: 'AuthzConfigRefNotFound',
    notValid: 'AuthzConfigRefNotValid',
  })
  const part: Part<RuntimeAuthz> = missing
    ? { fault: missing }
    : sharedAuthz(withDefaults(context.find('MCPAuthzConfig', name)) as MCPAuthzConfig)
  context.conditions.check(
    'AuthzConfigRefValidated',
    part.fault,
    'AuthzConfigRefValid',
    'The MCPAuthzConfig is valid',
  )
  return part
}

export function tools(context: Context): Optional<ProxyTools> {
  const { toolConfigRef } = context.parent.spec
  if (!toolConfigRef) return { value: undefined }
  const fault = configFault(context, 'MCPToolConfig', toolConfigRef.name, {
    notFound: 'ToolConfigNotFound',
    notValid: 'ToolConfigNotValid',
  })
  context.conditions.check('ToolConfigValidated', fault, 'ToolConfigValid', 'The MCPToolConfig is valid')
  if (fault) return { fault }
  const { spec } = withDefaults(context.find('MCPToolConfig', toolConfigRef.name)) as MCPToolConfig
  const filter = spec.toolsFilter && spec.toolsFilter.length > 0 ? spec.toolsFilter : undefined
  return { value: definedFields({ filter, overrides: spec.toolsOverride }) as ProxyTools }
}

export function telemetry(context: Context, needs: PodNeeds): Optional<Telemetry> {
  const reference = context.parent.spec.telemetryConfigRef
  if (!reference) return { value: undefined }
  const fault = configFault(context, 'MCPTelemetryConfig', reference.name, {
    notFound: 'TelemetryConfigRefNotFound',
    notValid: 'TelemetryConfigRefInvalid',
  })
  context.conditions.check(
    'TelemetryConfigRefValidated',
    fault,
    'TelemetryConfigRefValid',
    'The MCPTelemetryConfig is valid',
  )
  if (fault) return { fault }
  const config = withDefaults(context.find('MCPTelemetryConfig', reference.name)) as MCPTelemetryConfig
  return {
    value: telemetryPart(config, reference, {
      server: context.name,
      version: context.settings.version,
      needs,
    }),
  }
}

/** The MCPExternalAuthConfig of externalAuthConfigRef. */
export function externalAuth(context: Context): Optional<MCPExternalAuthConfig> {
  const reference = context.parent.spec.externalAuthConfigRef
  if (!reference) return { value: undefined }
  const fault =
    authConfigFault(context, reference.name, 'ExternalAuthConfigNotFound') ??
    severalUpstreams(context, reference.name)
  context.conditions.check(
    'ExternalAuthConfigValidated',
    fault,
    'ExternalAuthConfigValid',
    'The MCPExternalAuthConfig is valid',
  )
  return fault ? { fault } : { value: configCalled(context, reference.name) }
}

/** The MCPExternalAuthConfig of authServerRef, which must be an embedded authorization server. */
export function authServerReference(context: Context): Optional<MCPExternalAuthConfig> {
  const reference = context.parent.spec.authServerRef
  if (!reference) return { value: undefined }
  const fault = authServerReferenceFault(context, reference.name)
  context.conditions.check(
    'AuthServerRefValidated',
    fault,
    'AuthServerRefValid',
    'The authorization server is configured',
  )
  return fault ? { fault } : { value: configCalled(context, reference.name) }
}

function authServerReferenceFault(context: Context, name: string): Fault | undefined {
  const fault = authConfigFault(context, name, 'AuthServerRefNotFound', 'AuthServerRefInvalidConfig')
  if (fault) return fault
  const config = configCalled(context, name)
  if (config.spec.type !== 'embeddedAuthServer') {
    return {
      reason: 'AuthServerRefInvalidType',
      message: `MCPExternalAuthConfig ${name} is of type ${config.spec.type}; authServerRef needs embeddedAuthServer`,
    }
  }
  return severalUpstreams(context, name)
}

function severalUpstreams(context: Context, name: string): Fault | undefined {
  const upstreams = configCalled(context, name).spec.embeddedAuthServer?.upstreamProviders ?? []
  if (upstreams.length <= 1) return undefined
  return {
    reason: 'MultiUpstreamNotSupported',
    message: `MCPExternalAuthConfig ${name} has ${upstreams.length} upstream providers; ${context.stored.kind} supports one`,
  }
}

function configCalled(context: Context, name: string): MCPExternalAuthConfig {
  return withDefaults(context.find('MCPExternalAuthConfig', name)) as MCPExternalAuthConfig
}
