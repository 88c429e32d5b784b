/**
 * What goes wrong is told everywhere alike: each failure of the table is driven against a running server, and log,
 * `/status`, metrics and the report to the cluster must name the same.
 */
import { createServer } from 'node:net'
import { once } from 'node:events'
import t from 'tap'
import { missingRedis, startRedis } from '../../../helpers/redis.ts'
import { backend, quick, rig, toldAsItComes, toldEverywhere } from '../../../helpers/vmcp/told-rig.ts'
import { openSession } from '../../../helpers/mcp/wire.ts'
import { bareNames, vmcpConfig } from '../../../helpers/vmcp/vmcp.ts'

t.setTimeout(120_000)

t.test('a backend that is down', async (t) => {
  const up = await rig(t, { b: 'http://127.0.0.1:9/mcp' })
  await toldEverywhere(t, up, {
    type: 'backend_health',
    backend: 'b',
    message: /^backend b is unhealthy: Connection failed$/,
    metric: 'gatehouse_vmcp_backend_health{target_workload_name="b",status="unhealthy"} 1',
    health: ['unhealthy', 'unavailable'],
  })
  const { status } = await up.told()
  t.match(status.backends[0], { since: /^\d{4}-/, last_error: { message: 'Connection failed' } })
})

t.test('a backend that is slow', async (t) => {
  const server = createServer(() => {}).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as { port: number }
  await toldEverywhere(t, await rig(t, { b: `http://127.0.0.1:${port}/mcp` }), {
    type: 'backend_health',
    backend: 'b',
    message: /timed out$/,
    metric: 'gatehouse_vmcp_backend_health{target_workload_name="b",status="unhealthy"} 1',
    health: ['unhealthy', 'unavailable'],
  })
})

t.test('a backend that lies', async (t) => {
  const url = await backend(t, {
    before(_req, res) {
      res.writeHead(200, { 'content-type': 'application/json' }).end('{"jsonrpc":"1.0","nonsense":true}')
      return true
    },
  })
  await toldEverywhere(t, await rig(t, { b: url }), {
    type: 'backend_health',
    backend: 'b',
    message: /^backend b is unhealthy: /,
    metric: 'gatehouse_vmcp_backend_health{target_workload_name="b",status="unhealthy"} 1',
    health: ['unhealthy', 'unavailable'],
  })
})

t.test('a backend that wants credentials', async (t) => {
  const url = await backend(t, {
    before(_req, res) {
      res.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
      return true
    },
  })
  await toldEverywhere(t, await rig(t, { b: url }), {
    type: 'backend_health',
    backend: 'b',
    message: /^backend b is unauthenticated: Authentication failed$/,
    metric: 'gatehouse_vmcp_backend_health{target_workload_name="b",status="unauthenticated"} 1',
    health: ['unauthenticated', 'unauthenticated'],
  })
})

t.test('an open circuit', async (t) => {
  const running = await rig(
    t,
    { b: 'http://127.0.0.1:9/mcp' },
    {
      operational: {
        failureHandling: {
          ...quick.failureHandling,
          circuitBreaker: { enabled: true, failureThreshold: 2, timeout: '60s' },
        },
      },
    },
  )
  await toldEverywhere(t, running, {
    type: 'backend_circuit',
    backend: 'b',
    message: /^the circuit of backend b is open$/,
    metric: 'gatehouse_vmcp_backend_circuit{target_workload_name="b",state="open"} 1',
  })
  const { report } = await running.told()
  t.match(report.backends[0], { circuitBreakerState: 'open' })
})

t.test('an excluded backend', async (t) => {
  const url = await backend(t)
  const running = await rig(
    t,
    { good: url, bad: url },
    {
      outgoingAuth: {
        source: 'inline',
        backends: { bad: { type: 'bearer_token', bearerToken: { tokenEnv: 'NONE' } } },
      },
    },
  )
  await toldEverywhere(t, running, {
    type: 'backend_excluded',
    backend: 'bad',
    message: /^backend bad is excluded: .*NONE/,
    metric: 'gatehouse_vmcp_backends_excluded 1',
    health: ['unhealthy', 'unavailable'],
  })
})

t.test('a dropped item', async (t) => {
  const url = await backend(t, { tools: () => ['{"name":"bad","inputSchema":{"type":"array"}}'] })
  const running = await rig(t, { b: url })
  await running.call('b_bad')
  await toldEverywhere(t, running, {
    type: 'items_malformed',
    backend: 'b',
    message: /1 left out, 0 offered with repairs/,
    metric: 'gatehouse_vmcp_malformed_items_total{target_workload_name="b",action="left_out"}',
  })
})

t.test('lists that cannot be read any more', async (t) => {
  let broken = false
  let now = Date.now()
  const url = await backend(t, {
    capabilities: '{"tools":{}}',
    before(_req, res, body) {
      if (broken && body.includes('tools/list')) res.writeHead(500).end()
      return broken && body.includes('tools/list')
    },
  })
  const after = (ms: number, work: () => void) => {
    const timer = setTimeout(work, Math.min(ms, 100))
    return () => clearTimeout(timer)
  }
  const running = await rig(t, { b: url }, {}, { clock: { now: () => now, after } })
  await running.call('b_echo')
  broken = true
  now += 60_000
  await running.call('b_echo')
  await toldEverywhere(t, running, {
    type: 'lists_failed',
    backend: 'b',
    message: /could not be read again since .*; the last ones stay in use$/,
    metric: 'gatehouse_vmcp_list_read_failures_total{target_workload_name="b"}',
  })
})

t.test('a conflict of names', async (t) => {
  const [one, two] = await Promise.all([backend(t), backend(t)])
  const running = await rig(t, { one, two }, { aggregation: bareNames('one', 'two') })
  await running.call('echo')
  await toldEverywhere(t, running, { type: 'name_conflict', message: /echo/ })
})

t.test('a workflow that is beyond what all may take together', async (t) => {
  const url = await backend(t, {})
  const properties = Object.fromEntries(Array.from({ length: 399 }, (_, i) => [`p${i}`, { type: 'string' }]))
  const steps = [{ id: 'a', tool: 'one.echo' }]
  const large = (i: number) => ({ name: `w${i}`, steps, parameters: { type: 'object', properties } })
  const compositeTools = [...Array.from({ length: 6 }, (_, i) => large(i)), { name: 'small', steps }]
  const running = await rig(t, { one: url }, { compositeTools })
  const session = await openSession(running.vmcp.url)
  const { response } = await session.request('tools/list', {})
  const listed = JSON.stringify(response?.result?.['tools'])
  t.match(listed, /"name":"w4".*"name":"small"|"name":"small".*"name":"w4"/)
  t.notMatch(listed, '"name":"w5"')
  const message = /workflow w5 is left out: compositeTools\[5\]\.parameters: all workflows together may hold/
  await toldEverywhere(t, running, { type: 'name_conflict', message })
})

t.test('a tool with the name of a tool of the server itself', async (t) => {
  const named = (name: string) => JSON.stringify({ name, inputSchema: { type: 'object' } })
  const url = await backend(t, { tools: () => [named('echo'), named('call_tool'), named('plain')] })
  const tools = [{ workload: 'one', overrides: { echo: { name: 'execute_tool_script' } } }]
  const running = await rig(
    t,
    { one: url },
    {
      aggregation: { conflictResolution: 'manual', tools },
      optimizer: {},
      codeMode: { enabled: true },
    },
  )
  await running.call('find_tool')
  await toldEverywhere(t, running, {
    type: 'name_conflict',
    message: /is the name of a tool of the server itself/,
  })
  const { status } = await running.told()
  const told = status.problem_details.map(({ message }) => String(message)).join('\n')
  t.match(told, /tool call_tool of one is left out/)
  t.match(told, /tool echo, renamed to execute_tool_script, of one is left out/)
  const session = await openSession(running.vmcp.url)
  const script = 'return 1 + 1'
  for (const [name, parameters, expected] of [
    ['call_tool', { tool_name: 'execute_tool_script', parameters: { script } }, /2/],
    ['call_tool', { tool_name: 'call_tool', parameters: {} }, /tool not found: call_tool/],
  ] as const)
    t.match(JSON.stringify(await session.request('tools/call', { name, arguments: parameters })), expected)
})

t.test('a bad reload', async (t) => {
  const url = await backend(t)
  const running = await rig(t, { b: url })
  const config = vmcpConfig({ b: url })
  const bad = vmcpConfig(
    { b: url },
    { incomingAuth: { type: 'anonymous', authz: { type: 'cedar', policies: ['no policy'] } } },
  )
  t.throws(() => running.vmcp.reload(bad))
  await toldEverywhere(t, running, {
    type: 'config_refused',
    message: /the running one goes on/,
    metric: 'gatehouse_config_reloads_total{outcome="failure"} 1',
  })
  running.vmcp.reload(config)
  const { status, metrics } = await running.told()
  t.notOk(
    status.problem_details.some(({ type }) => type === 'config_refused'),
    'over with the next good one',
  )
  t.match(metrics, 'gatehouse_config_reloads_total{outcome="success"} 1')
})

t.test('settings that wait for a restart', async (t) => {
  const url = await backend(t)
  const running = await rig(t, { b: url })
  running.vmcp.reload(vmcpConfig({ b: url }, { console: { enabled: false } }))
  await toldEverywhere(t, running, {
    type: 'restart_needed',
    message: /take effect at the next start: telemetry, console$/,
  })
})

t.test('Redis that is gone', { skip: missingRedis }, async (t) => {
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const url = await backend(t)
  const running = await rig(t, { b: url }, { sessionStorage: { provider: 'redis', address: redis.addr } })
  await running.call('b_echo')
  await redis.stop()
  await toldEverywhere(t, running, { type: 'session_storage', message: /cannot be reached$/ })
})

t.test('a policy that denies', async (t) => {
  const policies = ['permit(principal, action, resource) unless { resource == Tool::"b_echo" };']
  const running = await rig(
    t,
    { b: await backend(t) },
    { incomingAuth: { type: 'anonymous', authz: { type: 'cedar', policies } } },
  )
  for (let i = 0; i < 3; i++) await running.call('b_echo')
  await toldAsItComes(
    t,
    running,
    'call_denied',
    { level: 'info', method: 'tools/call', name: undefined },
    'gatehouse_authorization_decisions_total{server="test-vmcp",decision="denied"} 3',
  )
})

t.test('a limit', { skip: missingRedis }, async (t) => {
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const running = await rig(
    t,
    { b: await backend(t) },
    {
      sessionStorage: { provider: 'redis', address: redis.addr },
      rateLimiting: { shared: { maxTokens: 1, refillPeriod: '1h' } },
    },
  )
  for (let i = 0; i < 4; i++) await running.call('b_echo')
  await toldAsItComes(
    t,
    running,
    'call_limited',
    { scope: 'shared', operation_type: 'server' },
    'decision="rejected",scope="shared",operation_type="server"} 3',
  )
})

t.test('a login that has ended', async (t) => {
  const running = await rig(
    t,
    { b: await backend(t) },
    {
      outgoingAuth: {
        source: 'inline',
        backends: { b: { type: 'upstream_inject', upstreamInject: { providerName: 'idp' } } },
      },
    },
    { upstreamTokens: { providers: ['idp'], get: async () => undefined } },
  )
  await running.call('b_echo')
  await toldAsItComes(
    t,
    running,
    'token_failed',
    { backend: 'b', strategy: 'upstream_inject', reason: /upstream_/ },
    'gatehouse_token_exchanges_total{strategy="upstream_inject",outcome="failure"}',
  )
})

t.test('calls that fail at a backend whose checks succeed', async (t) => {
  const url = await backend(t, {
    responses: { 'tools/call': ({ res }) => void res.writeHead(500).end('secret') },
  })
  const running = await rig(t, { b: url })
  for (let i = 0; i < 3; i++) await running.call('b_echo')
  await toldAsItComes(
    t,
    running,
    'backend_call_failed',
    { level: 'warn', backend: 'b', reason: 'backend_unavailable' },
    'gatehouse_vmcp_backend_errors_total{',
  )
  const { status, lines } = await running.told()
  t.match(status.backends[0], {
    health: 'healthy',
    calls: 3,
    calls_failed: 3,
    last_error: { category: 'backend_unavailable', message: 'Backend unavailable' },
    latency_ms: { p50: Number, p95: Number },
  })
  t.notMatch(JSON.stringify(lines), 'secret')
})

t.test('audit lines that are lost', async (t) => {
  const running = await rig(t, { b: await backend(t) }, { audit: { enabled: true, logFile: '/dev/full' } })
  await running.call('b_echo')
  await toldAsItComes(
    t,
    running,
    'audit_lost',
    { level: 'error', err: { code: 'ENOSPC' } },
    'gatehouse_audit_lines_lost_total',
  )
})
