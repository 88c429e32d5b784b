/** Addresses of cluster services, as `gatehouse dev` rewrites them. */
import t from 'tap'
import { Addresses } from '../../../../runtime/toolkit/local/addresses.ts'
import type { LocalObject } from '../../../../runtime/toolkit/manifests/objects.ts'

const workload: LocalObject = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'files', namespace: 'team' },
  spec: {
    template: {
      metadata: { labels: { app: 'files' } },
      spec: { containers: [{ name: 'c', image: 'i', ports: [{ name: 'http', containerPort: 8080 }] }] },
    },
  },
}
const service: LocalObject = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'files', namespace: 'team' },
  spec: { selector: { app: 'files' }, ports: [{ port: 80, targetPort: 'http' }] },
}

t.test('localise: a service becomes a loopback address, which addresses: private permits', async (t) => {
  const addresses = new Addresses(4483)
  const port = await addresses.portOf(workload, 8080, { isEntrance: false })
  const file = (url: string) => `backends:\n  - addresses: private\n    name: a\n    url: "${url}"\n`
  t.equal(
    addresses.localise(file('http://files.team.svc.cluster.local/mcp'), [workload, service]),
    `backends:\n  - addresses: any\n    name: a\n    url: "http://127.0.0.1:${port}/mcp"\n`,
  )
  t.equal(
    addresses.localise('targetAddresses: private\ntargetUri: http://files.team.svc\n', [workload, service]),
    `targetAddresses: any\ntargetUri: http://127.0.0.1:${port}\n`,
  )
  for (const url of ['https://mcp.example.com/mcp', 'http://other.team.svc/mcp'])
    t.equal(addresses.localise(file(url), [workload, service]), file(url), 'nothing local: nothing changes')
})

t.test('ports: outside the ephemeral range of the system, and stable for the session', async (t) => {
  const addresses = new Addresses(4483)
  const workload = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'w', namespace: 'n' } }
  const port = await addresses.portOf(workload, 8080, { isEntrance: false })
  t.ok(port >= 20_000 && port < 32_000, String(port))
  t.equal(await addresses.portOf(workload, 8080, { isEntrance: false }), port)
  t.not(await addresses.portOf(workload, 8081, { isEntrance: false }), port)
})
