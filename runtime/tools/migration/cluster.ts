/** Reads toolhive.stacklok.dev objects from a cluster, page by page. Writes nothing. */
import type { ResourcePath } from '../../../hooks/index.ts'
import { type Fields, fieldsOf, invalidConfig } from '../../../schemas/index.ts'
import { type ClusterAccess, clusterAccess, pagesOf } from '../../toolkit/cluster/kubeconfig.ts'
import type { SourceDocument } from './convert.ts'

const group = 'toolhive.stacklok.dev'
/** Newest first. Both versions have the same schema. */
const versions = ['v1beta1', 'v1alpha1']
const plurals: Readonly<Record<string, string>> = {
  MCPGroup: 'mcpgroups',
  MCPOIDCConfig: 'mcpoidcconfigs',
  MCPExternalAuthConfig: 'mcpexternalauthconfigs',
  MCPAuthzConfig: 'mcpauthzconfigs',
  MCPTelemetryConfig: 'mcptelemetryconfigs',
  MCPToolConfig: 'mcptoolconfigs',
  MCPWebhookConfig: 'mcpwebhookconfigs',
  MCPServer: 'mcpservers',
  MCPRemoteProxy: 'mcpremoteproxies',
  MCPServerEntry: 'mcpserverentries',
  EmbeddingServer: 'embeddingservers',
  VirtualMCPCompositeToolDefinition: 'virtualmcpcompositetooldefinitions',
  VirtualMCPServer: 'virtualmcpservers',
  MCPRegistry: 'mcpregistries',
}

/**
 * Returns the objects in all namespaces, or in one namespace. Throws INVALID_CONFIG when none of the kinds exist in the
 * cluster.
 */
export async function readCluster(
  wanted: string | true,
  namespace: string | undefined,
): Promise<readonly SourceDocument[]> {
  const { get, context } = await clusterAccess({ context: wanted, subject: '--context' })
  const lists = await Promise.all(
    Object.entries(plurals).map(async ([kind, plural]) => {
      const items = await listKind(get, plural, namespace)
      return items?.map((item) => ({ ...item, kind }))
    }),
  )
  if (lists.every((list) => list === undefined)) {
    throw invalidConfig(`--context: the cluster of ${context} has no kind of ${group}`)
  }
  return lists.flatMap((list) => list ?? []).map((doc) => documentOf(doc))
}

function documentOf(doc: Fields): SourceDocument {
  const { namespace } = fieldsOf(doc['metadata'])
  return { doc, file: typeof namespace === 'string' ? namespace : 'cluster', lineOf: () => 0 }
}

/** Returns undefined when the kind does not exist in the cluster. */
async function listKind(
  get: ClusterAccess['get'],
  plural: string,
  namespace: string | undefined,
): Promise<Fields[] | undefined> {
  for (const version of versions) {
    const items = await allOf(get, { group, version, plural, namespace })
    if (items) return items.map((item) => ({ apiVersion: `${group}/${version}`, ...item }))
  }
  return undefined
}

async function allOf(get: ClusterAccess['get'], list: ResourcePath): Promise<Fields[] | undefined> {
  const found: Fields[] = []
  for await (const page of pagesOf(get, list)) {
    if (page.items) found.push(...page.items)
    else if (page.status === 404) return undefined
    else throw invalidConfig(`--context: cannot list ${list.plural}: ${reasonOf(page.status)}`)
  }
  return found
}

function reasonOf(status: number | undefined): string {
  if (status === 401) return 'the credentials were rejected'
  if (status === 403) return 'you do not have permission to list them'
  return status === undefined ? 'the API server is unreachable' : `status ${status}`
}
