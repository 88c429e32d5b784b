/**
 * VirtualMCPServer: checks of the object alone that need code.
 */
import type { Problem, VirtualMCPServer } from '../../../schemas/index.ts'
import { podTemplateProblems } from '../../children/pod-template.ts'

export function virtualServerProblems({ spec }: VirtualMCPServer): Problem[] {
  return podTemplateProblems(spec.podTemplateSpec)
}
