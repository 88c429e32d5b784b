/** MCPToolLock: rejected specs, the result in a virtual server's file, and its status. */
import t from 'tap'
import { parse } from 'yaml'
import { validateResource } from '../../../../hooks/index.ts'
import { canonicalJson, formatViolations } from '../../../../schemas/index.ts'
import { entry, resource, virtual, world } from '../../../hooks/resources.ts'
import { configMap, type World } from '../../../hooks/world.ts'

const read = { name: 'read', description: 'Reads', inputSchema: { type: 'object' } }
const lock = (spec: object = {}, name = 'search') =>
  resource('MCPToolLock', name, {
    backendRef: { kind: 'MCPServerEntry', name: 'search' },
    tools: [{ name: 'read', definition: read }],
    ...spec,
  })

interface Status {
  readonly counts?: object
  readonly drift?: readonly object[]
  readonly conditions: readonly { type: string; status: string; reason: string; message: string }[]
}
const statusOf = (w: World) => w.get('MCPToolLock', 'search')['status'] as Status
const inSync = (w: World) => statusOf(w).conditions.find(({ type }) => type === 'InSync')

function file(w: World): { toolLocks?: object[]; pinning?: object } {
  const data = w.get('ConfigMap', 'door-vmcp-config')['data'] as Record<string, string>
  return parse(data['config.yaml'] ?? '')
}

t.test('admission: a definition must have the name of its tool, and its text must be JSON', (t) => {
  const refused: readonly (readonly [object, RegExp])[] = [
    [
      { tools: [{ name: 'write', definition: read }] },
      /spec\.tools\[0\]\.definition: must have name "write"/,
    ],
    [
      { tools: [{ name: 'read', definitionText: '{"name":"read"' }] },
      /definitionText: must be a JSON object/,
    ],
    [{ tools: [{ name: 'read', definition: read, variants: [{ definitionText: '[]' }] }] }, /variants\[0\]/],
    [{ resourceTemplates: [{ name: 'file:///{p}', definition: { name: 'file' } }] }, /must have uriTemplate/],
    [{ scheme: 'gatehouse.pin.v2' }, /spec\.scheme/],
  ]
  for (const [spec, message] of refused)
    t.match(formatViolations(validateResource(lock(spec)).violations), message)
  t.strictSame(validateResource(lock()).violations, [])
  t.strictSame(
    validateResource(lock({ tools: [{ name: 'read', definitionText: JSON.stringify(read) }] })).violations,
    [],
  )
  t.end()
})

const pinning = { config: { pinning: { onChanged: 'block' } } }

t.test('a virtual server with pinning gets the locks of its backends, by kind and name', (t) => {
  const other = lock({ backendRef: { kind: 'MCPServer', name: 'search' } }, 'other')
  const w = world(
    entry('search'),
    lock({ onNew: 'warn', server: { instructions: 'Be kind' } }),
    other,
    virtual(pinning),
  )
    .ready()
    .settle()
  t.match(file(w).pinning, { onChanged: 'block' })
  t.same(file(w).toolLocks, [
    {
      name: 'search',
      backend: 'search',
      scheme: 'gatehouse.pin.v1',
      instructions: 'Be kind',
      tools: [{ name: 'read', definition: canonicalJson(read) }],
      onNew: 'warn',
    },
  ])
  const off = world(entry('search'), lock(), virtual()).ready().settle()
  t.equal(file(off).toolLocks, undefined, 'without pinning they have no effect')
  t.end()
})

t.test('an invalid lock closes only its own backend', (t) => {
  const w = world(entry('search'), lock({ tools: [{ name: 'x', definition: read }] }), virtual(pinning))
    .ready()
    .settle()
  t.match(file(w).toolLocks, [
    { backend: 'search', failure: /MCPToolLock search is not valid: .*must have name/ },
  ])
  t.match(statusOf(w).conditions, [
    { type: 'InSync', status: 'Unknown', reason: 'NotObserved' },
    { type: 'Stalled', status: 'True', reason: 'ValidationFailed' },
    { type: 'Valid', status: 'False', reason: 'ValidationFailed' },
  ])
  t.end()
})

t.test('an invalid lock keeps its valid strictness settings', (t) => {
  const settings = { onChanged: 'block', onNew: 'never', onRemoved: 'warn' }
  const observing = { config: { pinning: { onChanged: 'observe', onNew: 'observe' } } }
  const broken = lock({ tools: [{ name: 'x', definition: read }], ...settings })
  const w = world(entry('search'), broken, virtual(observing)).ready().settle()
  const [found] = file(w).toolLocks ?? []
  t.match(found, { backend: 'search', failure: /search is not valid/, onChanged: 'block', onRemoved: 'warn' })
  t.notOk(found && 'onNew' in found)
  t.end()
})

t.test(
  'the related rule selects by labels only: Metacontroller rejects a rule with labels and a namespace',
  (t) => {
    const rules = world().hooks.byKind('MCPToolLock')?.customize({ controller: {}, parent: lock() })
    t.strictSame(rules?.relatedResources, [
      {
        apiVersion: 'v1',
        resource: 'configmaps',
        labelSelector: { matchLabels: { 'app.kubernetes.io/component': 'vmcp-report' } },
      },
    ])
    const data = { 'pod-1.json': JSON.stringify({ pinning: [reported({ changed: 1 })] }) }
    const w = world(entry('search'), lock(), virtual(pinning), configMap('unlabelled', data)).ready().settle()
    t.match(
      inSync(w),
      { status: 'Unknown', reason: 'NotObserved' },
      'a ConfigMap without the label is ignored',
    )
    t.end()
  },
)

t.test('status: clock skew between pods hides no reported differences', (t) => {
  const w = world(entry('search'), lock(), virtual(pinning)).ready().settle()
  const report = (observedAt: string, counts: object) =>
    JSON.stringify({ observedAt, pinning: [reported(counts)] })
  w.setData('door-vmcp-status', {
    'behind.json': report('2026-01-01T00:00:00Z', { changed: 3 }),
    'ahead.json': report('2026-01-01T01:00:00Z', {}),
  }).settle()
  t.match(inSync(w), { status: 'False' })
  t.end()
})

t.test('status: a report for a backend of another kind with the same name is ignored', (t) => {
  const w = world(entry('search'), lock(), virtual(pinning)).ready().settle()
  const told = (locks: readonly string[]) => {
    const report = { pinning: [{ ...reported({ changed: 1 }), locks }] }
    w.setData('door-vmcp-status', { 'pod-1.json': JSON.stringify(report) }).settle()
  }
  told(['other'])
  t.match(inSync(w), { status: 'Unknown', reason: 'NotObserved' })
  told(['more', 'search'])
  t.match(inSync(w), { status: 'False', reason: 'ToolsChanged' })
  t.end()
})

function reported(counts: object) {
  const all = { pinned: 1, new: 0, changed: 0, removed: 0, ...counts }
  return { backend: 'search', lock: 'ok', observed: true, counts: all, drift: [] }
}

t.test('status: the worst report of all running servers applies', (t) => {
  const w = world(entry('search'), lock(), virtual(pinning)).ready().settle()
  t.match(inSync(w), { status: 'Unknown', reason: 'NotObserved' })
  const told = (pinning: object) => {
    const data = { 'pod-1.json': JSON.stringify({ pinning: [{ backend: 'other' }, pinning] }), 'x.json': '{' }
    w.setData('door-vmcp-status', data).settle()
  }
  const counts = { pinned: 1, new: 0, changed: 0, removed: 0 }
  const one = { backend: 'search', lock: 'ok', observed: true, counts, drift: [] as object[] }
  told(one)
  t.match(inSync(w), { status: 'True', reason: 'AllPinned' })
  t.match(statusOf(w).counts, counts)
  const rows: readonly (readonly [object, string])[] = [
    [{ ...counts, changed: 1, new: 2, removed: 3 }, 'ToolsChanged'],
    [{ ...counts, new: 2, removed: 3 }, 'NewTools'],
    [{ ...counts, removed: 3 }, 'ToolsMissing'],
  ]
  for (const [counted, reason] of rows) {
    told({ ...one, counts: counted })
    t.match(inSync(w), { status: 'False', reason })
  }
  const drift = { kind: 'tool', name: 'read', state: 'changed', parts: ['text'], digest: 'sha256:00' }
  told({
    ...one,
    counts: { ...counts, changed: 1 },
    drift: [drift, { state: 'odd' }, 5, { ...drift, state: 'evil' }],
  })
  t.same(statusOf(w).drift, [drift], "invalid parts of a pod's report are ignored")
  told({ ...one, lock: 'invalid', failure: 'twice' })
  t.match(inSync(w), { status: 'False', reason: 'LockNotUsed', message: 'twice' })
  told({ ...one, observed: false })
  t.match(inSync(w), { status: 'Unknown', reason: 'NotObserved' })
  t.end()
})
