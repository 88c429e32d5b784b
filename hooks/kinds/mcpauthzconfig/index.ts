/** MCPAuthzConfig: authorization policies shared by several servers. */
import { configKind } from '../../config-kind.ts'
import { authzReferences } from '../../referrers.ts'

export const mcpAuthzConfig = configKind({
  kind: 'MCPAuthzConfig',
  validReason: 'ConfigValid',
  invalidReason: 'ConfigInvalid',
  references: authzReferences,
})
