/**
 * EmbeddingServer: checks of the object alone that need code.
 */
import type { EmbeddingServer, Violation } from '../../../schemas/index.ts'
import { metadataViolations } from '../../children/checks/metadata-shape.ts'
import { podTemplateViolations } from '../../children/pod-template.ts'
import { container } from './children.ts'
import { imageViolations, resourcesViolations } from '../../children/checks/spec-checks.ts'

export function embeddingViolations({ spec }: EmbeddingServer): Violation[] {
  const { statefulSet, service, persistentVolumeClaim } = spec.resourceOverrides ?? {}
  const path = 'spec.resourceOverrides'
  return [
    ...podTemplateViolations(spec.podTemplateSpec, [container]),
    ...imageViolations(spec.image, 'spec.image'),
    ...resourcesViolations(spec.resources, 'spec.resources'),
    ...metadataViolations(statefulSet, `${path}.statefulSet`),
    ...metadataViolations(
      statefulSet?.podTemplateMetadataOverrides,
      `${path}.statefulSet.podTemplateMetadataOverrides`,
    ),
    ...metadataViolations(service, `${path}.service`),
    ...metadataViolations(persistentVolumeClaim, `${path}.persistentVolumeClaim`),
  ]
}
