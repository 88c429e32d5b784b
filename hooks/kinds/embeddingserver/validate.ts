/** Checks an EmbeddingServer against rules that its schema cannot express. */
import type { EmbeddingServer, Violation } from '../../../schemas/index.ts'
import { metadataViolations } from '../../children/checks/metadata-shape.ts'
import { mergedTemplateViolations } from '../../children/pod-template.ts'
import type { CheckSettings } from '../../base/settings.ts'
import { checkContext } from '../common/check-context.ts'
import { container, generatedTemplate } from './children.ts'
import { imageViolations, resourcesViolations } from '../../children/checks/spec-checks.ts'

export function embeddingViolations(server: EmbeddingServer, settings: CheckSettings): Violation[] {
  const { spec } = server
  const { statefulSet, service, persistentVolumeClaim } = spec.resourceOverrides ?? {}
  const path = 'spec.resourceOverrides'
  return [
    ...mergedTemplateViolations({
      user: spec.podTemplateSpec,
      generated: () => generatedTemplate(checkContext(server, 'EmbeddingServer', settings)),
      container,
    }),
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
