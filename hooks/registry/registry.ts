/** Maps each kind to its hooks. Routes, admission, references and manifests are derived from this table. */
import type { KindName } from '../../schemas/index.ts'
import type { KindHooks } from '../kinds/kind-hooks.ts'
import { embeddingServer } from '../kinds/embeddingserver/index.ts'
import { mcpAuthzConfig } from '../kinds/mcpauthzconfig/index.ts'
import { mcpCatalogue } from '../kinds/mcpcatalogue/index.ts'
import { mcpExternalAuthConfig } from '../kinds/mcpexternalauthconfig/index.ts'
import { mcpGroup } from '../kinds/mcpgroup/index.ts'
import { mcpOidcConfig } from '../kinds/mcpoidcconfig/index.ts'
import { mcpOpenApiServer } from '../kinds/mcpopenapiserver/index.ts'
import { mcpRemoteProxy } from '../kinds/mcpremoteproxy/index.ts'
import { mcpServer } from '../kinds/mcpserver/index.ts'
import { mcpServerEntry } from '../kinds/mcpserverentry/index.ts'
import { mcpTelemetryConfig } from '../kinds/mcptelemetryconfig/index.ts'
import { mcpToolConfig } from '../kinds/mcptoolconfig/index.ts'
import { mcpToolLock } from '../kinds/mcptoollock/index.ts'
import { mcpWebhookConfig } from '../kinds/mcpwebhookconfig/index.ts'
import { compositeToolDefinition } from '../kinds/virtualmcpcompositetooldefinition/index.ts'
import { virtualMcpServer } from '../kinds/virtualmcpserver/index.ts'

const registry: { readonly [K in KindName]: KindHooks<K> } = {
  EmbeddingServer: embeddingServer,
  MCPAuthzConfig: mcpAuthzConfig,
  MCPCatalogue: mcpCatalogue,
  MCPExternalAuthConfig: mcpExternalAuthConfig,
  MCPGroup: mcpGroup,
  MCPOIDCConfig: mcpOidcConfig,
  MCPOpenAPIServer: mcpOpenApiServer,
  MCPRemoteProxy: mcpRemoteProxy,
  MCPServer: mcpServer,
  MCPServerEntry: mcpServerEntry,
  MCPTelemetryConfig: mcpTelemetryConfig,
  MCPToolConfig: mcpToolConfig,
  MCPToolLock: mcpToolLock,
  MCPWebhookConfig: mcpWebhookConfig,
  VirtualMCPCompositeToolDefinition: compositeToolDefinition,
  VirtualMCPServer: virtualMcpServer,
}

/** Hooks for a kind that is unknown at compile time. Callers must pass a resource of that kind. */
export type AnyKindHooks = KindHooks<KindName>

export function kindHooks(kind: KindName): AnyKindHooks {
  return registry[kind] as AnyKindHooks
}

/** Returns the hooks of all kinds. */
export function allKindHooks(): readonly AnyKindHooks[] {
  return Object.values(registry) as readonly AnyKindHooks[]
}
