/**
 * MCPToolConfig: checks of the object alone that need code.
 */
import type { MCPToolConfig, Problem } from '../../../schemas/index.ts'
import { overrideProblems } from '../../admission/tools.ts'

export function toolProblems({ spec }: MCPToolConfig): Problem[] {
  return overrideProblems(spec.toolsOverride, 'spec.toolsOverride')
}
