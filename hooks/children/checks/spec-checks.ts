/**
 * Checks of the parts of a resource that go into its children unchanged: what the API server would refuse there, where
 * nobody sees it, is refused here.
 */
import type { Violation, ResourceOverrides, ResourceRequirements } from '../../../schemas/index.ts'
import { metadataViolations } from './metadata-shape.ts'
import { compareQuantities } from '../quantity.ts'

/** A request above its limit. */
export function resourcesViolations(
  { requests, limits }: ResourceRequirements = {},
  path: string,
): Violation[] {
  return (['cpu', 'memory'] as const).flatMap((resource) => {
    const request = requests?.[resource]
    const limit = limits?.[resource]
    if (request === undefined || limit === undefined || compareQuantities(request, limit) <= 0) return []
    return [{ path: `${path}.requests.${resource}`, message: `must not be more than the limit, ${limit}` }]
  })
}

/** Labels and annotations for a proxy's Deployment, pods and Service. */
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

/** An image reference is one word. */
export function imageViolations(image: string, path: string): Violation[] {
  return /\s/.test(image) ? [{ path, message: 'must not contain white space' }] : []
}
