/** MCPAuthzConfig: authorization policies shared by several servers. */
import { configKind } from '../shared/config-kind.ts'
import { authzReferences } from '../../references/referrers.ts'

export const mcpAuthzConfig = configKind({
  kind: 'MCPAuthzConfig',
  validReason: 'ConfigValid',
  invalidReason: 'ConfigInvalid',
  references: authzReferences,
})
