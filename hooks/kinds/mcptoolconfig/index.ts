/** MCPToolConfig: filters and renames tools. */
import { configKind } from '../common/config-kind.ts'
import { toolReferences } from '../../references/referrers.ts'
import { toolViolations } from './validate.ts'

export const mcpToolConfig = configKind({
  kind: 'MCPToolConfig',
  referenceFields: ['toolConfigRef'],
  validate: toolViolations,
  validReason: 'ValidationSucceeded',
  invalidReason: 'ValidationFailed',
  references: toolReferences,
})
