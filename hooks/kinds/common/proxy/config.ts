/**
 * Builds the configuration files for the proxy in front of one server and for the proxy's embedded authorization
 * server.
 */
import {
  type Dpop,
  dpopModeViolation,
  type EmbeddedAuthServerConfig,
  type input,
  type MCPExternalAuthConfig,
  type RuntimeAuthz,
  type RuntimeOidc,
  type ServingTLS,
  validateRuntime,
} from '../../../../schemas/index.ts'
import { type DesiredReplicas, mostReplicas } from '../../../children/serving/availability.ts'
import { issuerFailure, type Strategy, toStrategy } from '../../../externalauth/index.ts'
import { checkBackendNames, unknownWebhookBackends } from '../../../references/backend-names.ts'
import { ownIssuerReference } from '../../../runtime-config/issuers.ts'
import type { ResolvedReferences } from '../../../references/reference.ts'
import { specFailure } from '../../../references/resolve.ts'
import {
  authServerPart,
  checkAuthServerReplicas,
  machineReplicaFailure,
  resourceFailure,
} from '../../../runtime-config/auth-server.ts'
import { headerIdentifiers } from '../../../runtime-config/header-forward.ts'
import { checkSessionPassword, sessionStoragePart } from '../../../runtime-config/session-storage.ts'
import { type ConfigPart, failed, type SyncFailure } from '../../../sync/conditions.ts'
import { type ClientUrls, exposureOf } from '../exposure.ts'
import { asksForCertificates } from '../serving-tls.ts'
import type { ProxyTarget, proxyReferences, ProxyContext } from './references.ts'
import { definedFields } from '../../../base/kube.ts'

type Values = ResolvedReferences<typeof proxyReferences>['values']

/** The proxy's target. */
export type ForwardTarget = Pick<
  input.ProxyFile,
  'targetUri' | 'targetTls' | 'transport' | 'proxyMode' | 'targetAddresses' | 'identifyCallers'
>

export interface BuiltProxyConfig {
  /** The configuration; undefined when there are errors. */
  readonly file: input.ProxyFile | undefined
  readonly authServer: input.AuthServerFile | undefined
  readonly failures: readonly SyncFailure[]
  readonly hashes: Readonly<Record<string, string | undefined>>
  readonly accountToken: boolean
}

/** Builds the proxy's files from the resolved references. */
export function proxyConfig(
  target: ProxyTarget,
  { values, failures, hashes }: ResolvedReferences<typeof proxyReferences>,
  forward: ForwardTarget,
): BuiltProxyConfig {
  const { context, needs } = target
  const { spec } = context
  const incoming = values.issuers ?? values.oidc
  const oidc = incoming?.oidc
  checkPrimaryProvider(context)
  checkWebhookBackends(context)
  const server = embeddedServer(target, values, oidc)
  if (server.value) {
    const observed = context.child('Deployment', target.workload.names.proxy)
    checkAuthServerReplicas(context.conditions, server.value, mostReplicas(desiredReplicas(target), observed))
  }
  const outgoing = outgoingStrategy(target, values.externalAuth, server.value)
  const password = checkSessionPassword(context, spec.sessionStorage, needs)
  for (const [field, hash] of Object.entries(hashes)) needs.revision(field, hash)
  const found = [...Object.values(failures), server.failure, outgoing.failure, password]
  const stopped = { file: undefined, authServer: undefined, hashes, accountToken: false }
  const all = found.filter((failure) => failure !== undefined)
  if (all.length > 0) return { ...stopped, failures: all }
  const authServer = server.value && authServerOf(target, server.value, oidc)
  const owner = { scope: 'proxy', namespace: context.namespace, name: context.name }
  const file = definedFields({
    name: context.name,
    ...forward,
    host: '0.0.0.0',
    port: spec.proxyPort,
    resourceUrl: oidc?.resource,
    // Trusts the forwarding headers that the Gateway or Ingress of an exposed server sets.
    trustProxyHeaders: spec.trustProxyHeaders || exposureOf(context) !== undefined || undefined,
    endpointPrefix: spec.endpointPrefix || undefined,
    oidc,
    issuers: values.issuers?.issuers.length ? values.issuers.issuers : undefined,
    dpop: spec.dpop,
    authz: values.authz && withoutPrimaryProvider(values.authz),
    audit: spec.audit?.enabled ? { enabled: true, component: context.name } : undefined,
    telemetry: values.telemetry,
    rateLimiting: spec.rateLimiting,
    sessionStorage: sessionStoragePart(spec.sessionStorage, context.settings, owner, needs),
    tools: values.tools,
    webhooks: values.webhooks,
    headerForward: headerIdentifiers(needs, context.name, spec.headerForward),
    outgoingAuth: outgoing.value,
  })
  const violations = [
    ...validateRuntime('proxy', file).violations,
    ...(authServer ? validateRuntime('authserver', authServer).violations : []),
  ]
  const invalid = specFailure(violations, 'ConfigInvalid')
  if (invalid) return { ...stopped, failures: [invalid] }
  return { file, authServer, failures: [], hashes, accountToken: incoming?.accountToken ?? false }
}

function withoutPrimaryProvider({ primaryUpstreamProvider: _, ...authz }: RuntimeAuthz): RuntimeAuthz {
  return authz
}

/** Returns an error for a setting that only virtual servers use. */
function checkPrimaryProvider({ conditions, spec }: ProxyContext): void {
  if (spec.authzConfig?.inline?.primaryUpstreamProvider === undefined) return
  conditions.set(
    'AuthzPrimaryUpstreamProviderIgnored',
    'True',
    'PrimaryUpstreamProviderIgnored',
    'authzConfig.inline.primaryUpstreamProvider only applies to a VirtualMCPServer',
  )
}

function checkWebhookBackends(context: ProxyContext): void {
  const { webhookConfigRef } = context.spec
  checkBackendNames(context, [context.name], (known) =>
    unknownWebhookBackends(webhookConfigRef, known, (name) => context.find('MCPWebhookConfig', name)),
  )
}

/** Lists the URLs at which clients reach this server, for the host name check. */
export function clientUrls(context: ProxyContext): ClientUrls {
  const { authServerRef } = context.spec
  const server = authServerRef && context.filled('MCPExternalAuthConfig', authServerRef.name)
  return {
    'the resourceUrl of oidcConfigRef': ownIssuerReference(context.spec)?.resourceUrl,
    'the issuer of authServerRef': server?.spec.embeddedAuthServer?.issuer,
  }
}

/** Returns the embedded authorization server. Only one of the two references may define the server. */
function embeddedServer(
  target: ProxyTarget,
  { externalAuth: external, authServer: reference }: Values,
  oidcConfig: RuntimeOidc | undefined,
): ConfigPart<EmbeddedAuthServerConfig | undefined> {
  const { conditions } = target.context
  const own = external?.spec.embeddedAuthServer
  const server = reference?.spec.embeddedAuthServer ?? own
  if (!server) return { value: undefined }
  const type = reference ? 'AuthServerRefValidated' : 'ExternalAuthConfigValidated'
  const reason = reference ? 'AuthServerRefInvalidConfig' : 'InvalidConfig'
  const why =
    own && reference
      ? 'authServerRef and externalAuthConfigRef both define an embedded authorization server'
      : (issuerFailure(server) ??
        pairingFailure(server, oidcConfig) ??
        machineReplicaFailure(server, mostReplicas(desiredReplicas(target))) ??
        dpopFailure(server, target.context.spec.dpop) ??
        certificateFailure(server, target.context.spec.tls) ??
        injectionFailure(server, reference ? external : undefined))
  if (why === undefined) return { value: server }
  conditions.set(type, 'False', reason, why)
  return failed(reason, why)
}

function desiredReplicas({ context, workload }: ProxyTarget): DesiredReplicas {
  return { replicas: workload.replicas, autoscaling: context.spec.autoscaling }
}

function dpopFailure({ dpop }: EmbeddedAuthServerConfig, own: Dpop | undefined): string | undefined {
  const violation = dpopModeViolation(dpop, own)
  return violation && `spec.dpop.mode: ${violation}`
}

function certificateFailure(
  { tlsClientCertificateBoundAccessTokens: binds }: EmbeddedAuthServerConfig,
  tls: ServingTLS | undefined,
): string | undefined {
  if (binds !== true || tls?.clientCABundleRef) return undefined
  return 'spec.tls.clientCABundleRef is required, because the embedded authorization server binds tokens to certificates'
}

/**
 * Checks that the incoming OIDC settings match the embedded server: the issuer is the same, the audience equals the
 * resource, and the server's clients have no other resource.
 */
function pairingFailure(
  server: EmbeddedAuthServerConfig,
  oidcConfig: RuntimeOidc | undefined,
): string | undefined {
  if (!oidcConfig) return 'an embedded authorization server requires oidcConfigRef'
  if (oidcConfig.issuer !== server.issuer) {
    return 'the issuer of the embedded authorization server must match the issuer of the MCPOIDCConfig'
  }
  return oidcConfig.audience === oidcConfig.resource
    ? resourceFailure(server, oidcConfig.resource)
    : 'the audience of oidcConfigRef must equal its resourceUrl, the audience of issued tokens'
}

/** Rejects strategies that would add credentials that the server is configured to strip. */
function injectionFailure(
  server: EmbeddedAuthServerConfig,
  external: MCPExternalAuthConfig | undefined,
): string | undefined {
  const type = external?.spec.type
  if (!server.disableUpstreamTokenInjection || (type !== 'tokenExchange' && type !== 'cloudSts'))
    return undefined
  return `disableUpstreamTokenInjection cannot be combined with an externalAuthConfigRef of type ${type}`
}

/** Returns the strategy of externalAuthConfigRef. Defaults to the upstream token when there is an embedded server. */
function outgoingStrategy(
  { context, needs }: ProxyTarget,
  external: MCPExternalAuthConfig | undefined,
  server: EmbeddedAuthServerConfig | undefined,
): ConfigPart<Strategy | undefined> {
  const upstreams = server?.upstreamProviders.map(({ name }) => name)
  if (external && external.spec.type !== 'embeddedAuthServer') {
    const part = toStrategy(external, { needs, upstreams, enableObo: context.settings.enableObo })
    if (part.failure) {
      context.conditions.set(
        'ExternalAuthConfigValidated',
        'False',
        part.failure.reason,
        part.failure.message,
      )
    }
    return part
  }
  const provider = upstreams?.[0]
  if (provider === undefined || server?.disableUpstreamTokenInjection) return { value: undefined }
  return { value: { type: 'upstream_inject', upstreamInject: { providerName: provider } } }
}

function authServerOf(
  { context, needs }: ProxyTarget,
  server: EmbeddedAuthServerConfig,
  oidcConfig: RuntimeOidc | undefined,
): input.AuthServerFile {
  return authServerPart(server, {
    kind: context.stored.kind,
    namespace: context.namespace,
    name: context.name,
    resource: oidcConfig?.resource ?? oidcConfig?.audience ?? '',
    scopes: ownIssuerReference(context.spec)?.scopes ?? [],
    primaryUpstreamProvider: undefined,
    clusterDomain: context.settings.clusterDomain,
    behindEdge: exposureOf(context) !== undefined,
    clientCertificates: asksForCertificates(context),
    needs,
  })
}
