/** The cluster of a context in the kubeconfig, for the checks of a cluster. */
import { type ClusterReader, examineCluster } from '../../doctor/index.ts'
import { clusterAccess, type CustomObjects, statusOf } from '../kubeconfig.ts'
import { version } from '../version.ts'
import type { Examined } from './report.ts'

/** `wanted`: the name of a context, or true for the current one. */
export async function clusterTarget(wanted: string | true): Promise<Examined> {
  const { api, context } = await clusterAccess(wanted, '--cluster')
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

function request(
  api: CustomObjects,
  kind: { readonly group: string; readonly version: string; readonly plural: string },
  namespace: string | undefined,
  name: string | undefined,
): Promise<unknown> {
  if (name === undefined) return api.listClusterCustomObject({ ...kind, limit: 500 })
  if (namespace === undefined) return api.getClusterCustomObject({ ...kind, name })
  return api.getNamespacedCustomObject({ ...kind, namespace, name })
}

function failureOf(error: unknown): 'absent' | 'forbidden' | 'unauthorized' | 'unreachable' {
  const status = statusOf(error)
  if (status === 404) return 'absent'
  if (status === 403) return 'forbidden'
  return status === 401 ? 'unauthorized' : 'unreachable'
}
