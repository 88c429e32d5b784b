/** MCPAuthzConfig: authorization policies shared by several servers. */
import type { MCPAuthzConfig } from '../../../schemas/index.ts'
import { configKind } from '../../config-kind.ts'
import { authzReferences } from '../../referrers.ts'

export const mcpAuthzConfig = configKind<MCPAuthzConfig>({
  kind: 'MCPAuthzConfig',
  validReason: 'ConfigValid',
  invalidReason: 'ConfigInvalid',
  references: authzReferences,
})
