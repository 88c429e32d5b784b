/** Tool search with policies, rate limits and audit. The checks apply to the called tool. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openSession, stateless, type WireAnswer, type WireSession } from '../../../helpers/mcp/wire.ts'
import { proves } from '../../../helpers/proves.ts'
import { type RawBackend, startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { missingRedis, startRedis } from '../../../helpers/redis.ts'
import { startTokenIssuer } from '../../../helpers/authserver/token-issuer.ts'
import { bareNames, startTestVmcp, vmcpConfig } from '../../../helpers/vmcp/vmcp.ts'

proves('3.config.optimizer.enabled', '3.endpoint.find-call-tool')

const tool = (name: string, description: string, annotations: unknown = {}) =>
  JSON.stringify({ name, description, annotations, inputSchema: { type: 'object' } })
const TOOLS = [
  tool('read_file', 'Reads a file', { readOnlyHint: true }),
  tool('write_file', 'Writes a file'),
  tool('delete_file', 'Deletes a file', { destructiveHint: true }),
]

type Ask = (method: string, params?: Record<string, unknown>) => Promise<WireAnswer>
type Era = 'session' | 'stateless'
const eras: readonly Era[] = ['session', 'stateless']

interface Rig {
  readonly backend: RawBackend
  as(era: Era, subject: string, claims?: Record<string, unknown>): Promise<Ask>
  reload(policies: readonly string[]): void
}

async function start(t: Test, policies: readonly string[], optimizer: unknown = {}): Promise<Rig> {
  const [issuer, backend] = await Promise.all([startTokenIssuer(), startRawBackend({ tools: () => TOOLS })])
  const more = (present: readonly string[]) => ({
    aggregation: bareNames('raw'),
    optimizer,
    incomingAuth: { ...issuer.incomingAuth, authz: { type: 'cedar', policies: present } },
  })
  const vmcp = await startTestVmcp({ raw: backend.url }, more(policies))
  t.teardown(() => Promise.all([vmcp.close(), backend.close(), issuer.close()]))
  return {
    backend,
    async as(era, subject, claims) {
      const headers = { authorization: `Bearer ${await issuer.token(subject, claims)}` }
      if (era === 'stateless') return (method, params) => stateless(vmcp.url, method, params, { headers })
      const session: WireSession = await openSession(vmcp.url, { headers })
      return (method, params) => session.request(method, params)
    },
    reload: (present) => vmcp.reload(vmcpConfig({ raw: backend.url }, more(present))),
  }
}

const find = (ask: Ask, tool_description = 'a file') =>
  ask('tools/call', { name: 'find_tool', arguments: { tool_description } })
const call = (ask: Ask, tool_name: string, parameters: unknown = {}) =>
  ask('tools/call', { name: 'call_tool', arguments: { tool_name, parameters } })

function names({ response, text }: WireAnswer): string[] {
  const found = response?.result?.['structuredContent'] as { tools: { name: string }[] } | undefined
  return found?.tools.map(({ name }) => name).toSorted() ?? [text]
}

function textOf({ response }: WireAnswer): string {
  return (response?.result?.['content'] as { text: string }[] | undefined)?.[0]?.text ?? ''
}

const called = ({ requests }: RawBackend): unknown[] =>
  requests.filter(({ method }) => method === 'tools/call').map(({ params }) => params['name'])

const POLICIES = [
  'permit(principal, action == Action::"call_tool", resource == Tool::"read_file");',
  'permit(principal in ServiceGroup::"ops", action == Action::"call_tool", resource == Tool::"write_file");',
]

t.test('policies: callers find exactly what they may use', async (t) => {
  const { as } = await start(t, POLICIES)
  for (const era of eras) {
    const [ada, bob] = [await as(era, 'ada', { groups: ['ops'] }), await as(era, 'bob')]
    t.same(names(await find(ada)), ['read_file', 'write_file'], era)
    t.same(names(await find(bob)), ['read_file'], era)
    t.same(names(await find(bob, 'write_file delete_file')), [], era)
    const list = await bob('tools/list')
    t.match(list.response?.result, { tools: [{ name: 'find_tool' }, { name: 'call_tool' }] })
  }
})

t.test('policies: call_tool is rejected like a direct call, and does not reveal what exists', async (t) => {
  const { as, backend } = await start(t, POLICIES)
  for (const era of eras) {
    const bob = await as(era, 'bob')
    const forbidden = await call(bob, 'write_file')
    const absent = await call(bob, 'no_such_tool')
    t.equal(forbidden.status, 403)
    t.strictSame(forbidden.response?.error, { code: 403, message: 'call denied by authorization policy' })
    t.equal(absent.status, 403)
    t.strictSame(absent.response?.error, forbidden.response?.error)
    t.equal((await call(bob, 'read_file')).status, 200)
    const direct = await bob('tools/call', { name: 'read_file' })
    t.equal(direct.response?.error?.code, -32602, 'permitted, but not by its original name')
  }
  t.same(called(backend), ['read_file', 'read_file'])
})

t.test('policies: they check the arguments of the called tool, however they were written', async (t) => {
  const { as, backend } = await start(t, [
    'permit(principal, action == Action::"call_tool", resource == Tool::"write_file") when { context has arg_path && context.arg_path like "/tmp/*" };',
  ])
  const ask = await as('stateless', 'ada')
  t.equal((await call(ask, 'write_file', { path: '/tmp/a' })).status, 200)
  for (const args of [
    { tool_name: 'write_file', parameters: { path: '/etc/a' } },
    { tool_name: 'write_file', parameters: {}, path: '/tmp/a' },
    { Tool_Name: 'write_file', Parameters: { path: '/etc/a' } },
    { parameters: { tool_name: 'write_file', path: '/etc/a' } },
  ])
    t.equal(
      (await ask('tools/call', { name: 'call_tool', arguments: args })).status,
      403,
      JSON.stringify(args),
    )
  t.same(called(backend), ['write_file'])
})

t.test('policies: hints of the called tool count', async (t) => {
  const { as } = await start(t, [
    'permit(principal, action == Action::"call_tool", resource) when { resource has readOnlyHint && resource.readOnlyHint };',
  ])
  const ask = await as('stateless', 'ada')
  t.same(names(await find(ask)), ['read_file'])
  t.equal((await call(ask, 'read_file')).status, 200)
  t.equal((await call(ask, 'delete_file')).status, 403)
})

t.test('policies: find_tool is permitted when it is switched on, and can be forbidden', async (t) => {
  const { as, reload } = await start(t, POLICIES)
  const ask = await as('stateless', 'ada')
  t.equal((await find(ask)).status, 200)
  reload([...POLICIES, 'forbid(principal, action, resource == Tool::"find_tool");'])
  t.equal((await find(ask)).status, 403)
  const { result } = (await ask('tools/list')).response ?? {}
  t.same(
    (result?.['tools'] as { name: string }[] | undefined)?.map(({ name }) => name),
    ['call_tool'],
    'and is not offered',
  )
  t.equal((await call(ask, 'read_file')).status, 200)
})

t.test('policies: a change affects the found tools, also in an open session', async (t) => {
  const { as, reload } = await start(t, POLICIES)
  const bob = await as('session', 'bob')
  t.same(names(await find(bob)), ['read_file'])
  reload(['permit(principal, action, resource);'])
  t.same(names(await find(bob)), ['delete_file', 'read_file', 'write_file'])
  reload(['permit(principal, action, resource == Tool::"another");'])
  t.same(names(await find(bob)), [])
})

t.test(
  'rate limits: count the called tool, and find_tool by its own name',
  { skip: missingRedis },
  async (t) => {
    const [redis, backend] = [await startRedis(), await startRawBackend({ tools: () => TOOLS })]
    const hour = (maxTokens: number) => ({ maxTokens, refillPeriod: '1h' })
    const vmcp = await startTestVmcp(
      { raw: backend.url },
      {
        aggregation: bareNames('raw'),
        optimizer: {},
        sessionStorage: { provider: 'redis', address: redis.addr },
        rateLimiting: {
          tools: [
            { name: 'write_file', shared: hour(1) },
            { name: 'find_tool', shared: hour(2) },
          ],
        },
      },
    )
    t.teardown(() => Promise.all([vmcp.close(), redis.stop(), backend.close()]))
    const session = await openSession(vmcp.url)
    const inSession: Ask = (method, params) => session.request(method, params)
    const without: Ask = (method, params) => stateless(vmcp.url, method, params)
    t.match(textOf(await call(inSession, 'write_file')), '{}')
    const again = await call(inSession, 'write_file')
    t.match(again.response?.result, { isError: true, structuredContent: { code: 429 } })
    t.equal((await call(without, 'write_file')).response?.error?.code, 429)
    t.match(textOf(await call(without, 'read_file')), '{}')
    for (const ask of [inSession, without])
      t.same(names(await find(ask)), ['delete_file', 'read_file', 'write_file'])
    t.equal((await find(without)).response?.error?.code, 429)
    t.same(called(backend), ['write_file', 'read_file'], 'rejected calls did not arrive')
  },
)

t.test('audit and metrics: a call is reported as a call of the called tool', async (t) => {
  const backend = await startRawBackend({ tools: () => TOOLS })
  const logFile = join(t.testdir({}), 'audit.log')
  const vmcp = await startTestVmcp(
    { raw: backend.url },
    {
      aggregation: bareNames('raw'),
      optimizer: {},
      audit: { enabled: true, logFile, includeRequestData: true },
      telemetry: { enablePrometheusMetricsPath: true },
    },
  )
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const ask: Ask = (method, params) => stateless(vmcp.url, method, params)
  await find(ask)
  await call(ask, 'read_file', { path: '/tmp/a' })
  await call(ask, 'made_up_by_a_client')
  const metrics = await (await fetch(`${vmcp.origin}/metrics`)).text()
  t.match(metrics, /gatehouse_mcp_tool_calls_total{[^}]*tool="read_file"[^}]*} 1/)
  t.match(metrics, /gatehouse_mcp_tool_calls_total{[^}]*tool="find_tool"[^}]*} 1/)
  t.notMatch(metrics, 'made_up_by_a_client')
  await vmcp.close()
  const lines = readFileSync(logFile, 'utf8').trim().split('\n')
  const events = lines.map(
    (line) => JSON.parse(line) as { type: string; target: { name: string }; outcome: string },
  )
  t.match(events, [
    { type: 'mcp_tool_call', target: { name: 'find_tool' }, outcome: 'success' },
    { type: 'mcp_tool_call', target: { name: 'read_file' }, outcome: 'success' },
    { type: 'mcp_tool_call', target: { name: 'made_up_by_a_client' }, outcome: /^(?!success)/ },
  ])
  t.equal(events.length, 3, 'one event for one call')
})
