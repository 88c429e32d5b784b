/**
 * Objects of our kinds that a spec names itself. `customize` asks for these by name: asking for every object of a kind
 * makes each request larger, and wakes everybody in the namespace whenever one of them changes.
 */
import { fieldsOf, type KubeObject } from '../../base/kube.ts'
import {
  authzReferences,
  externalAuthReferences,
  isReferring,
  oidcReferences,
  type References,
  telemetryReferences,
  toolReferences,
  webhookReferences,
  workflowReferences,
} from '../../references/referrers.ts'

function specNames(field: string): (object: KubeObject) => readonly unknown[] {
  return (object) => [fieldsOf(fieldsOf(object['spec'])[field])['name']]
}

const group = specNames('groupRef')

const named = {
  MCPGroup: { MCPServer: group, MCPRemoteProxy: group, MCPServerEntry: group, VirtualMCPServer: group },
  MCPExternalAuthConfig: externalAuthReferences,
  MCPOIDCConfig: oidcReferences,
  MCPAuthzConfig: authzReferences,
  MCPTelemetryConfig: telemetryReferences,
  MCPToolConfig: toolReferences,
  MCPWebhookConfig: webhookReferences,
  EmbeddingServer: { VirtualMCPServer: specNames('embeddingServerRef') },
  VirtualMCPCompositeToolDefinition: workflowReferences,
} as const satisfies Readonly<Record<string, References>>

export type NamedKind = keyof typeof named

/** For each kind, the names in a spec that nobody has checked yet. */
export function namesIn(
  object: KubeObject,
  kinds: readonly NamedKind[],
): Readonly<Record<string, readonly string[]>> {
  const { kind } = object
  if (!isReferring(kind)) return {}
  return Object.fromEntries(
    kinds.map((wanted) => {
      const references: References = named[wanted]
      const names = references[kind]?.(object) ?? []
      return [wanted, names.filter((name) => typeof name === 'string')]
    }),
  )
}
