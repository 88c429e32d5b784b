/** MCPToolConfig: filters and renames tools. */
import { configKind } from '../config-kind.ts'
import { toolViolations } from './validate.ts'

export const mcpToolConfig = configKind({
  kind: 'MCPToolConfig',
  validate: toolViolations,
  validReason: 'ValidationSucceeded',
  invalidReason: 'ValidationFailed',
})
