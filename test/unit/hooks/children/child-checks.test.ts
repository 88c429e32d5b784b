/** Child objects that the API server would reject: they are rejected in the resource, or not sent to the API server. */
import t from 'tap'
import { compareQuantities } from '../../../../hooks/children/quantity.ts'
import { sizeFailure } from '../../../../hooks/children/size.ts'
import { validateResource } from '../../../../hooks/index.ts'
import { PodNeeds } from '../../../../hooks/runtime-config/needs.ts'
import { proves } from '../../../helpers/proves.ts'
import { auth, entry, remote, resource, server, virtual, world } from '../../../hooks/resources.ts'
import type { World } from '../../../hooks/world.ts'

const overrides = (resourceOverrides: object) => ({ resourceOverrides })
const volume = (name: string, mountPath: string) => ({ name, hostPath: '/data', mountPath })
const template = (metadata: object) => ({ podTemplateSpec: { metadata } })
const tooMuch = { requests: { cpu: '2' }, limits: { cpu: '500m' } }

const refused: readonly [object, string][] = [
  [server('x', { image: 'registry.example/a b' }), 'spec.image'],
  [server('x', { resources: tooMuch }), 'spec.resources.requests.cpu'],
  [remote('x', { resources: { requests: { memory: '1Gi' }, limits: { memory: '1G' } } }), 'spec.resources'],
  [server('x', overrides({ proxyService: { labels: { team: 'not a label' } } })), 'labels.team'],
  [remote('x', overrides({ proxyDeployment: { labels: { 'a/b/c': 'x' } } })), 'labels.a/b/c'],
  [
    server('x', overrides({ proxyDeployment: { podTemplateMetadataOverrides: { labels: { _: 'x' } } } })),
    'podTemplateMetadataOverrides.labels._',
  ],
  [
    server('x', overrides({ proxyDeployment: { annotations: { 'not an annotation': 'x' } } })),
    'annotations.not an annotation',
  ],
  [
    server('x', overrides({ proxyService: { annotations: { text: 'x'.repeat(70_000) } } })),
    'proxyService.annotations',
  ],
  [server('x', { volumes: [volume('gatehouse-runtime', '/a')] }), 'spec.volumes[0].name'],
  [server('x', { volumes: [volume('a', '/gatehouse/x')] }), 'spec.volumes[0].mountPath'],
  [server('x', { volumes: [volume('a', 'c:/x')] }), 'spec.volumes[0].mountPath'],
  [server('x', { volumes: [volume('a', '/x'), volume('b', '/x')] }), 'spec.volumes[1].mountPath'],
  [virtual(template({ labels: { team: '-' } })), 'spec.podTemplateSpec.metadata.labels.team'],
  [virtual(template({ annotations: { 'a b': '1' } })), 'spec.podTemplateSpec.metadata.annotations.a'],
  [
    virtual({ podTemplateSpec: { spec: { containers: [{ name: 'vmcp', resources: tooMuch }] } } }),
    'spec.podTemplateSpec.spec.containers[0].resources.requests.cpu',
  ],
  [resource('EmbeddingServer', 'x', { resources: tooMuch }), 'spec.resources.requests.cpu'],
  [
    resource('EmbeddingServer', 'x', overrides({ statefulSet: { labels: { a: 'b c' } } })),
    'spec.resourceOverrides.statefulSet.labels.a',
  ],
]

t.test('admission: values that the API server would reject in a child are rejected', async (t) => {
  for (const [document, path] of refused) {
    const { violations } = validateResource(document)
    t.ok(
      violations.some((violation) => violation.path.includes(path)),
      `${path}: ${JSON.stringify(violations)}`,
    )
  }
})

t.test('admission: values that the API server accepts in a child are accepted', async (t) => {
  const labels = { 'app.kubernetes.io/part-of': 'shop', team: 'A_b.c-1', empty: '' }
  const annotations = { 'Example.com/Note': 'any text, at all' }
  const metadata = { labels, annotations }
  const accepted = [
    server('x', {
      ...overrides({
        proxyDeployment: { ...metadata, podTemplateMetadataOverrides: metadata },
        proxyService: metadata,
      }),
      resources: { requests: { cpu: '0.5', memory: '1e3' }, limits: { cpu: '500m', memory: '1Ki' } },
      volumes: [volume('a', '/x'), volume('b', '/y')],
    }),
    virtual({ podTemplateSpec: { metadata: { labels: { ...labels, old: null }, annotations } } }),
  ]
  for (const document of accepted) t.same(validateResource(document).violations, [])
})

t.test('quantities compare by amount', async (t) => {
  const less: readonly [string, string][] = [
    ['499m', '0.5'],
    ['1G', '1Gi'],
    ['1023Mi', '1Gi'],
    ['5e2', '1k'],
    ['999n', '1u'],
    ['-1', '0'],
  ]
  for (const [a, b] of less) {
    t.ok(compareQuantities(a, b) < 0, `${a} is less than ${b}`)
    t.ok(compareQuantities(b, a) > 0, `${b} is more than ${a}`)
  }
  t.equal(compareQuantities('1000m', '1'), 0)
  t.equal(compareQuantities('much', '1'), 0, 'another check reports an invalid quantity')
})

const big = 'x'.repeat(250_000)
const large: readonly [string, string, (w: World) => unknown, string, string][] = [
  [
    'MCPServer',
    'files',
    (w) => w.apply(server('files', { env: [{ name: 'BIG', value: big }] })),
    'StatefulSet',
    'mcp-files-server',
  ],
  [
    'VirtualMCPServer',
    'door',
    (w) => w.apply(virtual({ podTemplateSpec: { metadata: { annotations: { big } } } })),
    'Deployment',
    'vmcp-door',
  ],
]

t.test('size: a child that is too large is not created, and the running objects stay', async (t) => {
  for (const [kind, name, change, child, childName] of large) {
    const w = world(server('files'), virtual()).settle()
    const before = structuredClone(w.get(child, childName))
    change(w)
    w.sync(kind, name)
    t.same(w.get(child, childName)['spec'], before['spec'], kind)
    const { phase, message } = w.get(kind, name)['status'] as { phase: string; message: string }
    t.equal(phase, 'Failed')
    t.match(
      message,
      new RegExp(`${child} .* has \\d+ bytes|would result in a ${child} of at least \\d+ bytes`),
    )
  }
  t.equal(sizeFailure([]), undefined)
})

t.test('pod needs: names with dots keep their own volumes', async (t) => {
  const needs = new PodNeeds()
  for (const name of ['a.b', 'a-b'])
    needs.configFiles(`ca-bundle-${name}`, `/ca/${name}`, `bundle-of-${name}`)
  t.equal(needs.volumes.length, 2)
  for (const { name } of needs.volumes) t.match(name, /^[a-z0-9-]+$/)
})

t.test(
  'outgoing: the status reports that an authorization server cannot authenticate to a backend',
  async (t) => {
    proves('3.spec.outgoingAuth.source.discovered')
    const w = world(
      auth['server'],
      entry('a', { remoteUrl: 'https://a.example.com/mcp', externalAuthConfigRef: { name: 'server' } }),
      virtual(),
    ).settle()
    const { conditions } = w.get('VirtualMCPServer', 'door')['status'] as {
      conditions: { type: string; reason: string; message: string }[]
    }
    const condition = conditions.find(({ type }) => type === 'DiscoveredAuthConfig-a')
    t.match(condition, { status: 'True', reason: 'NoOutgoingStrategy', message: /not authenticated/ })
  },
)
