/**
 * A foreign object with the name of a child is detected, for every kind of child that the registry declares, in the
 * requests that Metacontroller sends for the rules of `customize`.
 */
import t from 'tap'
import { hookSettings, makeHooks } from '../../hooks/index.ts'
import { catalogue } from '../helpers/hooks/catalogue-cases.ts'
import { group, redis, remote, server, virtual } from './resources.ts'
import { type Condition, resource, type Stored, testSettings, World } from './world.ts'

const gatewayApi = hookSettings({ ...testSettings, gatewayApi: true })
const autoscaling = { minReplicas: 2, maxReplicas: 6 }
const gateway = { hostname: 'tools.example.com', gateway: { name: 'public' } }
const ingress = { hostname: 'tools.example.com', ingress: {} }

/** Together, these parents have a child of each kind. */
const parents: Readonly<Record<string, Stored>> = {
  'a stdio server that is attached to': server('files', { transport: 'stdio' }),
  'a server with an autoscaler behind a Gateway': server('files', {
    autoscaling,
    exposure: gateway,
    ...redis,
  }),
  'a server of several pods behind an Ingress': server('files', {
    replicas: 2,
    backendReplicas: 2,
    exposure: ingress,
    ...redis,
  }),
  'a remote proxy with an autoscaler behind a Gateway': remote('crm', {
    autoscaling,
    exposure: gateway,
    ...redis,
  }),
  'a remote proxy behind an Ingress': remote('crm', { exposure: ingress }),
  'a virtual server with an autoscaler behind a Gateway': virtual({
    autoscaling,
    exposure: gateway,
    ...redis,
  }),
  'a virtual server behind an Ingress': virtual({ exposure: ingress }),
  'a catalogue of several pods behind an Ingress': catalogue({ replicas: 2, exposure: ingress }),
  'a catalogue behind a Gateway': catalogue({ exposure: gateway }),
  'an embedding server': resource('EmbeddingServer', 'embed', {}),
}

const made = new Map<string, Set<string>>()

for (const [what, parent] of Object.entries(parents)) {
  const { kind, metadata } = parent
  const world = () => new World(gatewayApi).apply(group).settle().apply(structuredClone(parent))
  const { children } = world().sync(kind, metadata.name)
  for (const child of children) {
    made.set(kind, (made.get(kind) ?? new Set()).add(child.kind))
    t.test(`owned: ${what}: a foreign ${child.kind} ${child.metadata.name} is detected`, async (t) => {
      const { name, namespace = '' } = child.metadata
      const others = { apiVersion: child.apiVersion, kind: child.kind, metadata: { name, namespace } }
      const { status, children: applied } = world().apply(others).sync(kind, metadata.name)
      const { conditions } = status as { readonly conditions: readonly Condition[] }
      const condition = conditions.find(({ type }) => type === 'ChildrenOwned')
      t.match(condition, { status: 'False', reason: 'ChildConflict' })
      t.match(condition?.message, `${child.kind} ${name} exists`)
      t.equal(applied.length, children.length, 'and the children do not change')
    })
  }
}

t.test('owned: the parents of this test have a child of each kind', async (t) => {
  for (const { kind, childKinds } of makeHooks(gatewayApi))
    t.same(made.get(kind) ?? new Set(), new Set(childKinds.map((child) => child.kind)), kind)
})

t.test('owned: customize requests only kinds that the children use', async (t) => {
  const asked = (settings: typeof testSettings, object: Stored) => {
    const hook = makeHooks(settings).byKind(object.kind)
    const { relatedResources } = hook?.customize({ parent: object }) ?? { relatedResources: [] }
    return new Set(relatedResources.map(({ resource: name }) => name))
  }
  const routed = virtual({ exposure: gateway })
  t.ok(asked(gatewayApi, routed).has('httproutes'))
  t.notOk(asked(testSettings, routed).has('httproutes'), 'a cluster without the Gateway API has no such kind')
  const plain = asked(gatewayApi, virtual({ replicas: 1, serviceAccount: 'own' }))
  for (const name of [
    'httproutes',
    'ingresses',
    'horizontalpodautoscalers',
    'poddisruptionbudgets',
    'serviceaccounts',
    'roles',
    'rolebindings',
  ])
    t.notOk(plain.has(name), name)
})
