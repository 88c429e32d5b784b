/**
 * Finds the REST services in manifests, and configures them for the survey. The survey converts the OpenAPI document in
 * the same way as a running server, and does not contact the service.
 */
import { writeFileSync } from 'node:fs'
import {
  fieldsOf,
  formatViolations,
  type input,
  invalidConfig,
  type MCPOpenAPIServer,
  type Violation,
} from '../../../schemas/index.ts'
import { type KubeObject, type OfflineService, offlineService } from '../../../hooks/index.ts'
import type { Manifest } from '../../toolkit/manifests/read.ts'

/** Returns each service's name and settings. Throws INVALID_CONFIG for an invalid service. */
export function restServicesIn(
  manifests: readonly Manifest[],
  violationsOf: (doc: unknown) => readonly Violation[],
): readonly (readonly [string, OfflineService])[] {
  return manifests.flatMap(({ doc, file, line }) => {
    if (doc['kind'] !== 'MCPOpenAPIServer') return []
    const violations = violationsOf(doc)
    if (violations.length > 0) throw invalidConfig(`${file}:${line}: ${formatViolations(violations)}`)
    const server = doc as unknown as MCPOpenAPIServer
    const given = (kind: string): readonly KubeObject[] =>
      manifests
        .filter((other) => other.doc['kind'] === kind && namespaceOf(other.doc) === namespaceOf(doc))
        .map((other) => other.doc as unknown as KubeObject)
    return [[server.metadata.name, offlineService(server, given)] as const]
  })
}

function namespaceOf(doc: unknown): string {
  const { namespace } = fieldsOf(fieldsOf(doc)['metadata'])
  return typeof namespace === 'string' && namespace !== '' ? namespace : 'default'
}

interface RestBackend {
  readonly backend: Pick<input.RuntimeBackend, 'type' | 'addresses' | 'headersEnv' | 'openapi'>
  /** Name and value of the environment variable with the headers, whose values are placeholders. */
  readonly variable: string
  readonly headers: string
}

const headersVariable = 'GATEHOUSE_LOCK_HEADERS'

/** Writes the document to `path`, unless it is at a URL. `index` makes the name of the variable unique. */
export function restBackend(service: OfflineService, path: string, index: number): RestBackend {
  const { addresses, settings, document, headerNames } = service
  if ('text' in document) writeFileSync(path, document.text, { mode: 0o600 })
  const variable = `${headersVariable}_${index}`
  const names = [...new Set(headerNames.map((name) => name.toLowerCase()))]
  const addPlaintextHeaders = Object.fromEntries(names.map((name) => [name, '-']))
  return {
    backend: {
      type: 'entry',
      addresses,
      headersEnv: variable,
      openapi: { document: 'url' in document ? document : { path }, ...settings },
    },
    variable,
    headers: JSON.stringify({ addPlaintextHeaders }),
  }
}
