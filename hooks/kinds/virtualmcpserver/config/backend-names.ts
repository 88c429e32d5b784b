/** Names of backends in the spec, and in the webhooks and workflows that it refers to, that no backend has. */
import {
  checkBackendNames,
  unknownBackendsOf,
  unknownWebhookBackends,
} from '../../../references/backend-names.ts'
import type { SyncContext } from '../../../sync/context.ts'

/** `known` are the names of all backends, usable or not. */
export function checkNames(context: SyncContext<'VirtualMCPServer'>, known: readonly string[]): void {
  const { spec } = context.parent
  const find = (kind: 'VirtualMCPCompositeToolDefinition' | 'MCPWebhookConfig') => (name: string) =>
    context.find(kind, name)
  checkBackendNames(context, known, (names) => [
    ...unknownBackendsOf(spec, names, find('VirtualMCPCompositeToolDefinition')),
    ...unknownWebhookBackends(spec.webhookConfigRef, names, find('MCPWebhookConfig')),
  ])
}
