/** `gatehouse render` outputs the objects of spec.exposure and spec.autoscaling. */
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

t.test('render: outputs routes, autoscalers and disruption budgets', async (t) => {
  const { code, stdout, stderr } = await runGatehouse(['render', '-f', '-'], manifests)
  t.equal(code, 0, stderr)
  for (const kind of ['HTTPRoute', 'HorizontalPodAutoscaler', 'PodDisruptionBudget'])
    t.match(stdout, `kind: ${kind}`)
})

t.test(
  'render: --image sets the image of the pods, and --status shows the parents with their conditions',
  async (t) => {
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
  },
)

t.test(
  'render: a resource that cannot be rendered is reported with code 1, and the others are rendered',
  async (t) => {
    const proxy = (name: string, spec: object) => ({
      apiVersion: 'gatehouse.dev/v1beta1',
      kind: 'MCPRemoteProxy',
      metadata: { name },
      spec: { remoteUrl: 'https://mcp.example.com/mcp', ...spec },
    })
    // The variable comes from a reference, so that the template alone does not show that it cannot be merged.
    const podTemplateSpec = {
      spec: {
        containers: [
          { name: 'gatehouse', env: [{ name: 'GATEHOUSE_SECRET_TOKEN', value: 'x' }] },
          { name: 'more', image: 'x', volumeMounts: [{ name: 'nowhere', mountPath: '/x' }] },
        ],
      },
    }
    for (const output of ['yaml', 'json']) {
      const documents = [
        proxy('whole', {}),
        proxy('certless', { tls: { secretName: 'absent' } }),
        proxy('torn', { podTemplateSpec }),
        proxy('stopped', { replicas: 0 }),
      ]
      const input = documents.map((one) => JSON.stringify(one)).join('\n---\n')
      const { code, stdout, stderr } = await runGatehouse(['render', '-f', '-', '-o', output], input)
      t.equal(code, 1)
      t.match(stderr, /^MCPRemoteProxy default\/certless: not rendered: .*Secret absent/m)
      t.match(stderr, /^MCPRemoteProxy default\/torn: not rendered: .*Not found: "nowhere"/m)
      t.equal(stderr.trim().split('\n').length, 2)
      t.match(stdout, 'mcp-whole-remote-proxy')
      t.match(stdout, 'mcp-stopped-remote-proxy')
      t.notMatch(stdout, 'mcp-torn-remote-proxy')
    }
    const only = await runGatehouse(
      ['render', '-f', '-'],
      JSON.stringify(proxy('certless', { tls: { secretName: 'absent' } })),
    )
    t.strictSame([only.code, only.stdout], [1, ''], 'no blank line')
  },
)

t.test('validate: a template that cannot be merged is an error at its line', async (t) => {
  const manifest = `apiVersion: gatehouse.dev/v1beta1
kind: MCPRemoteProxy
metadata: {name: a}
spec:
  remoteUrl: https://mcp.example.com/mcp
  podTemplateSpec:
    spec:
      containers:
        - name: gatehouse
          livenessProbe:
            exec: {command: ["true"]}
`
  const { code, stderr } = await runGatehouse(['validate', '-f', '-'], manifest)
  t.equal(code, 1)
  t.match(stderr, /:11: .*livenessProbe\.exec: Forbidden.*set httpGet to null/)
})
