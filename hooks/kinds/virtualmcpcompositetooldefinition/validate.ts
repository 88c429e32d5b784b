/**
 * VirtualMCPCompositeToolDefinition: the workflow checks, on its spec.
 */
import type { Violation, VirtualMCPCompositeToolDefinition } from '../../../schemas/index.ts'
import { workflowViolations } from '../../../schemas/workflow/index.ts'

export function definitionViolations({ spec }: VirtualMCPCompositeToolDefinition): Violation[] {
  return workflowViolations(spec, 'spec')
}
