/** The Kubernetes API of a context in the kubeconfig. The Kubernetes client is loaded only when this is used. */
import { invalidConfig } from '../../schemas/index.ts'
import { type KubeClient, loadKubeClient } from '../kube/index.ts'

export type CustomObjects = InstanceType<KubeClient['CustomObjectsApi']>

export interface ClusterAccess {
  readonly api: CustomObjects
  /** Name of the context. */
  readonly context: string
}

/** `wanted`: the name of a context, or true for the current one. `flag` names the option in messages. */
export async function clusterAccess(wanted: string | true, flag: string): Promise<ClusterAccess> {
  const { KubeConfig, CustomObjectsApi } = await loadKubeClient()
  const config = new KubeConfig()
  try {
    config.loadFromDefault()
  } catch {
    throw invalidConfig(`${flag}: the kubeconfig cannot be read`)
  }
  const known = config.getContexts().map(({ name }) => name)
  if (wanted !== true) {
    if (!known.includes(wanted))
      throw invalidConfig(`${flag}: no context ${wanted}; known: ${known.join(', ')}`)
    config.setCurrentContext(wanted)
  }
  const context = config.getCurrentContext()
  // What the client makes up when there is no kubeconfig at all.
  if (context === 'loaded-context' && config.getCurrentCluster()?.server === 'http://localhost:8080') {
    throw invalidConfig(`${flag}: there is no kubeconfig`)
  }
  return { api: config.makeApiClient(CustomObjectsApi), context }
}

/** HTTP status of a failed request; undefined when the API could not be reached. */
export function statusOf(error: unknown): number | undefined {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'number' ? code : undefined
}
