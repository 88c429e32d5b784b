/** MCPToolConfig: filters and renames tools. */
import { configKind } from '../config-kind.ts'
import type { MCPToolConfig, Violation } from '../../../schemas/index.ts'
import { overrideViolations } from '../common/checks/tools.ts'

export const mcpToolConfig = configKind({
  kind: 'MCPToolConfig',
  validate: toolViolations,
  validReason: 'ValidationSucceeded',
  invalidReason: 'ValidationFailed',
})

function toolViolations({ spec }: MCPToolConfig): Violation[] {
  return overrideViolations(spec.toolsOverride, 'spec.toolsOverride')
}
