/** MCPToolConfig: filters and renames tools. */
import { configKind } from '../../config-kind.ts'
import { toolReferences } from '../../referrers.ts'

export const mcpToolConfig = configKind({
  kind: 'MCPToolConfig',
  validReason: 'ValidationSucceeded',
  invalidReason: 'ValidationFailed',
  references: toolReferences,
})
