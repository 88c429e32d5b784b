/** The cluster in memory behaves like Metacontroller, as far as hooks can observe it. */
import t from 'tap'
import { applyChild } from '../../../runtime/toolkit/local/cluster/apply.ts'
import { type Hook, type Hooks, LocalCluster } from '../../../runtime/toolkit/local/cluster/cluster.ts'
import type { LocalObject } from '../../../runtime/toolkit/manifests/objects.ts'
import { matchesRule } from '../../../runtime/toolkit/local/cluster/related.ts'

const api = 'gatehouse.dev/v1beta1'
const group = (name: string, spec = {}): LocalObject => ({
  apiVersion: api,
  kind: 'MCPGroup',
  metadata: { name },
  spec,
})
const map = (name: string, data: Record<string, string>): LocalObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data,
})

interface Request {
  readonly parent: LocalObject
  readonly children: Record<string, Record<string, LocalObject>>
  readonly related: Record<string, Record<string, LocalObject>>
}

function hook(
  sync: (request: Request) => { status: object; children: LocalObject[] },
  rules: object[] = [],
): Hook {
  return {
    childKinds: [{ apiVersion: 'v1', kind: 'ConfigMap' }],
    customize: () => ({ relatedResources: rules as never }),
    sync: (request) => sync(request as Request),
  }
}

/** Returns a registry with one hook. */
const registry = (only: Hook): Hooks => ({ byKind: (kind) => (kind === 'MCPGroup' ? only : undefined) })

const clock = () => new Date('2026-01-02T03:04:05.678Z')

t.test('cluster: children are created, changed, and removed when they are no longer returned', async (t) => {
  const cluster = new LocalCluster(
    registry(
      hook(({ parent }) => ({
        status: { seen: parent.spec },
        children: parent.spec?.['child'] ? [map('c', { value: JSON.stringify(parent.spec['child']) })] : [],
      })),
    ),
    clock,
  )
  const child = () => cluster.objects.find(({ kind }) => kind === 'ConfigMap')
  cluster.declare([group('g', { child: 1 })])
  cluster.reconcile()
  t.match(child(), {
    data: { value: '1' },
    metadata: { namespace: 'default', creationTimestamp: '2026-01-02T03:04:05Z' },
  })
  t.equal(cluster.parentOf(child() as LocalObject)?.metadata.name, 'g')
  const uid = child()?.metadata.uid
  cluster.declare([group('g', { child: 2 })])
  cluster.reconcile()
  t.match(child(), { data: { value: '2' }, metadata: { uid } })
  t.match(cluster.objects[0], {
    metadata: { generation: 2 },
    status: { seen: { child: 2 }, observedGeneration: 2 },
  })
  cluster.declare([group('g')])
  cluster.reconcile()
  t.equal(child(), undefined)
})

t.test('cluster: the children of a removed parent are removed', async (t) => {
  const cluster = new LocalCluster(registry(hook(() => ({ status: {}, children: [map('c', {})] }))), clock)
  cluster.declare([group('g')])
  cluster.reconcile()
  t.equal(cluster.objects.length, 2)
  cluster.declare([])
  t.equal(cluster.objects.length, 0)
})

t.test('cluster: an object of another owner is left unchanged', async (t) => {
  const cluster = new LocalCluster(
    registry(hook(() => ({ status: {}, children: [map('taken', { by: 'hook' })] }))),
    clock,
  )
  cluster.declare([group('g'), map('taken', { by: 'other' })])
  cluster.reconcile()
  t.match(
    cluster.objects.filter(({ kind }) => kind === 'ConfigMap'),
    [{ data: { by: 'other' } }],
  )
})

t.test('cluster: related objects are those that a rule selects', async (t) => {
  const seen: string[][] = []
  const rules = [{ apiVersion: 'v1', resource: 'configmaps', namespace: 'default', names: ['a'] }]
  const watching = hook(({ related }) => {
    seen.push(Object.keys(related['ConfigMap.v1'] ?? {}))
    return { status: {}, children: [] }
  }, rules)
  const cluster = new LocalCluster(registry(watching), clock)
  cluster.declare([group('g'), map('a', {}), map('b', {})])
  cluster.reconcile()
  t.same(seen.at(-1), ['default/a'])
})

t.test('cluster: hooks that never settle cause an error instead of an endless loop', async (t) => {
  let count = 0
  const restless = hook(() => ({ status: { count: ++count }, children: [] }))
  const cluster = new LocalCluster(registry(restless), clock)
  cluster.declare([group('g')])
  t.throws(() => cluster.reconcile(), /are still changing objects/)
})

t.test(
  'apply: fields of other writers stay, and fields applied before but no longer desired are removed',
  async (t) => {
    const first = applyChild(undefined, map('c', { a: '1', b: '2' }))
    const written: LocalObject = {
      ...first,
      data: { ...first.data, report: 'by the runtime' },
      status: { ready: 1 },
    }
    const second = applyChild(written, map('c', { a: '9' }))
    t.same(second.data, { a: '9', report: 'by the runtime' })
    t.same(second.status, { ready: 1 })
  },
)

t.test(
  "related rules: labels select within the parent's namespace only, and cannot be combined with a namespace",
  (t) => {
    const rule = { apiVersion: 'v1', resource: 'configmaps', labelSelector: { matchLabels: { of: 'us' } } }

    const labelled = (namespace: string, labels: Record<string, string>): LocalObject => ({
      ...map('m', {}),
      metadata: { name: 'm', namespace, labels },
    })
    t.ok(matchesRule(labelled('team', { of: 'us' }), rule, 'team'))
    t.notOk(matchesRule(labelled('other', { of: 'us' }), rule, 'team'))
    t.notOk(matchesRule(labelled('team', { of: 'them' }), rule, 'team'))
    t.throws(() => matchesRule(labelled('team', { of: 'us' }), { ...rule, namespace: 'team' }, 'team'), {
      message: /both labelSelector and namespace/,
    })
    t.end()
  },
)
