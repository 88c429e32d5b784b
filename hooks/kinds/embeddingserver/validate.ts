/**
 * EmbeddingServer: checks of the object alone that need code.
 */
import type { EmbeddingServer, Violation } from '../../../schemas/index.ts'
import { metadataProblems } from '../../children/metadata-shape.ts'
import { podTemplateProblems } from '../../children/pod-template.ts'
import { imageProblems, resourcesProblems } from '../../children/spec-checks.ts'

export function embeddingProblems({ spec }: EmbeddingServer): Violation[] {
  const { statefulSet, service, persistentVolumeClaim } = spec.resourceOverrides ?? {}
  const path = 'spec.resourceOverrides'
  return [
    ...podTemplateProblems(spec.podTemplateSpec),
    ...imageProblems(spec.image, 'spec.image'),
    ...resourcesProblems(spec.resources, 'spec.resources'),
    ...metadataProblems(statefulSet, `${path}.statefulSet`),
    ...metadataProblems(
      statefulSet?.podTemplateMetadataOverrides,
      `${path}.statefulSet.podTemplateMetadataOverrides`,
    ),
    ...metadataProblems(service, `${path}.service`),
    ...metadataProblems(persistentVolumeClaim, `${path}.persistentVolumeClaim`),
  ]
}
