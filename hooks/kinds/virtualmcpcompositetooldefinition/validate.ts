/**
 * VirtualMCPCompositeToolDefinition: the workflow checks, on its spec.
 */
import type { Violation, VirtualMCPCompositeToolDefinition } from '../../../schemas/index.ts'
import { workflowProblems } from '../../../schemas/workflow/index.ts'

export function definitionProblems({ spec }: VirtualMCPCompositeToolDefinition): Violation[] {
  return workflowProblems(spec, 'spec')
}
