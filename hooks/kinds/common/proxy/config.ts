/**
 * The configuration of the proxy in front of one server: its file, the file of an embedded authorization server, and
 * what both need from the pod.
 */
import {
  type EmbeddedAuthServerConfig,
  formatViolations,
  type input,
  type MCPExternalAuthConfig,
  type RuntimeOidc,
  validateRuntime,
} from '../../../../schemas/index.ts'
import { mostReplicas } from '../../../children/serving/availability.ts'
import { type SyncFailure, failed, type ConfigPart } from '../../../sync/conditions.ts'
import { issuerFailure, type Strategy, toStrategy } from '../../../externalauth/index.ts'
import { headerIdentifiers } from '../../../runtime-config/header-forward.ts'
import type { PodNeeds } from '../../../runtime-config/needs.ts'
import { authServerPart, checkAuthServerReplicas } from '../../../runtime-config/auth-server.ts'
import { checkSessionPassword, sessionStoragePart } from '../../../runtime-config/session-storage.ts'
import { configHashOf } from '../../../references/resolve.ts'
import { definedFields } from '../../../children/defined.ts'
import {
  authServerReference,
  authz,
  externalAuth,
  checkGroup,
  oidc,
  telemetry,
  tools,
  webhooks,
} from './references.ts'
import { exposureOf } from '../exposure.ts'
import type { ProxyContext } from './spec.ts'

type Context = ProxyContext

/** What the proxy forwards to. */
export type ProxyTarget = Pick<
  input.ProxyFile,
  'targetUri' | 'transport' | 'proxyMode' | 'targetAddresses' | 'identifyCallers'
>

export interface BuiltProxyConfig {
  /** Undefined when there are errors. */
  readonly file: input.ProxyFile | undefined
  readonly authServer: input.AuthServerFile | undefined
  readonly failures: readonly SyncFailure[]
  readonly hashes: Readonly<Record<string, string | undefined>>
  readonly accountToken: boolean
}

/** `resource` is the resource URL when the OIDC reference names none. */
export function front(
  context: Context,
  target: ProxyTarget,
  resource: string,
  needs: PodNeeds,
): BuiltProxyConfig {
  const { spec } = context
  checkGroup(context)
  const incoming = oidc(context, needs, resource)
  const policies = authz(context, needs)
  const shown = tools(context)
  const observed = telemetry(context, needs)
  const asked = webhooks(context, needs)
  const external = externalAuth(context)
  const serverRef = authServerReference(context)
  const server = embeddedServer(context, external.value, serverRef.value, incoming.value?.oidc)
  if (server.value) checkAuthServerReplicas(context.conditions, server.value, mostReplicas(spec))
  const outgoing = outgoingStrategy(context, external.value, server.value, needs)
  const secrets = checkSessionPassword(context, spec.sessionStorage, needs)
  const hashes = hashesOf(context)
  for (const [what, hash] of Object.entries(hashes)) needs.revision(what, hash)
  const parts = [incoming, policies, shown, observed, asked, external, serverRef, server, outgoing]
  const failures = [...parts.map((part) => part.failure), secrets].filter((failure) => failure !== undefined)
  const none = { file: undefined, authServer: undefined, hashes, accountToken: false }
  if (failures.length > 0) return { ...none, failures }
  const authServer = server.value && authServerOf(context, server.value, incoming.value?.oidc, needs)
  const owner = { scope: 'proxy', namespace: context.namespace, name: context.name }
  const file = definedFields({
    name: context.name,
    ...target,
    host: '0.0.0.0',
    port: spec.proxyPort,
    resourceUrl: incoming.value ? incoming.value.oidc.resource : undefined,
    // Whoever exposes it has a proxy in front.
    trustProxyHeaders:
      spec.trustProxyHeaders || exposureOf(context, spec.exposure) !== undefined || undefined,
    endpointPrefix: spec.endpointPrefix || undefined,
    oidc: incoming.value?.oidc,
    authz: policies.value,
    audit: spec.audit?.enabled ? { enabled: true, component: context.name } : undefined,
    telemetry: observed.value,
    rateLimiting: spec.rateLimiting,
    sessionStorage: sessionStoragePart(spec.sessionStorage, context.settings, owner, needs),
    tools: shown.value,
    webhooks: asked.value,
    headerForward: headerIdentifiers(needs, context.name, spec.headerForward),
    outgoingAuth: outgoing.value,
  })
  const violations = [
    ...validateRuntime('proxy', file).violations,
    ...(authServer ? validateRuntime('authserver', authServer).violations : []),
  ]
  if (violations.length > 0)
    return { ...none, failures: [{ reason: 'ConfigInvalid', message: formatViolations(violations) }] }
  return { file, authServer, failures: [], hashes, accountToken: incoming.value?.accountToken ?? false }
}

/** The one embedded authorization server that the two references can name. */
function embeddedServer(
  context: Context,
  external: MCPExternalAuthConfig | undefined,
  reference: MCPExternalAuthConfig | undefined,
  oidcConfig: RuntimeOidc | undefined,
): ConfigPart<EmbeddedAuthServerConfig | undefined> {
  const own = external?.spec.embeddedAuthServer
  const server = reference?.spec.embeddedAuthServer ?? own
  if (!server) return { value: undefined }
  const type = reference ? 'AuthServerRefValidated' : 'ExternalAuthConfigValidated'
  const reason = reference ? 'AuthServerRefInvalidConfig' : 'InvalidConfig'
  const why =
    own && reference
      ? 'authServerRef and externalAuthConfigRef both name an embedded authorization server'
      : (issuerFailure(server) ??
        pairingFailure(server, oidcConfig) ??
        injectionFailure(server, reference ? external : undefined))
  if (why === undefined) return { value: server }
  context.conditions.set(type, 'False', reason, why)
  return failed(reason, why)
}

/** The embedded server is the incoming OIDC provider: both must speak of the same issuer and resource. */
function pairingFailure(
  server: EmbeddedAuthServerConfig,
  oidcConfig: RuntimeOidc | undefined,
): string | undefined {
  if (!oidcConfig) return 'an embedded authorization server needs oidcConfigRef'
  if (oidcConfig.issuer !== server.issuer) {
    return 'the issuer of the embedded authorization server must be the one of the MCPOIDCConfig'
  }
  return oidcConfig.audience === oidcConfig.resource
    ? undefined
    : 'the audience of oidcConfigRef must be its resourceUrl, for tokens are issued for it'
}

/** Credentials that the server strips would be added again. */
function injectionFailure(
  server: EmbeddedAuthServerConfig,
  external: MCPExternalAuthConfig | undefined,
): string | undefined {
  const type = external?.spec.type
  if (!server.disableUpstreamTokenInjection || (type !== 'tokenExchange' && type !== 'cloudSts'))
    return undefined
  return `disableUpstreamTokenInjection cannot be combined with an externalAuthConfigRef of type ${type}`
}

/** The strategy of externalAuthConfigRef, else the swap for the upstream's token that an embedded server implies. */
function outgoingStrategy(
  context: Context,
  external: MCPExternalAuthConfig | undefined,
  server: EmbeddedAuthServerConfig | undefined,
  needs: PodNeeds,
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
  context: Context,
  server: EmbeddedAuthServerConfig,
  oidcConfig: RuntimeOidc | undefined,
  needs: PodNeeds,
): input.AuthServerFile {
  return authServerPart(server, {
    kind: context.stored.kind,
    namespace: context.namespace,
    name: context.name,
    resource: oidcConfig?.resource ?? oidcConfig?.audience ?? '',
    scopes: context.spec.oidcConfigRef?.scopes ?? [],
    primaryUpstreamProvider: undefined,
    clusterDomain: context.settings.clusterDomain,
    behindEdge: exposureOf(context, context.spec.exposure) !== undefined,
    needs,
  })
}

function hashesOf(context: Context): Readonly<Record<string, string | undefined>> {
  const { spec } = context
  const hash = (kind: string, reference: { readonly name: string } | undefined) =>
    reference && configHashOf(context, kind, reference.name)
  return {
    oidcConfigHash: hash('MCPOIDCConfig', spec.oidcConfigRef),
    authzConfigHash: hash('MCPAuthzConfig', spec.authzConfigRef),
    toolConfigHash: hash('MCPToolConfig', spec.toolConfigRef),
    telemetryConfigHash: hash('MCPTelemetryConfig', spec.telemetryConfigRef),
    webhookConfigHash: hash('MCPWebhookConfig', spec.webhookConfigRef),
    externalAuthConfigHash: hash('MCPExternalAuthConfig', spec.externalAuthConfigRef),
    authServerConfigHash: hash('MCPExternalAuthConfig', spec.authServerRef),
  }
}
