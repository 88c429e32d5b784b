/** Health and circuit breaker of backends as clients and operators see them: lists, calls, notifications, reports. */
import t from 'tap'
import { openSession, stateless, type WireSession } from '../../helpers/mcp/wire.ts'
import { proves } from '../../helpers/proves.ts'
import { type RawBackend, startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

proves(
  '3.config.operational.failureHandling.circuitBreaker.enabled',
  '3.config.operational.failureHandling.circuitBreaker.failureThreshold',
  '3.config.operational.failureHandling.circuitBreaker.timeout',
  '3.state.backend.unhealthy',
  '3.state.backend.healthy',
)

interface Report {
  readonly summary: Record<string, number>
  readonly backends: Record<string, Record<string, unknown>>
}

async function report(origin: string): Promise<Report> {
  return (await (await fetch(`${origin}/api/backends/health`)).json()) as Report
}

async function names(session: WireSession): Promise<string[]> {
  const { response } = await session.request('tools/list')
  return ((response?.result?.['tools'] ?? []) as { name: string }[]).map(({ name }) => name)
}

/** A backend that can be broken. The test controls its timers. */
async function rig(failureHandling: Record<string, unknown>) {
  let broken = false
  let now = Date.parse('2026-01-01T00:00:00Z')
  const timers: { at: number; work: () => void }[] = []
  const backend: RawBackend = await startRawBackend({
    before: (_req, res) => {
      if (broken) res.writeHead(500).end()
      return broken
    },
  })
  const other = await startRawBackend()
  const vmcp = await startTestVmcp(
    { shaky: backend.url, solid: other.url },
    { operational: { failureHandling: { partialFailureMode: 'best_effort', ...failureHandling } } },
    {
      clock: {
        now: () => now,
        after(ms, work) {
          const timer = { at: now + ms, work }
          timers.push(timer)
          return () => void timers.splice(timers.indexOf(timer), 1)
        },
      },
    },
  )
  const session = await openSession(vmcp.url)
  const stream = await session.listen()
  return {
    backend,
    vmcp,
    session,
    changed: () => stream.next(({ method }) => method === 'notifications/tools/list_changed'),
    break: () => void (broken = true),
    repair: () => void (broken = false),
    pass(ms: number) {
      now += ms
      for (const timer of timers.filter(({ at }) => at <= now)) {
        timers.splice(timers.indexOf(timer), 1)
        timer.work()
      }
    },
    async close() {
      stream.close()
      await Promise.all([vmcp.close(), backend.close(), other.close()])
    },
  }
}

t.test(
  'failed calls open the circuit: tools are not listed, no request is sent, and a successful trial closes it',
  async (t) => {
    const r = await rig({
      healthCheckInterval: '1h',
      circuitBreaker: { enabled: true, failureThreshold: 2, timeout: '60s' },
    })
    t.teardown(() => r.close())
    t.same(await names(r.session), ['shaky_echo', 'solid_echo'])
    t.match((await report(r.vmcp.origin)).backends['shaky'], { circuit_state: 'closed' })

    r.break()
    for (let i = 0; i < 2; i++)
      t.match((await r.session.request('tools/call', { name: 'shaky_echo' })).response?.result, {
        isError: true,
      })
    await r.changed()
    t.same(await names(r.session), ['solid_echo'])
    t.match((await report(r.vmcp.origin)).backends['shaky'], { circuit_state: 'open' })
    t.match((await fetch(`${r.vmcp.origin}/readyz`)).status, 200, 'the server itself is healthy')
    const before = r.backend.requests.length
    t.match(
      (await r.session.request('tools/call', { name: 'shaky_echo' })).response?.result,
      { isError: true, content: [{ text: 'backend shaky is temporarily unavailable: try again later' }] },
      'not reported as unknown',
    )
    t.equal(
      (await r.session.request('tools/call', { name: 'shaky_typo' })).response?.error?.code,
      -32602,
      'items that it never had are unknown',
    )
    t.equal(r.backend.requests.length, before, 'the backend gets no request')

    r.pass(30_000)
    t.same(await names(r.session), ['solid_echo'], 'not before the pause has passed')
    r.repair()
    r.pass(31_000)
    t.same(await names(r.session), ['shaky_echo', 'solid_echo'])
    t.notOk((await r.session.request('tools/call', { name: 'shaky_echo' })).response?.result?.['isError'])
    t.match((await report(r.vmcp.origin)).backends['shaky'], { circuit_state: 'closed' })
  },
)

t.test('failed checks remove a backend from the lists, and a successful one restores it', async (t) => {
  const r = await rig({ healthCheckInterval: '30s', healthCheckTimeout: '5s', unhealthyThreshold: 2 })
  t.teardown(() => r.close())
  t.same(await names(r.session), ['shaky_echo', 'solid_echo'])
  const until = async (wanted: (shaky: Record<string, unknown>) => boolean): Promise<Report> => {
    for (;;) {
      const found = await report(r.vmcp.origin)
      if (wanted(found.backends['shaky'] ?? {})) return found
    }
  }
  await until(({ status }) => status === 'healthy')
  r.break()
  r.pass(30_000)
  const once = await until(({ consecutive_failures }) => consecutive_failures === 1)
  t.equal(once.backends['shaky']?.['status'], 'healthy', 'one success is not enough')
  t.ok((await names(r.session)).includes('solid_echo'))
  r.pass(30_000)
  const twice = await until(({ status }) => status === 'unhealthy')
  t.match(twice, {
    summary: { total: 2, healthy: 1, unhealthy: 1 },
    backends: { shaky: { consecutive_failures: 2, last_error_category: 'backend_unavailable' } },
  })
  await r.changed()
  t.same(await names(r.session), ['solid_echo'])
  for (const response of [
    await r.session.request('tools/call', { name: 'shaky_echo' }),
    await stateless(r.vmcp.url, 'tools/call', { name: 'shaky_echo' }),
  ])
    t.match(response.text, /backend shaky is temporarily unavailable/, 'calls report it')
  t.notMatch(
    JSON.stringify(twice),
    /127\.0\.0\.1|HTTP 500/,
    'the report contains no addresses and no error texts',
  )
  r.repair()
  r.pass(30_000)
  await r.changed()
  t.same(await names(r.session), ['shaky_echo', 'solid_echo'])
})

t.test('slow calls of one client do not take a healthy backend from other clients', async (t) => {
  const held: (() => void)[] = []
  const backend = await startRawBackend({
    tools: () => ['slow', 'quick'].map((name) => `{"name":"${name}","inputSchema":{"type":"object"}}`),
    responses: {
      'tools/call': ({ params }) =>
        params['name'] === 'quick'
          ? '{"content":[]}'
          : new Promise((resolve) => held.push(() => resolve('{"content":[]}'))),
    },
  })
  const vmcp = await startTestVmcp(
    { b: backend.url },
    {
      operational: {
        timeouts: { default: '50ms' },
        failureHandling: {
          healthCheckInterval: '1h',
          circuitBreaker: { enabled: true, failureThreshold: 2 },
        },
      },
    },
  )
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const [one, other] = await Promise.all([openSession(vmcp.url), openSession(vmcp.url)])
  t.same(await names(one), ['b_quick', 'b_slow'])
  for (let i = 0; i < 4; i++)
    t.match((await one.request('tools/call', { name: 'b_slow' })).text, 'did not answer in time')
  t.match((await other.request('tools/call', { name: 'b_quick' })).response, { result: { content: [] } })
  t.match((await report(vmcp.origin)).backends['b'], { circuit_state: 'closed' })
  for (const response of held) response()
})

t.test(
  'prompts and resources of a backend with an open circuit, and names of a backend that was never listed',
  async (t) => {
    let broken = false
    const backend = await startRawBackend({
      capabilities: '{"tools":{},"prompts":{},"resources":{}}',
      responses: {
        'prompts/list': () => '{"prompts":[{"name":"p"}]}',
        'resources/list': () => '{"resources":[{"uri":"test://r","name":"r"}]}',
      },
      before: (_req, res) => {
        if (broken) res.writeHead(502).end()
        return broken
      },
    })
    const failureHandling = {
      partialFailureMode: 'best_effort',
      healthCheckInterval: '1h',
      circuitBreaker: { enabled: true, failureThreshold: 1 },
    }
    const vmcp = await startTestVmcp(
      { shaky: backend.url, dead: 'http://127.0.0.1:9/mcp' },
      { operational: { failureHandling } },
    )
    t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
    const session = await openSession(vmcp.url)
    t.same(await names(session), ['shaky_echo'])
    broken = true
    t.match((await session.request('tools/call', { name: 'shaky_echo' })).text, /internal error \(HTTP 502\)/)
    for (const [method, params] of [
      ['prompts/get', { name: 'shaky_p' }],
      ['resources/read', { uri: 'test://r' }],
    ] as const) {
      t.match((await session.request(method, params)).response?.error, {
        code: -32603,
        message: 'backend shaky is temporarily unavailable: try again later',
        data: { backends: ['shaky'] },
      })
    }
    for (const response of [
      await session.request('tools/call', { name: 'dead_anything' }),
      await stateless(vmcp.url, 'tools/call', { name: 'dead_anything' }),
      await session.request('resources/read', { uri: 'test://other' }),
    ])
      t.match(response.response?.error, { code: -32603, message: /backend dead is temporarily unavailable/ })
    t.match((await session.request('tools/call', { name: 'nobody_tool' })).response?.error, { code: -32602 })
  },
)
