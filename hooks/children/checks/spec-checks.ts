/**
 * Checks fields that the hooks copy unchanged into a resource's children. Otherwise, the API server would reject these
 * fields in the children, where users do not look.
 */
import type { Violation, ResourceOverrides, ResourceRequirements } from '../../../schemas/index.ts'
import { metadataViolations } from './metadata-shape.ts'
import { compareQuantities } from '../quantity.ts'

/** Reports resource requests that exceed their limits. */
export function resourcesViolations(
  { requests, limits }: ResourceRequirements = {},
  path: string,
): Violation[] {
  return (['cpu', 'memory'] as const).flatMap((resource) => {
    const request = requests?.[resource]
    const limit = limits?.[resource]
    if (request === undefined || limit === undefined || compareQuantities(request, limit) <= 0) return []
    return [{ path: `${path}.requests.${resource}`, message: `must not exceed the limit of ${limit}` }]
  })
}

/** Checks the labels and annotations for a proxy's Deployment, pods and Service. */
export function proxyOverrideViolations(
  { proxyDeployment, proxyService }: ResourceOverrides = {},
  path: string,
): Violation[] {
  return [
    ...metadataViolations(proxyDeployment, `${path}.proxyDeployment`),
    ...metadataViolations(
      proxyDeployment?.podTemplateMetadataOverrides,
      `${path}.proxyDeployment.podTemplateMetadataOverrides`,
    ),
    ...metadataViolations(proxyService, `${path}.proxyService`),
  ]
}

/** Rejects an image reference that contains whitespace. */
export function imageViolations(image: string, path: string): Violation[] {
  return /\s/.test(image) ? [{ path, message: 'must not contain whitespace' }] : []
}
