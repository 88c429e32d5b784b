/**
 * What the author of a valid resource should know. Shown by kubectl, at most 120 characters each; never a reason to
 * refuse.
 */
import type {
  EmbeddedAuthServerConfig,
  KindName,
  Kinds,
  MCPExternalAuthConfig,
  MCPRemoteProxy,
  MCPServer,
  VirtualMCPServer,
} from '../../schemas/index.ts'
import { workflowWarnings } from '../../schemas/workflow/index.ts'
import { issuerFailure } from '../externalauth/embedded-auth-server.ts'
import { fieldsOf, listOf } from '../kube.ts'
import { unknownBackendsOf } from '../references/backend-names.ts'

type Warnings<K extends KindName> = (resource: Kinds[K]) => readonly string[]

const warnings: { readonly [K in KindName]?: Warnings<K> } = {
  MCPExternalAuthConfig: externalAuth,
  MCPRemoteProxy: remoteProxy,
  MCPServer: server,
  VirtualMCPCompositeToolDefinition: ({ spec }) => workflowWarnings(spec),
  VirtualMCPServer: virtualServer,
}

export function warningsOf(resource: Kinds[KindName]): readonly string[] {
  const find = warnings[resource.kind] as Warnings<KindName> | undefined
  return find?.(resource) ?? []
}

function externalAuth({ spec }: MCPExternalAuthConfig): string[] {
  if (spec.type === 'unauthenticated') return ['type unauthenticated: the backend gets no credentials']
  return spec.embeddedAuthServer ? authServer(spec.embeddedAuthServer, 'embeddedAuthServer') : []
}

function authServer(config: EmbeddedAuthServerConfig, where: string): string[] {
  const found: string[] = []
  if (issuerFailure(config) !== undefined) {
    found.push(
      `${where}.issuer: http needs insecureAllowHTTP on this host; the server will not start without it`,
    )
  }
  if (!config.signingKeySecretRefs?.length) {
    found.push(
      `${where}: without signingKeySecretRefs every restart invalidates all tokens (development only)`,
    )
  }
  if (!config.hmacSecretRefs?.length) {
    found.push(
      `${where}: without hmacSecretRefs every restart invalidates codes and refresh tokens (development only)`,
    )
  }
  return found
}

function server({ spec }: MCPServer): string[] {
  const found = primaryIgnored(spec)
  // RFC 2606: a host that cannot exist. `gatehouse import` writes it where it knows no image.
  if (/^[^/]+\.invalid(?::\d+)?\//.test(spec.image)) {
    found.push('image stands for one that is still to be set; no cluster can pull it')
  }
  const containers = listOf(fieldsOf(fieldsOf(spec.podTemplateSpec)['spec'])['containers']).map(fieldsOf)
  const command = containers.find((container) => container['name'] === 'mcp')?.['command']
  if (spec.transport === 'stdio' && !Array.isArray(command)) {
    found.push(
      'transport stdio needs the command of the container mcp in podTemplateSpec to run in a cluster',
    )
  }
  if (spec.transport === 'stdio' && (spec.replicas ?? 0) > 1) {
    found.push('transport stdio has one proxy at most; replicas is taken as 1')
  }
  return found
}

function remoteProxy({ spec }: MCPRemoteProxy): string[] {
  return primaryIgnored(spec)
}

function primaryIgnored({ authzConfig }: Pick<MCPServer['spec'], 'authzConfig'>): string[] {
  return authzConfig?.inline?.primaryUpstreamProvider === undefined
    ? []
    : ['authzConfig.inline.primaryUpstreamProvider is ignored here; it is for VirtualMCPServer']
}

function virtualServer({ spec }: VirtualMCPServer): string[] {
  const { config } = spec
  const found = (config?.compositeTools ?? []).flatMap(workflowWarnings)
  if (spec.incomingAuth.authzConfig?.inline?.primaryUpstreamProvider !== undefined) {
    found.push(
      'authzConfig.inline.primaryUpstreamProvider is deprecated; set authServerConfig.primaryUpstreamProvider',
    )
  }
  if (config?.telemetry) found.push('config.telemetry is deprecated here; use telemetryConfigRef')
  if (config?.incomingAuth) found.push('config.incomingAuth is superseded by spec.incomingAuth')
  if (config?.outgoingAuth) found.push('config.outgoingAuth is superseded by spec.outgoingAuth')
  if (config?.passthroughHeaders && spec.passthroughHeaders) {
    found.push('config.passthroughHeaders is superseded by spec.passthroughHeaders')
  }
  if (config?.backends?.length && spec.outgoingAuth?.source !== 'inline') {
    found.push('config.backends is used only with outgoingAuth.source inline')
  }
  found.push(...backendNames(spec))
  if (spec.embeddingServerRef && config?.optimizer?.embeddingService !== undefined) {
    found.push('config.optimizer.embeddingService is overridden by embeddingServerRef')
  }
  return spec.authServerConfig ? [...found, ...authServer(spec.authServerConfig, 'authServerConfig')] : found
}

/**
 * Names beside those of static backends. Members of the group are backends too and not known here, so a name is doubted
 * only where a static backend has a similar one.
 */
function backendNames(spec: VirtualMCPServer['spec']): string[] {
  if (spec.outgoingAuth?.source !== 'inline') return []
  const names = (spec.config?.backends ?? []).map(({ name }) => name)
  return unknownBackendsOf(spec, names).flatMap(({ path, similar }) =>
    similar === undefined
      ? []
      : [clip(`no static backend has this name; did you mean ${similar}? ${path}`, 120)],
  )
}

function clip(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text
}
