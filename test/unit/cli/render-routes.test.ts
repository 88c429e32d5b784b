/** What spec.exposure and spec.autoscaling make is in the output of `gatehouse render`. */
import t from 'tap'
import { runGatehouse } from '../../helpers/gatehouse.ts'

const manifests = `
{apiVersion: gatehouse.dev/v1beta1, kind: MCPGroup, metadata: {name: tools}, spec: {}}
---
apiVersion: gatehouse.dev/v1beta1
kind: VirtualMCPServer
metadata: {name: door}
spec:
  groupRef: {name: tools}
  incomingAuth: {type: anonymous}
  sessionStorage: {provider: redis, address: "redis:6379"}
  autoscaling: {minReplicas: 2, maxReplicas: 4}
  exposure: {hostname: tools.example.com, gateway: {name: public}}
`

t.test('render: routes, autoscalers and disruption budgets', async (t) => {
  const { code, stdout, stderr } = await runGatehouse(['render', '-f', '-'], manifests)
  t.equal(code, 0, stderr)
  for (const kind of ['HTTPRoute', 'HorizontalPodAutoscaler', 'PodDisruptionBudget'])
    t.match(stdout, `kind: ${kind}`)
})

t.test('render: --image is in the pods, --status shows the parents with their conditions', async (t) => {
  const image = 'registry.example.com/gatehouse:of-mine'
  const pods = await runGatehouse(['render', '-f', '-', '--image', image], manifests)
  t.match(pods.stdout, new RegExp(`image: ${image}`))
  const { code, stdout } = await runGatehouse(['render', '-f', '-', '--status', '-o', 'json'], manifests)
  t.equal(code, 0)
  const { items } = JSON.parse(stdout) as { items: { kind: string; status: { phase?: string } }[] }
  t.strictSame(items.map(({ kind }) => kind).sort(), ['MCPGroup', 'VirtualMCPServer'])
  t.match(
    items.find(({ kind }) => kind === 'VirtualMCPServer'),
    { status: { url: /^http/, conditions: [{ type: String, status: String }] } },
  )
})
