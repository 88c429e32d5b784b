import t from 'tap'
import { silentLog } from '../../../runtime/net/index.ts'
import { makeEvents } from '../../../runtime/observe/index.ts'
import { unknownHealth } from '../../../runtime/vmcp/backends/health/monitor.ts'
import type { BackendState } from '../../../runtime/vmcp/server/engine/backend-state.ts'
import { Reporter } from '../../../runtime/vmcp/server/status/report.ts'
import { proves } from '../../helpers/proves.ts'

proves('3.config.operational.failureHandling.statusReportingInterval')

function make() {
  const sent: { url: string; headers: Record<string, string>; data: Record<string, unknown> }[] = []
  const timers: { ms: number; work: () => void; cancelled: boolean }[] = []
  let status = 200
  let backends: BackendState[] = []
  let time = Date.UTC(2026, 0, 2, 3, 4, 5, 678)
  /** Contents of the ConfigMap, merged like on an API server. */
  const stored: Record<string, unknown> = {}
  const fetch = Object.assign(
    async (url: string | URL, init: { headers?: unknown; body?: unknown } = {}) => {
      const { data } = JSON.parse(String(init.body)) as { data: Record<string, unknown> }
      sent.push({ url: String(url), headers: init.headers as Record<string, string>, data })
      if (status !== 200) return new Response(null, { status })
      for (const [key, value] of Object.entries(data)) {
        if (value === null) delete stored[key]
        else stored[key] = value
      }
      return Response.json({ kind: 'ConfigMap', data: stored })
    },
    { close: async () => {} },
  )
  const reporter = new Reporter({
    api: { baseUrl: 'https://api', token: () => 'pod-token', fetch },
    namespace: 'ns',
    configMap: 'vmcp-report',
    pod: 'pod-1',
    intervalMs: () => 30_000,
    configChecksum: () => 'abc',
    backends: () => backends,
    clock: {
      now: () => time,
      after(ms, work) {
        const timer = { ms, work, cancelled: false }
        timers.push(timer)
        return () => {
          timer.cancelled = true
        }
      },
    },
    log: silentLog,
    events: makeEvents(),
  })
  return {
    reporter,
    sent,
    stored,
    pass(ms: number) {
      time += ms
    },
    set(more: BackendState[], response = 200) {
      backends = more
      status = response
    },
    /** Runs the next due timer and waits for its work. */
    async tick(ms: number) {
      const timer = timers.findLast((each) => !each.cancelled)
      t.equal(timer?.ms, ms)
      timer?.work()
      await new Promise(setImmediate)
      await new Promise(setImmediate)
    },
    entry: () => JSON.parse(String(sent.at(-1)?.data['pod-1.json'])) as Record<string, unknown>,
  }
}

const health = { ...unknownHealth, lastCheckAt: Date.UTC(2026, 0, 2, 3, 4, 0) }

const backend: BackendState = {
  name: 'x',
  url: 'http://x/mcp',
  transport: 'streamable-http',
  authType: 'unauthenticated',
  revision: undefined,
  era: 'unknown',
  caEndsAt: undefined,
  calls: { calls: 0, failed: 0, latencyMs: undefined },
  health: { ...health, status: 'healthy' },
  lists: { staleSince: undefined, repaired: 0, leftOut: 0 },
  excluded: undefined,
}

t.test('report: an excluded backend is included with the reason', async (t) => {
  const { set, tick, entry } = make()
  set([{ ...backend, url: undefined, excluded: ['backends.x.url: is not a URL'] }])
  await tick(1_000)
  t.same(entry()['backends'], [
    {
      name: 'x',
      status: 'unavailable',
      message: 'Excluded: backends.x.url: is not a URL',
      excluded: true,
    },
  ])
})

t.test('report: the message of a backend mentions stale lists and malformed items', async (t) => {
  const { reporter, set, tick, entry } = make()
  const lists = { staleSince: Date.UTC(2026, 0, 2, 3, 0, 0), repaired: 2, leftOut: 1 }
  set([{ ...backend, lists }])
  await tick(1_000)
  t.match(entry(), {
    backends: [
      {
        status: 'ready',
        message:
          'Healthy; lists unreadable since 2026-01-02T03:00:00Z; the previous lists stay in use; malformed items left out: 1; malformed items repaired: 2',
      },
    ],
  })
  await reporter.close()
})

t.test('report: writes one key of the ConfigMap, with the terms of the status', async (t) => {
  const { reporter, sent, set, tick, entry } = make()
  set([
    {
      ...backend,
      name: 'a',
      url: 'http://a/mcp',
      revision: '2025-11-25',
      health: { ...health, status: 'healthy' },
    },
    {
      ...backend,
      name: 'b',
      url: 'http://b/mcp',
      health: {
        ...health,
        status: 'unhealthy',
        consecutiveFailures: 4,
        lastErrorCategory: 'timeout',
        circuit: { state: 'open', changedAt: Date.UTC(2026, 0, 2, 3, 0, 0) },
      },
    },
  ])
  await tick(1_000)
  t.equal(sent[0]?.url, 'https://api/api/v1/namespaces/ns/configmaps/vmcp-report')
  t.match(sent[0]?.headers, {
    authorization: 'Bearer pod-token',
    'content-type': 'application/merge-patch+json',
  })
  t.same(entry(), {
    observedAt: '2026-01-02T03:04:05Z',
    configChecksum: 'abc',
    problems: [],
    replica: 'pod-1',
    backends: [
      {
        name: 'a',
        url: 'http://a/mcp',
        status: 'ready',
        message: 'Healthy',
        lastHealthCheck: '2026-01-02T03:04:00Z',
        consecutiveFailures: 0,
        mcpRevision: '2025-11-25',
      },
      {
        name: 'b',
        url: 'http://b/mcp',
        status: 'unavailable',
        message: 'Circuit breaker OPEN - Health check timed out (failures: 4)',
        lastHealthCheck: '2026-01-02T03:04:00Z',
        consecutiveFailures: 4,
        circuitBreakerState: 'open',
        circuitLastChanged: '2026-01-02T03:00:00Z',
      },
    ],
  })
  await reporter.close()
})

t.test(
  'report: written at every interval, soon after a change, again after an error, and removed at the end',
  async (t) => {
    const { reporter, sent, set, tick } = make()
    await tick(1_000)
    await tick(30_000)
    reporter.notify()
    reporter.notify()
    set([], 503)
    await tick(1_000)
    set([])
    await tick(30_000)
    t.equal(sent.length, 4)
    await reporter.close()
    t.same(sent.at(-1)?.data, { 'pod-1.json': null })
    reporter.notify()
    t.equal(sent.length, 5)
  },
)

t.test(
  'report: the entry of a killed pod is removed despite clock skew, and living pods keep theirs',
  async (t) => {
    const { reporter, stored, pass, tick } = make()
    stored['killed.json'] = '{"observedAt":"2040-01-01T00:00:00Z"}'
    let beat = 0
    await tick(1_000)
    for (let minute = 0; minute < 2; minute += 0.5) {
      stored['living.json'] = `{"observedAt":"1999-01-01T00:00:00Z","beat":${++beat}}`
      pass(30_000)
      await tick(30_000)
      t.ok('killed.json' in stored, `${minute}`)
    }
    stored['living.json'] = `{"beat":${++beat}}`
    pass(30_000)
    await tick(30_000)
    t.strictSame(Object.keys(stored).sort(), ['living.json', 'pod-1.json'])
    await reporter.close()
    t.strictSame(Object.keys(stored), ['living.json'], 'and its own entry at the end')
  },
)

t.test('report: while the API server is unavailable, living pods are not considered dead', async (t) => {
  const { reporter, stored, set, pass, tick } = make()
  stored['living.json'] = '{"beat":1}'
  await tick(1_000)
  set([], 503)
  for (let interval = 0; interval < 10; interval++) {
    pass(30_000)
    await tick(30_000)
  }
  set([])
  await tick(30_000)
  await tick(30_000)
  t.ok('living.json' in stored)
  await reporter.close()
})
