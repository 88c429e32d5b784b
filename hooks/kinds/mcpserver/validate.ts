/**
 * MCPServer: checks of the object alone that need code.
 */
import type { MCPServer, Problem } from '../../../schemas/index.ts'
import { podTemplateProblems } from '../../children/pod-template.ts'

export function serverProblems({ spec }: MCPServer): Problem[] {
  return podTemplateProblems(spec.podTemplateSpec)
}
