/** The cluster of a context in the kubeconfig. The Kubernetes client is loaded only when this is used. */
import { type ClusterReader, examineCluster } from '../../doctor/index.ts'
import { refused } from '../clients/host.ts'
import { version } from '../version.ts'
import type { Examined } from './report.ts'

/** `wanted`: the name of a context, or true for the current one. */
export async function clusterTarget(wanted: string | true): Promise<Examined> {
  const { KubeConfig, CustomObjectsApi } = await import('../commands/proxy/kube-client.ts')
  const config = new KubeConfig()
  try {
    config.loadFromDefault()
  } catch {
    throw refused('--cluster: the kubeconfig cannot be read')
  }
  const known = config.getContexts().map(({ name }) => name)
  if (wanted !== true) {
    if (!known.includes(wanted)) throw refused(`--cluster: no context ${wanted}; known: ${known.join(', ')}`)
    config.setCurrentContext(wanted)
  }
  const context = config.getCurrentContext()
  // What the client makes up when there is no kubeconfig at all.
  if (context === 'loaded-context' && config.getCurrentCluster()?.server === 'http://localhost:8080') {
    throw refused('--cluster: there is no kubeconfig')
  }
  const api = config.makeApiClient(CustomObjectsApi)
  const read: ClusterReader = async ({ group, version: of, plural, namespace, name }) => {
    try {
      const got: unknown = await request(api, { group, version: of, plural }, namespace, name)
      return typeof got === 'object' && got !== null ? { ...got } : {}
    } catch (error) {
      return failureOf(error)
    }
  }
  return {
    target: `cluster of context ${context}`,
    findings: await examineCluster({ context, read, version }),
  }
}

type Api = InstanceType<typeof import('../commands/proxy/kube-client.ts')['CustomObjectsApi']>

function request(
  api: Api,
  kind: { readonly group: string; readonly version: string; readonly plural: string },
  namespace: string | undefined,
  name: string | undefined,
): Promise<unknown> {
  if (name === undefined) return api.listClusterCustomObject({ ...kind, limit: 500 })
  if (namespace === undefined) return api.getClusterCustomObject({ ...kind, name })
  return api.getNamespacedCustomObject({ ...kind, namespace, name })
}

function failureOf(error: unknown): 'absent' | 'forbidden' | 'unauthorized' | 'unreachable' {
  const status: unknown = error instanceof Error && 'code' in error ? error.code : undefined
  if (status === 404) return 'absent'
  if (status === 403) return 'forbidden'
  return status === 401 ? 'unauthorized' : 'unreachable'
}
