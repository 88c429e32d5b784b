/** MCPRemoteProxy: what the author of a valid one should know. */
import type { MCPRemoteProxy } from '../../../schemas/index.ts'
import { policyNameWarnings, primaryProviderWarnings } from '../common/checks/policies.ts'

export function remoteProxyWarnings({ spec }: MCPRemoteProxy): readonly string[] {
  return [...primaryProviderWarnings(spec.authzConfig), ...policyNameWarnings(spec.authzConfig)]
}
