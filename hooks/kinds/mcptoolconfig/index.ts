/** MCPToolConfig: filters and renames tools. */
import { configKind } from '../shared/config-kind.ts'
import { toolReferences } from '../../references/referrers.ts'

export const mcpToolConfig = configKind({
  kind: 'MCPToolConfig',
  validReason: 'ValidationSucceeded',
  invalidReason: 'ValidationFailed',
  references: toolReferences,
})
