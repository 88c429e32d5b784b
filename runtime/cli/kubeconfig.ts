/** The Kubernetes API of a context in the kubeconfig. The Kubernetes client, and the hooks around it, are loaded only when this is used. */
import type { ClusterResponse, ResourcePath } from '../../hooks/index.ts'
import { invalidConfig } from '../../schemas/index.ts'

export interface ClusterAccess {
  /** A GET. Resolves whatever the status; rejects when the API server cannot be reached. */
  readonly get: (resource: ResourcePath, query?: Readonly<Record<string, string>>) => Promise<ClusterResponse>
  /** Name of the context. */
  readonly context: string
  /** The namespace that the context names. */
  readonly namespace: string | undefined
  /** URL of the API server, for messages. */
  readonly server: string
}

export interface WantedCluster {
  /** Name of the context, or true for the current one. */
  readonly context: string | true
  /** Starts the messages, such as `--context`. */
  readonly subject: string
  /** What to say when there is no kubeconfig. */
  readonly absent?: string
}

/** Throws INVALID_CONFIG when the kubeconfig does not have it. */
export async function clusterAccess({
  context: wanted,
  subject,
  absent,
}: WantedCluster): Promise<ClusterAccess> {
  const { loadApiServer } = await import('../../hooks/index.ts')
  const { KubeConfig, apiPath, apiServer } = await loadApiServer()
  const config = new KubeConfig()
  try {
    config.loadFromDefault()
  } catch (cause) {
    throw invalidConfig(`${subject}: the kubeconfig cannot be read`, cause)
  }
  const known = config.getContexts().map(({ name }) => name)
  if (wanted !== true) {
    if (!known.includes(wanted))
      throw invalidConfig(`${subject}: no context ${wanted}; known: ${known.join(', ')}`)
    config.setCurrentContext(wanted)
  }
  const context = config.getCurrentContext()
  const server = config.getCurrentCluster()?.server ?? ''
  // What the client makes up when there is no kubeconfig at all.
  if (context === 'loaded-context' && server === 'http://localhost:8080')
    throw invalidConfig(`${subject}: ${absent ?? 'there is no kubeconfig'}`)
  if (server === '') throw invalidConfig(`${subject}: the context ${context} names no cluster`)
  const api = apiServer(config)
  return {
    get: (resource, query) => api({ path: apiPath(resource, query) }),
    context,
    namespace: config.getContextObject(context)?.namespace,
    server,
  }
}
