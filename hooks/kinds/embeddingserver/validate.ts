/**
 * EmbeddingServer: checks of the object alone that need code.
 */
import type { EmbeddingServer, Problem } from '../../../schemas/index.ts'
import { podTemplateProblems } from '../../children/pod-template.ts'

export function embeddingProblems({ spec }: EmbeddingServer): Problem[] {
  return podTemplateProblems(spec.podTemplateSpec)
}
