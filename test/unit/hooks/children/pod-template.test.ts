import t from 'tap'
import { podTemplateErrors } from '../../../../hooks/children/checks/pod-shape.ts'
import { validateResource } from '../../../../hooks/index.ts'
import { proves } from '../../../helpers/proves.ts'
import { server, virtual, world } from '../../../hooks/resources.ts'

interface Pod {
  metadata: { labels: Record<string, string>; annotations: Record<string, string> }
  spec: {
    imagePullSecrets?: { name: string; note?: string }[]
    nodeSelector?: unknown
    containers: { name: string; env: { name: string; value?: string }[]; resources: unknown; image: string }[]
  }
}

function pod(podTemplateSpec: object, spec: object = {}): Pod {
  const w = world(virtual({ podTemplateSpec, ...spec })).settle()
  return (w.get('Deployment', 'vmcp-door')['spec'] as { template: Pod }).template
}

t.test('podTemplateSpec: customizes the container called vmcp, and may add more containers', async (t) => {
  proves('3.spec.podTemplateSpec')
  const { spec } = pod({
    spec: {
      nodeSelector: { disk: 'ssd' },
      containers: [
        { name: 'vmcp', env: [{ name: 'EXTRA', value: '1' }], resources: { limits: { cpu: 2 } } },
        { name: 'sidecar', image: 'registry.example/sidecar:1' },
      ],
    },
  })
  t.strictSame(spec.nodeSelector, { disk: 'ssd' })
  t.strictSame(
    spec.containers.map(({ name }) => name),
    ['vmcp', 'sidecar'],
  )
  t.ok(spec.containers[0]?.env.some(({ name }) => name === 'EXTRA'))
  t.match(spec.containers[0]?.resources, { limits: { cpu: '2', memory: '512Mi' } })
})

t.test(
  'imagePullSecrets: union by name with the pod template, whose entry wins; the account gets the field only',
  async (t) => {
    proves(
      '3.spec.imagePullSecrets',
      '3.spec.imagePullSecrets.merge',
      '3.spec.imagePullSecrets.serviceAccount',
      '3.version.imagePullSecrets',
    )
    const spec = {
      imagePullSecrets: [{ name: 'a' }, { name: 'b' }],
      podTemplateSpec: {
        spec: { imagePullSecrets: [{ name: 'b', note: 'of the template' }, { name: 'c' }] },
      },
    }
    t.strictSame(pod(spec.podTemplateSpec, spec).spec.imagePullSecrets, [
      { name: 'a' },
      { name: 'b', note: 'of the template' },
      { name: 'c' },
    ])
    const account = world(virtual(spec)).settle().get('ServiceAccount', 'door-vmcp')
    t.strictSame(account['imagePullSecrets'], [{ name: 'a' }, { name: 'b' }])
  },
)

t.test('podTemplateSpec: cannot change the selector labels or remove the checksum', async (t) => {
  const { metadata } = pod({ metadata: { labels: { app: 'mine', team: 'a' } } })
  t.equal(metadata.labels['app'], 'virtualmcpserver')
  t.equal(metadata.labels['team'], 'a')
  t.ok(metadata.annotations['gatehouse.dev/runconfig-checksum'])
})

t.test('podTemplateSpec: cannot remove what the container needs to start', async (t) => {
  const removals = [
    { spec: { containers: [{ name: 'vmcp', $patch: 'delete' }] } },
    { spec: { volumes: [{ name: 'vmcp-config', $patch: 'delete' }] } },
    {
      spec: {
        containers: [{ name: 'vmcp', volumeMounts: [{ mountPath: '/etc/vmcp-config', $patch: 'delete' }] }],
      },
    },
    { spec: { volumes: [{ $patch: 'replace' }, { name: 'other', emptyDir: {} }] } },
    { spec: null },
  ]
  for (const podTemplateSpec of removals) {
    const w = world(virtual()).ready().apply(virtual({ podTemplateSpec }))
    const { status, children } = w.sync('VirtualMCPServer', 'door')
    t.match(status, { phase: 'Failed' }, JSON.stringify(podTemplateSpec))
    t.ok(
      (status['conditions'] as { type: string; reason: string }[]).some(
        ({ reason }) => reason === 'InvalidPodTemplateSpec',
      ),
    )
    t.ok(
      children.some((child) => child.kind === 'Deployment'),
      'the running objects stay',
    )
  }
})

t.test('podTemplateSpec: admission rejects wrong types with their path', async (t) => {
  const { violations } = validateResource(
    server('files', {
      podTemplateSpec: {
        spec: { containers: [{ name: 'mcp', env: [{ value: 1 }], ports: [{ containerPort: '80' }] }] },
      },
    }),
  )
  t.match(
    violations.map(({ path }) => path),
    [
      'spec.podTemplateSpec.spec.containers[0].env[0].name',
      'spec.podTemplateSpec.spec.containers[0].env[0].value',
      'spec.podTemplateSpec.spec.containers[0].ports[0].containerPort',
    ],
  )
})

t.test('podTemplateSpec: hostile values cause errors, not exceptions', async (t) => {
  let deep: unknown = {}
  for (let i = 0; i < 20_000; i++) deep = { spec: deep }
  for (const value of [
    null,
    1,
    'x',
    [],
    { spec: [] },
    { spec: { containers: {} } },
    { spec: { containers: [null] } },
  ]) {
    t.ok(podTemplateErrors(value).length > 0, JSON.stringify(value))
  }
  t.ok(podTemplateErrors(deep).length > 0, 'nested beyond reason')
})
