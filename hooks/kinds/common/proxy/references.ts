/**
 * The references in MCPServer and MCPRemoteProxy. Each entry defines the field, the object's kind, the condition that
 * reports the object, and how the object is converted to proxy configuration.
 */
import type {
  MCPExternalAuthConfig,
  MCPOIDCConfig,
  MCPRemoteProxySpec,
  MCPServerSpec,
} from '../../../../schemas/index.ts'
import { type KubeObject, definedFields } from '../../../base/kube.ts'
import { type ResolvedIssuers, resolveIssuers } from '../../../runtime-config/issuers.ts'
import { configReferences, groupReference } from '../../../references/reference.ts'
import {
  authzCondition,
  oidcCondition,
  telemetryCondition,
  toolCondition,
  webhookCondition,
} from '../../../references/resolve.ts'
import { resourceAuthz, sharedAuthz } from '../../../runtime-config/authz.ts'
import { needsAccountToken, oidcPart } from '../../../runtime-config/oidc.ts'
import type { PodNeeds } from '../../../runtime-config/needs.ts'
import { telemetryPart } from '../../../runtime-config/telemetry.ts'
import { webhooksPart } from '../../../runtime-config/webhooks.ts'
import { type ConfigPart, conditionOf, failed, statusOf } from '../../../sync/conditions.ts'
import type { AnyContext } from '../../../sync/context.ts'

/** Fields of both kinds, plus fields that only one kind has and that affect its proxy. */
type ProxySpec = Pick<MCPServerSpec, (keyof MCPServerSpec & keyof MCPRemoteProxySpec) | 'rateLimiting'> &
  Pick<MCPRemoteProxySpec, 'headerForward'>

/** The context for a kind whose servers run behind a proxy. */
export type ProxyContext = AnyContext & { readonly spec: ProxySpec }

export interface ProxyTarget {
  readonly context: ProxyContext
  /** Collects the environment and volumes that the configuration needs. */
  readonly needs: PodNeeds
  /** URL of the protected resource, used when the OIDC reference does not set a URL. */
  readonly resource: string
  /** Name of the proxy's Deployment, and its number of replicas, if the resource sets it. */
  readonly workload: { readonly names: { readonly proxy: string }; readonly replicas: number | undefined }
}

/** All issuers that a server accepts, and whether its pod needs its service account token to fetch keys. */
export interface ProxyIssuers extends Omit<ResolvedIssuers, 'configs'> {
  readonly accountToken: boolean
}

const reference = configReferences<ProxyTarget>()

export const proxyReferences = {
  // The group is advisory: a missing group does not stop the proxy.
  group: groupReference({ valid: 'GroupRefIsValid', message: 'The group exists', isAdvisory: true }),
  oidc: reference({
    field: 'spec.oidcConfigRef',
    kind: 'MCPOIDCConfig',
    condition: oidcCondition,
    hash: 'oidcConfigHash',
    toConfig(config, field, { context, needs, resource: defaultResource }) {
      if (config.spec.inline?.caBundleRef)
        mirrorCaBundle(context, context.find('MCPOIDCConfig', config.metadata.name))
      const clientSecretEnv = 'GATEHOUSE_OIDC_CLIENT_SECRET'
      const { namespace } = context
      const oidc = oidcPart(config, field, { namespace, defaultResource, clientSecretEnv, needs })
      return { value: { oidc, accountToken: needsAccountToken(config) } }
    },
  }),
  issuers: {
    names: ['spec.oidcConfigRefs[].name'],
    kind: 'MCPOIDCConfig',
    resolve({
      context,
      needs,
      resource: defaultResource,
    }: ProxyTarget): ConfigPart<ProxyIssuers | undefined> {
      const { namespace, spec } = context
      if (!spec.oidcConfigRefs) return { value: undefined }
      const clientSecretEnv = 'GATEHOUSE_OIDC_CLIENT_SECRET'
      const target = { namespace, defaultResource, clientSecretEnv, needs }
      const part = resolveIssuers(context, spec.oidcConfigRefs, target)
      if (part.failure) return part
      const { configs, ...issuers } = part.value
      mirrorCaBundles(context, configs)
      return { value: { ...issuers, accountToken: configs.some(needsAccountToken) } }
    },
  },
  authz: reference({
    field: 'spec.authzConfigRef',
    kind: 'MCPAuthzConfig',
    condition: authzCondition,
    hash: 'authzConfigHash',
    toConfig: (config, _field, { needs }) => sharedAuthz(config, needs),
    otherwise: ({ context, needs }) => resourceAuthz(context.spec.authzConfig, context, needs),
  }),
  tools: reference({
    field: 'spec.toolConfigRef',
    kind: 'MCPToolConfig',
    condition: toolCondition,
    hash: 'toolConfigHash',
    toConfig({ spec: { toolsFilter = [], toolsOverride } }) {
      const filter = toolsFilter.length > 0 ? toolsFilter : undefined
      return { value: definedFields({ filter, overrides: toolsOverride }) }
    },
  }),
  telemetry: reference({
    field: 'spec.telemetryConfigRef',
    kind: 'MCPTelemetryConfig',
    condition: telemetryCondition,
    hash: 'telemetryConfigHash',
    toConfig: (config, field, target) => ({ value: telemetryPart(config, field, target) }),
  }),
  webhooks: reference({
    field: 'spec.webhookConfigRef',
    kind: 'MCPWebhookConfig',
    condition: webhookCondition,
    hash: 'webhookConfigHash',
    toConfig: (config, _field, { needs }) => ({ value: webhooksPart(config, needs) }),
  }),
  externalAuth: reference({
    field: 'spec.externalAuthConfigRef',
    kind: 'MCPExternalAuthConfig',
    condition: {
      type: 'ExternalAuthConfigValidated',
      valid: 'ExternalAuthConfigValid',
      notFound: 'ExternalAuthConfigNotFound',
      notValid: 'InvalidExternalAuthConfig',
    },
    hash: 'externalAuthConfigHash',
    toConfig: (config, _field, { context }) => withOneUpstream(context, config),
  }),
  authServer: reference({
    field: 'spec.authServerRef',
    kind: 'MCPExternalAuthConfig',
    condition: {
      type: 'AuthServerRefValidated',
      valid: 'AuthServerRefValid',
      notFound: 'AuthServerRefNotFound',
      notValid: 'AuthServerRefInvalidConfig',
      message: 'The authorization server is configured',
    },
    hash: 'authServerConfigHash',
    toConfig(config, { name }, { context }) {
      const { type } = config.spec
      if (type === 'embeddedAuthServer') return withOneUpstream(context, config)
      const message = `MCPExternalAuthConfig ${name} has type ${type}; authServerRef requires embeddedAuthServer`
      return failed('AuthServerRefInvalidType', message)
    },
  }),
} as const

/**
 * Copies the condition of the first MCPOIDCConfig with a broken CA bundle or, if there is none, of the first
 * MCPOIDCConfig with a bundle.
 */
function mirrorCaBundles(context: ProxyContext, configs: readonly MCPOIDCConfig[]): void {
  const stored = configs
    .filter(({ spec }) => spec.inline?.caBundleRef)
    .flatMap(({ metadata }) => context.find('MCPOIDCConfig', metadata.name) ?? [])
  const broken = stored.find((config) => conditionOf(config, 'CABundleRefValidated')?.['status'] === 'False')
  mirrorCaBundle(context, broken ?? stored[0])
}

/** Copies the condition of the MCPOIDCConfig. The sync of the MCPOIDCConfig checks the CA bundle. */
function mirrorCaBundle({ conditions }: ProxyContext, config: KubeObject | undefined): void {
  const { status, reason, message } = (config && conditionOf(config, 'CABundleRefValidated')) ?? {}
  if (status === undefined) return
  conditions.set('CABundleRefValidated', statusOf(status === 'True'), String(reason), String(message))
}

function withOneUpstream(
  context: ProxyContext,
  config: MCPExternalAuthConfig,
): ConfigPart<MCPExternalAuthConfig> {
  const count = config.spec.embeddedAuthServer?.upstreamProviders.length ?? 0
  if (count <= 1) return { value: config }
  return failed(
    'MultiUpstreamNotSupported',
    `MCPExternalAuthConfig ${config.metadata.name} has ${count} upstream providers; ${context.stored.kind} supports one`,
  )
}
