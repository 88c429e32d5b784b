/**
 * Phase, backend list and health of a virtual server, from pods, members and reports.
 */
import t from 'tap'
import { validateStatus } from '../../../helpers/hooks/status.ts'
import { proves } from '../../../helpers/proves.ts'
import { entry, server, virtual, world } from '../../../hooks/resources.ts'
import type { World } from '../../../hooks/world.ts'

interface Status {
  phase: string
  message: string
  backendCount: number
  conditions: { type: string; status: string; reason: string }[]
  discoveredBackends: Record<string, unknown>[]
}
const statusOf = (w: World) => w.get('VirtualMCPServer', 'door')['status'] as Status
const readyReason = (w: World) => statusOf(w).conditions.find(({ type }) => type === 'Ready')?.reason
const checksum = (w: World) =>
  (w.get('ConfigMap', 'door-vmcp-config').metadata['annotations'] as Record<string, string>)[
    'gatehouse.dev/content-checksum'
  ]
const backend = (name: string, status: string, more: object = {}) => ({
  name,
  status,
  lastHealthCheck: '2026-01-01T01:00:00Z',
  ...more,
})
const report = (w: World, backends: object[], pod = 'one', sum = checksum(w)) => ({
  [`${pod}.json`]: JSON.stringify({ configChecksum: sum, backends }),
})
const deployment = (w: World, status: object) => w.setStatus('Deployment', 'vmcp-door', status).settle()

t.test('phase: without ready pods, the state of the pods determines the phase', async (t) => {
  proves('3.state.phase')
  const w = world(server('files'), virtual()).settle()
  t.match(statusOf(w), { phase: 'Pending', message: 'Virtual MCP server is starting' })
  deployment(w, {
    observedGeneration: 1,
    conditions: [
      { type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded', message: 'no progress' },
    ],
  })
  t.match(statusOf(w), { phase: 'Failed', message: 'no progress' })
  t.equal(readyReason(w), 'DeploymentFailed')
  deployment(w, {
    observedGeneration: 1,
    conditions: [{ type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message: 'quota' }],
  })
  t.match(statusOf(w), { phase: 'Failed', message: 'quota' })
  const none = world(virtual({ replicas: 0 })).settle()
  t.match(statusOf(none), { phase: 'Pending', message: 'Virtual MCP server is stopped: it has no replicas' })
})

t.test('phase: a waiting group is Pending, a missing one Failed', async (t) => {
  const w = world(virtual())
  w.setStatus('MCPGroup', 'tools', { phase: 'Pending' })
  w.sync('VirtualMCPServer', 'door')
  t.match(statusOf(w), { phase: 'Pending' })
  w.remove('MCPGroup', 'tools').sync('VirtualMCPServer', 'door')
  t.match(statusOf(w), { phase: 'Failed' })
})

t.test('phase: with ready pods, the reports of the backends determine the phase', async (t) => {
  proves(
    '3.status.backendCount',
    '3.status.discoveredBackends.message',
    '3.status.discoveredBackends.consecutiveFailures',
    '3.status.discoveredBackends.url',
  )
  const w = world(entry('a'), entry('b'), virtual()).ready()
  const says = (...backends: object[]) =>
    statusOf(w.setData('door-vmcp-status', report(w, backends)).settle())
  t.match(says(backend('a', 'ready'), backend('b', 'unauthenticated')), { phase: 'Ready', backendCount: 2 })
  t.match(says(backend('a', 'ready'), backend('b', 'degraded')), { phase: 'Degraded', backendCount: 1 })
  t.match(
    says(
      backend('a', 'unavailable', { message: 'Connection failed (failures: 4)', consecutiveFailures: 4 }),
      backend('b', 'unavailable'),
    ),
    {
      phase: 'Degraded',
      backendCount: 0,
      discoveredBackends: [
        {
          name: 'a',
          url: 'https://a.example.com/mcp',
          message: 'Connection failed (failures: 4)',
          consecutiveFailures: 4,
        },
        { name: 'b', url: 'https://b.example.com/mcp' },
      ],
    },
  )
  t.equal(readyReason(w), 'NoRoutableBackends')
  t.match(says(backend('a', 'unknown'), backend('b', 'unknown')), { phase: 'Pending', backendCount: 0 })
  deployment(w, { availableReplicas: 0 })
  t.equal(statusOf(w).phase, 'Pending', 'whatever the last report contains')
})

t.test('phase: an empty group is Ready', async (t) => {
  t.match(statusOf(world(virtual()).ready()), { phase: 'Ready', backendCount: 0, discoveredBackends: [] })
})

t.test(
  'reports: the worst status of several pods applies, and pods with another configuration are ignored',
  async (t) => {
    const w = world(entry('a'), virtual()).ready()
    const both = {
      ...report(w, [backend('a', 'ready')], 'one'),
      ...report(w, [backend('a', 'degraded')], 'two'),
    }
    t.match(statusOf(w.setData('door-vmcp-status', both).settle()).discoveredBackends, [
      { status: 'degraded' },
    ])
    const stale = {
      ...report(w, [backend('a', 'ready')], 'one'),
      ...report(w, [backend('a', 'unavailable')], 'two', 'other'),
    }
    t.match(statusOf(w.setData('door-vmcp-status', stale).settle()).discoveredBackends, [{ status: 'ready' }])
  },
)

t.test(
  'reports: after a new member, the other members keep their health until the pods report again',
  async (t) => {
    const w = world(entry('a'), virtual()).ready()
    w.setData(
      'door-vmcp-status',
      report(w, [backend('a', 'unavailable', { consecutiveFailures: 3 })]),
    ).settle()
    w.apply(entry('b')).settle()
    t.match(statusOf(w).discoveredBackends, [
      { name: 'a', status: 'unavailable', consecutiveFailures: 3 },
      { name: 'b', status: 'ready' },
    ])
    w.apply(entry('a', { remoteUrl: 'https://moved.example.com/mcp' })).settle()
    t.match(
      statusOf(w).discoveredBackends[0],
      { name: 'a', status: 'ready', url: 'https://moved.example.com/mcp' },
      'another address is another backend',
    )
  },
)

t.test('reports: clock skew between pods hides no report', async (t) => {
  const w = world(server('files'), entry('a'), virtual()).settle()
  deployment(w, { availableReplicas: 1 })
  const at = (observedAt: string | undefined, pod: string, status: string) => ({
    [`${pod}.json`]: JSON.stringify({
      observedAt,
      configChecksum: checksum(w),
      backends: [backend('a', status)],
    }),
  })
  const statusWith = (observedAt: string | undefined) => {
    const old = at(observedAt, 'old', 'unavailable')
    w.setData('door-vmcp-status', { ...at('2026-01-01T01:10:00Z', 'new', 'ready'), ...old }).settle()
    return statusOf(w).discoveredBackends.find(({ name }) => name === 'a')?.['status']
  }
  for (const time of [
    '2026-01-01T01:09:00Z',
    '2026-01-01T00:00:00Z',
    '2040-01-01T00:00:00Z',
    undefined,
    'soon',
  ])
    t.equal(statusWith(time), 'unavailable', String(time))
  w.setData('door-vmcp-status', at('2026-01-01T01:10:00Z', 'new', 'ready')).settle()
  t.equal(
    statusOf(w).discoveredBackends.find(({ name }) => name === 'a')?.['status'],
    'ready',
    'its report was removed',
  )
})

t.test('reports: an unchanged report is written every five minutes, a changed one at once', async (t) => {
  const w = world(entry('a'), virtual()).ready()
  const seenAt = (time: string, more: object = {}) => {
    const says = backend('a', 'ready', { lastHealthCheck: `2026-01-01T01:${time}Z`, ...more })
    w.setData('door-vmcp-status', report(w, [says])).settle()
    return statusOf(w).discoveredBackends[0]?.['lastHealthCheck']
  }
  t.equal(seenAt('10:00'), '2026-01-01T01:10:00Z')
  t.equal(seenAt('10:30'), '2026-01-01T01:10:00Z')
  t.equal(seenAt('14:59'), '2026-01-01T01:10:00Z')
  t.equal(seenAt('15:00'), '2026-01-01T01:15:00Z')
  t.equal(seenAt('15:30', { message: 'Slow' }), '2026-01-01T01:15:30Z', 'a changed message')
  t.equal(seenAt('16:00'), '2026-01-01T01:16:00Z', 'and back')
  t.equal(seenAt('12:00'), '2026-01-01T01:12:00Z', 'a clock that was set back')
})

t.test('reports: the status is valid for any content of the ConfigMap', async (t) => {
  const w = world(entry('a'), virtual()).ready()
  const hostile = [
    'no json',
    '[]',
    'null',
    JSON.stringify({ configChecksum: checksum(w), backends: 'x' }),
    JSON.stringify({
      configChecksum: checksum(w),
      backends: [null, {}, { name: 'a' }, { name: 'a', status: 'odd' }],
    }),
    JSON.stringify({
      configChecksum: checksum(w),
      backends: [
        backend('a', 'ready', {
          lastHealthCheck: 'now',
          consecutiveFailures: 1e99,
          circuitBreakerState: 7,
          message: 5,
          url: 9,
          __proto__: 1,
        }),
      ],
    }),
    JSON.stringify({
      configChecksum: checksum(w),
      backends: [backend('a', 'degraded', { message: 'x'.repeat(1e6) })],
    }),
  ]
  for (const text of hostile) {
    w.setData('door-vmcp-status', { 'one.json': text, 'notes.txt': 'x' }).settle()
    t.strictSame(validateStatus('VirtualMCPServer', statusOf(w)), [], text.slice(0, 60))
  }
})

t.test(
  'group: the kind order selects one of two members with the same name, and the group reports the conflict',
  async (t) => {
    const w = world(server('same'), entry('same'), virtual()).ready()
    t.match(w.get('MCPGroup', 'tools')['status'], {
      conditions: [{}, { type: 'MemberNamesUnique', status: 'False', message: /same/ }],
    })
    t.match(statusOf(w).discoveredBackends, [{ name: 'same', url: /mcp-same-proxy/ }])
  },
)

t.test('conflicts: a foreign object with the name of a child is detected and named', async (t) => {
  const unmanaged = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: {
      name: 'vmcp-door',
      namespace: 'team',
      ownerReferences: [{ apiVersion: 'v1', kind: 'Other', name: 'o', uid: 'x', controller: true }],
    },
    spec: {},
  }
  const w = world(virtual(), unmanaged).settle()
  t.match(statusOf(w), {
    phase: 'Failed',
    message: /Deployment vmcp-door exists and is controlled by Other o/,
  })
  w.remove('Deployment', 'vmcp-door').ready()
  t.match(statusOf(w), { phase: 'Ready' })
})

t.test(
  'members: unknown without an address, unavailable after a failure, absent during deletion',
  async (t) => {
    const w = world(entry('bad', { remoteUrl: 'http://127.0.0.1/' }), server('slow'), virtual()).settle()
    t.match(statusOf(w).discoveredBackends, [
      { name: 'bad', status: 'unavailable' },
      { name: 'slow', status: 'unknown' },
    ])
    const slow = w.get('MCPServer', 'slow')
    w.apply({ ...slow, metadata: { ...slow.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } }).settle()
    t.strictSame(
      statusOf(w).discoveredBackends.map(({ name }) => name),
      ['bad'],
    )
  },
)
