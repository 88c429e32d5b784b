/**
 * What is wrong with one resource by itself: the schema with its CEL rules, and each kind's checks that need code.
 *
 * The same function serves the webhook, the command line and the syncs (an object may have been admitted before a rule
 * was made, or while the webhook was away). It looks at no other object.
 */
import {
  kinds,
  type KindName,
  type Kinds,
  type Violation,
  validateManifest,
  withDefaults,
} from '../../schemas/index.ts'
import { externalAuthViolations } from '../externalauth/index.ts'
import { embeddingViolations } from '../kinds/embeddingserver/validate.ts'
import { authzConfigViolations } from '../kinds/mcpauthzconfig/validate.ts'
import { oidcViolations } from '../kinds/mcpoidcconfig/validate.ts'
import { telemetryViolations } from '../kinds/mcptelemetryconfig/validate.ts'
import { toolViolations } from '../kinds/mcptoolconfig/validate.ts'
import { definitionViolations } from '../kinds/virtualmcpcompositetooldefinition/validate.ts'
import { remoteProxyViolations } from '../kinds/mcpremoteproxy/validate.ts'
import { entryViolations } from '../kinds/mcpserverentry/validate.ts'
import { serverViolations } from '../kinds/mcpserver/validate.ts'
import { virtualServerViolations } from '../kinds/virtualmcpserver/validate.ts'
import { byText } from '../kube.ts'
import type { CheckSettings } from '../settings.ts'

/** Problems that need code; the resource has its defaults and passes its schema. */
export type ResourceCheck<K extends KindName> = (
  resource: Kinds[K],
  settings: CheckSettings,
) => readonly Violation[]

const checks: { readonly [K in KindName]: ResourceCheck<K> } = {
  EmbeddingServer: embeddingViolations,
  MCPAuthzConfig: authzConfigViolations,
  MCPExternalAuthConfig: externalAuthViolations,
  MCPGroup: () => [],
  MCPOIDCConfig: oidcViolations,
  MCPRemoteProxy: remoteProxyViolations,
  MCPServer: serverViolations,
  MCPServerEntry: entryViolations,
  MCPTelemetryConfig: telemetryViolations,
  MCPToolConfig: toolViolations,
  VirtualMCPCompositeToolDefinition: definitionViolations,
  VirtualMCPServer: virtualServerViolations,
}

/** All problems of one resource; the schema's alone when it does not even pass those. */
export function resourceViolations(object: unknown, settings: CheckSettings): readonly Violation[] {
  const problems = validateManifest(object)
  if (problems.length > 0) return inOrder(problems)
  const resource = withDefaults(object)
  const check = checks[resource.kind] as ResourceCheck<KindName>
  return inOrder(check(resource, settings))
}

/** By path: the order of members in the manifest must not show in a status. */
function inOrder(problems: readonly Violation[]): readonly Violation[] {
  return problems.toSorted((a, b) => byText(a.path, b.path) || byText(a.message, b.message))
}

/** True for a kind of this project. */
export function isKnownKind(kind: unknown): kind is KindName {
  return kinds.some((info) => info.kind === kind)
}
