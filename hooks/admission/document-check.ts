/**
 * Checks the OpenAPI document of an MCPOpenAPIServer when its ConfigMap is among the given manifests. On a cluster, the
 * condition DocumentReady reports the same errors.
 */
import { formatViolations, validManifest, type Violation, withDefaults } from '../../schemas/index.ts'
import type { Fields, KubeObject } from '../base/kube.ts'
import { convertedDocument, documentText } from '../kinds/mcpopenapiserver/document.ts'

interface DocumentFindings {
  readonly violations: readonly Violation[]
  /** One line for each operation that cannot become a tool, and for each unused filter or override. */
  readonly warnings: readonly string[]
}

const path = 'spec.document.configMapRef'
const maxWarnings = 20

/** Returns no findings for an invalid object, which the schema reports, and for a document that is not given. */
export function documentFindings(
  object: Fields,
  given: (kind: string) => readonly KubeObject[],
): DocumentFindings {
  const none = { violations: [], warnings: [] }
  const { resource } = validManifest(object)
  if (resource?.kind !== 'MCPOpenAPIServer') return none
  const { spec } = withDefaults(resource)
  const { configMapRef } = spec.document
  const map = given('ConfigMap').find(({ metadata }) => metadata.name === configMapRef?.name)
  if (!configMapRef || !map) return none
  const text = documentText(map, configMapRef)
  const { value, failure } = text.failure ? text : convertedDocument(text.value, spec)
  // The check of ConfigMap references reports a missing key.
  if (failure?.reason === 'DocumentNotFound') return none
  if (failure) return { violations: [{ path, message: failure.message }], warnings: [] }
  const { skipped, skippedCount } = value.status
  const lines = skipped
    .slice(0, maxWarnings)
    .map(({ operation, reason, message }) => `${operation} is skipped: ${message} (${reason})`)
  const more = skippedCount - lines.length
  const findings = [
    ...[...lines, ...(more > 0 ? [`${more} more operations are skipped`] : [])].map((message) => ({
      path,
      message,
    })),
    ...value.unused.map(({ code, message }) => ({
      path: code === 'unused_override' ? 'spec.overrides' : 'spec.operations',
      message,
    })),
  ]
  return { violations: [], warnings: findings.map((finding) => formatViolations([finding])) }
}
