/**
 * MCPToolConfig: checks of the object alone that need code.
 */
import type { MCPToolConfig, Violation } from '../../../schemas/index.ts'
import { overrideProblems } from '../../admission/tools.ts'

export function toolProblems({ spec }: MCPToolConfig): Violation[] {
  return overrideProblems(spec.toolsOverride, 'spec.toolsOverride')
}
