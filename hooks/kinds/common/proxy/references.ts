/**
 * The references of a proxy's resource: each sets its condition, and gives its part of the configuration or an error.
 *
 * All are checked, so that every error is known at once. The group never blocks: a proxy works without one.
 */
import type {
  MCPExternalAuthConfig,
  ProxyTools,
  RuntimeAuthz,
  RuntimeOidc,
  RuntimeWebhooks,
  Telemetry,
} from '../../../../schemas/index.ts'
import { conditionOf, type SyncFailure, statusOf, failed, type ConfigPart } from '../../../sync/conditions.ts'
import type { KubeObject } from '../../../base/kube.ts'
import type { PodNeeds } from '../../../runtime-config/needs.ts'
import { ownAuthz, sharedAuthz } from '../../../runtime-config/authz.ts'
import { ownDecisionPoint, pointIn } from '../../../runtime-config/decision-point.ts'
import { needsAccountToken, oidcPart } from '../../../runtime-config/oidc.ts'
import { telemetryPart } from '../../../runtime-config/telemetry.ts'
import { webhooksPart } from '../../../runtime-config/webhooks.ts'
import {
  authzReasons,
  configCalled,
  groupFailure,
  checkedConfig,
  oidcCondition,
  telemetryCondition,
  toolCondition,
  webhookCondition,
} from '../../../references/resolve.ts'
import { checkBackendNames } from '../../../references/backend-condition.ts'
import { unknownWebhookBackends } from '../../../references/backend-names.ts'
import { definedFields } from '../../../children/defined.ts'
import type { ToldUrls } from '../exposure.ts'
import type { ProxyContext } from './spec.ts'

type Context = ProxyContext

/** A part that is absent when its reference is. */
export type Optional<T> = ConfigPart<T | undefined>

const absent = { value: undefined } as const

export function checkGroup(context: Context): void {
  const { groupRef } = context.spec
  if (!groupRef) return
  context.conditions.check(
    'GroupRefValidated',
    groupFailure(context, groupRef.name),
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
  const reference = context.spec.oidcConfigRef
  if (!reference) return absent
  const config = checkedConfig(context, 'MCPOIDCConfig', reference.name, oidcCondition)
  if (config.failure) return config
  if (config.value.spec.inline?.caBundleRef)
    mirrorCaBundle(context, context.find('MCPOIDCConfig', reference.name))
  const { namespace } = context
  const target = { namespace, defaultResource, clientSecretEnv: 'GATEHOUSE_OIDC_CLIENT_SECRET', needs }
  return {
    value: { oidc: oidcPart(config.value, reference, target), accountToken: needsAccountToken(config.value) },
  }
}

/** The CA bundle is two hops away: the MCPOIDCConfig's own sync has looked at it. Advisory. */
function mirrorCaBundle({ conditions }: Context, config: KubeObject | undefined): void {
  const { status, reason, message } = (config && conditionOf(config, 'CABundleRefValidated')) ?? {}
  if (status === undefined) return
  conditions.set('CABundleRefValidated', statusOf(status === 'True'), String(reason), String(message))
}

export function authz(context: Context, needs: PodNeeds): Optional<RuntimeAuthz> {
  const { authzConfig, authzConfigRef } = context.spec
  if (authzConfig?.inline?.primaryUpstreamProvider !== undefined) {
    context.conditions.set(
      'AuthzPrimaryUpstreamProviderIgnored',
      'True',
      'PrimaryUpstreamProviderIgnored',
      'authzConfig.inline.primaryUpstreamProvider means something for a VirtualMCPServer only',
    )
  }
  const part = authzConfigRef
    ? sharedAuthzOf(context, authzConfigRef.name, needs)
    : ownAuthzOf(context, needs)
  if (part.failure || !part.value) return part
  const { primaryUpstreamProvider: _, ...rest } = part.value
  return { value: rest }
}

function ownAuthzOf(context: Context, needs: PodNeeds): Optional<RuntimeAuthz> {
  const { authzConfig } = context.spec
  if (!authzConfig) return absent
  const point = pointIn(authzConfig)
  if (point) return ownDecisionPoint(point, context, needs)
  const map = authzConfig.configMap && context.configMap(authzConfig.configMap.name)
  return ownAuthz(authzConfig, map, needs)
}

function sharedAuthzOf(context: Context, name: string, needs: PodNeeds): ConfigPart<RuntimeAuthz> {
  const config = configCalled(context, 'MCPAuthzConfig', name, authzReasons)
  const part = config.failure ? config : sharedAuthz(config.value, needs)
  const { conditions } = context
  conditions.check(
    'AuthzConfigRefValidated',
    part.failure,
    'AuthzConfigRefValid',
    'The MCPAuthzConfig is valid',
  )
  return part
}

export function tools(context: Context): Optional<ProxyTools> {
  const { toolConfigRef } = context.spec
  if (!toolConfigRef) return absent
  const config = checkedConfig(context, 'MCPToolConfig', toolConfigRef.name, toolCondition)
  if (config.failure) return config
  const { toolsFilter, toolsOverride } = config.value.spec
  const filter = toolsFilter && toolsFilter.length > 0 ? toolsFilter : undefined
  return { value: definedFields({ filter, overrides: toolsOverride }) }
}

export function telemetry(context: Context, needs: PodNeeds): Optional<Telemetry> {
  const reference = context.spec.telemetryConfigRef
  if (!reference) return absent
  const config = checkedConfig(context, 'MCPTelemetryConfig', reference.name, telemetryCondition)
  if (config.failure) return config
  const target = { server: context.name, version: context.settings.version, needs }
  return { value: telemetryPart(config.value, reference, target) }
}

export function webhooks(context: Context, needs: PodNeeds): Optional<RuntimeWebhooks> {
  const reference = context.spec.webhookConfigRef
  if (!reference) return absent
  const config = checkedConfig(context, 'MCPWebhookConfig', reference.name, webhookCondition)
  checkBackendNames(context, [context.name], (known) =>
    unknownWebhookBackends(reference, known, (name) => context.find('MCPWebhookConfig', name)),
  )
  return config.failure ? config : { value: webhooksPart(config.value, needs) }
}

/** The MCPExternalAuthConfig of externalAuthConfigRef. */
export function externalAuth(context: Context): Optional<MCPExternalAuthConfig> {
  const reference = context.spec.externalAuthConfigRef
  if (!reference) return absent
  const part = withOneUpstream(
    context,
    configCalled(context, 'MCPExternalAuthConfig', reference.name, {
      notFound: 'ExternalAuthConfigNotFound',
      notValid: 'InvalidExternalAuthConfig',
    }),
  )
  const { conditions } = context
  conditions.check(
    'ExternalAuthConfigValidated',
    part.failure,
    'ExternalAuthConfigValid',
    'The MCPExternalAuthConfig is valid',
  )
  return part
}

/** URLs by which clients know this server, for the check of its host name. */
export function toldUrls(context: Context): ToldUrls {
  const { authServerRef, oidcConfigRef } = context.spec
  const server = authServerRef && context.filled('MCPExternalAuthConfig', authServerRef.name)
  return {
    'the resourceUrl of oidcConfigRef': oidcConfigRef?.resourceUrl,
    'the issuer of authServerRef': server?.spec.embeddedAuthServer?.issuer,
  }
}

/** The MCPExternalAuthConfig of authServerRef, which must be an embedded authorization server. */
export function authServerReference(context: Context): Optional<MCPExternalAuthConfig> {
  const reference = context.spec.authServerRef
  if (!reference) return absent
  const part = withOneUpstream(context, authServerCalled(context, reference.name))
  const { conditions } = context
  conditions.check(
    'AuthServerRefValidated',
    part.failure,
    'AuthServerRefValid',
    'The authorization server is configured',
  )
  return part
}

function authServerCalled(context: Context, name: string): ConfigPart<MCPExternalAuthConfig> {
  const part = configCalled(context, 'MCPExternalAuthConfig', name, {
    notFound: 'AuthServerRefNotFound',
    notValid: 'AuthServerRefInvalidConfig',
  })
  if (part.failure || part.value.spec.type === 'embeddedAuthServer') return part
  return failed(
    'AuthServerRefInvalidType',
    `MCPExternalAuthConfig ${name} is of type ${part.value.spec.type}; authServerRef needs embeddedAuthServer`,
  )
}

function withOneUpstream(
  context: Context,
  part: ConfigPart<MCPExternalAuthConfig>,
): ConfigPart<MCPExternalAuthConfig> {
  const count = part.value?.spec.embeddedAuthServer?.upstreamProviders.length ?? 0
  if (count <= 1) return part
  const failure: SyncFailure = {
    reason: 'MultiUpstreamNotSupported',
    message: `MCPExternalAuthConfig ${part.value?.metadata.name} has ${count} upstream providers; ${context.stored.kind} supports one`,
  }
  return { failure }
}
