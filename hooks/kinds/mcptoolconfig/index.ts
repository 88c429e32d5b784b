/** MCPToolConfig: filters and renames tools. */
import type { MCPToolConfig } from '../../../schemas/index.ts'
import { configKind } from '../../config-kind.ts'
import { toolReferences } from '../../referrers.ts'

export const mcpToolConfig = configKind<MCPToolConfig>({
  kind: 'MCPToolConfig',
  validReason: 'ValidationSucceeded',
  invalidReason: 'ValidationFailed',
  references: toolReferences,
})
