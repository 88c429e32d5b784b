/**
 * VirtualMCPCompositeToolDefinition: the workflow checks, on its spec.
 */
import type { Problem, VirtualMCPCompositeToolDefinition } from '../../../schemas/index.ts'
import { workflowProblems } from '../../workflow/checks.ts'

export function definitionProblems({ spec }: VirtualMCPCompositeToolDefinition): Problem[] {
  return workflowProblems(spec, 'spec')
}
