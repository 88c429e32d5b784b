/** The cluster of a context in the kubeconfig, for the checks of a cluster. */
import { type ClusterReader, examineCluster } from '../../doctor/index.ts'
import { clusterAccess, failureOf } from '../kubeconfig.ts'
import { version } from '../version.ts'
import type { Examined } from './report.ts'

/** `wanted`: the name of a context, or true for the current one. */
export async function clusterTarget(wanted: string | true): Promise<Examined> {
  const { get, context } = await clusterAccess({ context: wanted, subject: '--cluster' })
  const read: ClusterReader = async (resource) => {
    const answer = await get(resource, resource.name === undefined ? { limit: '500' } : {}).catch(
      () => undefined,
    )
    return answer && answer.status < 300 ? answer.body : failureOf(answer?.status)
  }
  return {
    target: `cluster of context ${context}`,
    findings: await examineCluster({ context, read, version }),
  }
}
