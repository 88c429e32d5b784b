import type { Fields } from '../../../../schemas/index.ts'
import { type ClusterAccess, clusterAccess, failureOf, pagesOf } from '../../../toolkit/cluster/kubeconfig.ts'
import { version } from '../../../toolkit/terminal/self.ts'
import type { Examined } from './report.ts'
import type { ClusterReader, ObjectPath } from '../../../toolkit/cluster/objects.ts'
import { examineCluster } from '../cluster/examine.ts'

/** Checks the cluster of a kubeconfig context. `wanted` is the context's name, or true for the current context. */
export async function clusterTarget(wanted: string | true): Promise<Examined> {
  const { get, context } = await clusterAccess({ context: wanted, subject: '--cluster' })
  const read: ClusterReader = async (resource) => {
    if (resource.name === undefined) return readAll(get, resource)
    const answer = await get(resource).catch(() => undefined)
    return answer && answer.status < 300 ? answer.body : failureOf(answer?.status)
  }
  return {
    target: `cluster of context ${context}`,
    findings: await examineCluster({ context, read, version }),
  }
}

/** Reads all pages of a list. */
async function readAll(get: ClusterAccess['get'], list: ObjectPath): ReturnType<ClusterReader> {
  const items: Fields[] = []
  for await (const page of pagesOf(get, list)) {
    if (!page.items) return failureOf(page.status)
    items.push(...page.items)
  }
  return { items }
}
