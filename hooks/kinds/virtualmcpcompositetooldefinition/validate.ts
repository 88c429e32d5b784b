/**
 * VirtualMCPCompositeToolDefinition: the workflow checks, on its spec.
 */
import type { Problem, VirtualMCPCompositeToolDefinition } from '../../../schemas/index.ts'
import { workflowProblems } from '../../../schemas/workflow/index.ts'

export function definitionProblems({ spec }: VirtualMCPCompositeToolDefinition): Problem[] {
  return workflowProblems(spec, 'spec')
}
