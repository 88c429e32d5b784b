/** Compares the sizes of objects with the limits of the storage. */
import { kinds } from '../../../schemas/index.ts'
import { type Cell, table } from '../vmcp/table.ts'
import { type Cluster, forEach } from './cluster.ts'

/** Request limit of etcd. ConfigMaps and Secrets have a limit of 1 MiB of data. */
const etcdKib = 1536

const paths = [
  ...kinds.map(({ kind, plural }) => [kind, `/apis/gatehouse.dev/v1beta1/${plural}`] as const),
  ['ConfigMap', '/api/v1/configmaps'],
  ['Deployment', '/apis/apps/v1/deployments'],
  ['StatefulSet', '/apis/apps/v1/statefulsets'],
  ['Service', '/api/v1/services'],
  ['Role', '/apis/rbac.authorization.k8s.io/v1/roles'],
] as const

/** Returns a table of the largest object of each kind, as JSON; etcd stores core kinds in a shorter form. */
export async function sizesTable({ api }: Cluster): Promise<string> {
  const rows: Cell[][] = []
  for (const [kind, path] of paths) {
    let count = 0
    let largest = 0
    let which = ''
    await forEach(api, path, (object) => {
      count += 1
      const bytes = Buffer.byteLength(JSON.stringify(object))
      if (bytes <= largest) return
      largest = bytes
      which = `${object.metadata.namespace}/${object.metadata.name}`
    })
    if (count > 0)
      rows.push([kind, count, which, largest / 1024, `${((100 * largest) / 1024 / etcdKib).toFixed(1)} %`])
  }
  return table(['kind', 'objects', 'the largest one', 'KiB', 'of 1.5 MiB'], rows)
}
