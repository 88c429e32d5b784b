/**
 * Converts an MCPOpenAPIServer for the running server, and mounts its document into the pod. The running server watches
 * the mounted file, so a changed ConfigMap does not replace the pods.
 */
import type { input } from '../../../../schemas/index.ts'
import { definedFields } from '../../../base/kube.ts'
import type { PodNeeds } from '../../../runtime-config/needs.ts'
import type { SyncContext } from '../../../sync/context.ts'

type Context = SyncContext<'VirtualMCPServer'>

const directory = '/etc/gatehouse/openapi'

/** Returns the settings of a valid MCPOpenAPIServer, as a part of its backend. */
export function openApiPart(context: Context, name: string): Pick<input.RuntimeBackend, 'openapi'> {
  const spec = context.filled('MCPOpenAPIServer', name)?.spec
  if (!spec) return {}
  const { document, apiKeyQuery, operations, overrides, response } = spec
  const { configMapRef, url, sha256 } = document
  const openapi = definedFields({
    document: configMapRef
      ? { path: `${directory}/${name}/${configMapRef.key}` }
      : definedFields({ url, sha256 }),
    apiKeyQuery,
    operations,
    overrides,
    response,
  })
  return { openapi }
}

/** Mounts the document of a valid MCPOpenAPIServer, if it is in a ConfigMap. */
export function mountDocument(context: Context, needs: PodNeeds, name: string): void {
  const map = context.filled('MCPOpenAPIServer', name)?.spec.document.configMapRef
  if (!map) return
  const items = [{ key: map.key, path: map.key }]
  needs.configFiles(`openapi-${name}`, `${directory}/${name}`, map.name, items)
}
