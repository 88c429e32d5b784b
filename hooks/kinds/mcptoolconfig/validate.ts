/**
 * MCPToolConfig: checks of the object alone that need code.
 */
import type { MCPToolConfig, Violation } from '../../../schemas/index.ts'
import { overrideViolations } from '../common/checks/tools.ts'

export function toolViolations({ spec }: MCPToolConfig): Violation[] {
  return overrideViolations(spec.toolsOverride, 'spec.toolsOverride')
}
