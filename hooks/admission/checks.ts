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
import { externalAuthProblems } from '../externalauth/index.ts'
import { embeddingProblems } from '../kinds/embeddingserver/validate.ts'
import { authzConfigProblems } from '../kinds/mcpauthzconfig/validate.ts'
import { oidcProblems } from '../kinds/mcpoidcconfig/validate.ts'
import { telemetryProblems } from '../kinds/mcptelemetryconfig/validate.ts'
import { toolProblems } from '../kinds/mcptoolconfig/validate.ts'
import { definitionProblems } from '../kinds/virtualmcpcompositetooldefinition/validate.ts'
import { remoteProxyProblems } from '../kinds/mcpremoteproxy/validate.ts'
import { entryProblems } from '../kinds/mcpserverentry/validate.ts'
import { serverProblems } from '../kinds/mcpserver/validate.ts'
import { virtualServerProblems } from '../kinds/virtualmcpserver/validate.ts'
import { byText } from '../kube.ts'
import type { HookSettings } from '../settings.ts'

/** Problems that need code; the resource has its defaults and passes its schema. */
export type ResourceCheck<K extends KindName> = (
  resource: Kinds[K],
  settings: Pick<HookSettings, 'enableObo'>,
) => readonly Violation[]

const checks: { readonly [K in KindName]: ResourceCheck<K> } = {
  EmbeddingServer: embeddingProblems,
  MCPAuthzConfig: authzConfigProblems,
  MCPExternalAuthConfig: externalAuthProblems,
  MCPGroup: () => [],
  MCPOIDCConfig: oidcProblems,
  MCPRemoteProxy: remoteProxyProblems,
  MCPServer: serverProblems,
  MCPServerEntry: entryProblems,
  MCPTelemetryConfig: telemetryProblems,
  MCPToolConfig: toolProblems,
  VirtualMCPCompositeToolDefinition: definitionProblems,
  VirtualMCPServer: virtualServerProblems,
}

/** All problems of one resource; the schema's alone when it does not even pass those. */
export function resourceProblems(
  object: unknown,
  settings: Pick<HookSettings, 'enableObo'>,
): readonly Violation[] {
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
