/** Measures the work that a single change causes in a settled installation. */
import { type Cell, table } from '../vmcp/table.ts'
import type { Cluster } from './cluster.ts'
import { large, namespaceOf } from './fleet.ts'
import { quiet } from './settle.ts'

interface Change {
  readonly what: string
  readonly namespace: string
  readonly path: string
  readonly spec: object
}

const team = namespaceOf(0)

const changes: readonly Change[] = [
  { what: 'a virtual server', namespace: team, path: 'virtualmcpservers/door-0', spec: { replicas: 3 } },
  {
    what: 'an entry of a team',
    namespace: team,
    path: 'mcpserverentries/entry-0',
    spec: { remoteUrl: 'https://elsewhere.example.com/mcp' },
  },
  { what: 'a group of a team', namespace: team, path: 'mcpgroups/group-0', spec: { description: 'Changed' } },
  {
    what: 'a tool configuration',
    namespace: team,
    path: 'mcptoolconfigs/tools-0',
    spec: { toolsFilter: ['read'] },
  },
  {
    what: 'policies of a team',
    namespace: team,
    path: 'mcpauthzconfigs/policies-0',
    spec: { config: { policies: ['permit(principal, action, resource) when { true };'] } },
  },
  {
    what: 'one of the many backends',
    namespace: large.namespace,
    path: 'mcpserverentries/backend-0',
    spec: { remoteUrl: 'https://elsewhere.example.com/mcp' },
  },
  {
    what: 'the virtual server of many backends',
    namespace: large.namespace,
    path: `virtualmcpservers/${large.server}`,
    spec: { replicas: 3 },
  },
  {
    what: 'one of the many leaves the group',
    namespace: large.namespace,
    path: 'mcpserverentries/backend-1',
    spec: { groupRef: { name: 'nowhere' } },
  },
]

export async function changesTable(cluster: Cluster): Promise<string> {
  const rows: Cell[][] = []
  for (const { what, namespace, path, spec } of changes) {
    const [calls, requests, start] = [
      await cluster.hookCalls(),
      await cluster.apiRequests(),
      performance.now(),
    ]
    const url = `/apis/gatehouse.dev/v1beta1/namespaces/${namespace}/${path}`
    const { status } = await cluster.api.send('PATCH', url, { spec })
    if (status !== 200) throw new Error(`${path}: ${status}`)
    const seconds = await quiet(cluster, start)
    const asked = (await cluster.hookCalls()).since(calls)
    const sent = (await cluster.apiRequests()).since(requests)
    rows.push([what, seconds, asked.total, asked.text, sent.total - 1, sent.text])
  }
  return table(['changed', 's', 'hook calls', 'which', 'API requests', 'which, with the change itself'], rows)
}
