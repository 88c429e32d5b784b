import t from 'tap'
import { proves } from '../../../helpers/proves.ts'
import { server, virtual, world } from '../../../hooks/resources.ts'

type Deployment = { spec: { replicas?: number } }

t.test('replicas: unset does not change the count of the Deployment', async (t) => {
  proves('3.spec.replicas')
  const w = world(virtual()).settle()
  const deployment = () => w.get('Deployment', 'vmcp-door') as unknown as Deployment
  t.notOk('replicas' in deployment().spec)
  deployment().spec.replicas = 7
  w.settle()
  t.equal(deployment().spec.replicas, 7, 'an autoscaler decided')
})

t.test(
  'replicas: removing the field keeps the running count, and other controllers can change it from then on',
  async (t) => {
    const w = world(virtual({ replicas: 3 })).settle()
    const deployment = () => w.get('Deployment', 'vmcp-door') as unknown as Deployment
    t.equal(deployment().spec.replicas, 3)
    w.apply(virtual()).settle()
    t.equal(deployment().spec.replicas, 3, 'it does not fall to 1')
    deployment().spec.replicas = 5
    w.settle()
    t.equal(deployment().spec.replicas, 5)
    t.match(
      w.sync('VirtualMCPServer', 'door').children.find((child) => child.kind === 'Deployment'),
      {
        spec: { replicas: 5 },
      },
    )
  },
)

t.test('replicas: zero is valid, and a stdio server has at most one proxy', async (t) => {
  const w = world(server('files', { replicas: 0 })).ready()
  t.match(w.get('MCPServer', 'files')['status'], { phase: 'Stopped' })
  const stdio = world(
    server('files', {
      transport: 'stdio',
      replicas: 4,
      podTemplateSpec: { spec: { containers: [{ name: 'mcp', command: ['server'] }] } },
    }),
  ).settle()
  t.match(stdio.get('Deployment', 'mcp-files-proxy'), { spec: { replicas: 1 } })
})
