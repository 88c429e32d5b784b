/**
 * Checks around scripts: policies check the script tool and every call in it, rate limits count both, the audit log has
 * a line for each, and tool search finds the script tool.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parseVmcpConfig } from '../../../../runtime/config/index.ts'
import { startFixture } from '../../../helpers/mcp/fixture-server/index.ts'
import { openSession, stateless, type WireAnswer } from '../../../helpers/mcp/wire.ts'
import { proves } from '../../../helpers/proves.ts'
import { startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { missingRedis, startRedis } from '../../../helpers/redis.ts'
import { startTokenIssuer } from '../../../helpers/authserver/token-issuer.ts'
import { bareNames, startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

const TOOL = 'execute_tool_script'
const codeMode = { enabled: true }

async function guarded(t: Test, policies: readonly string[], more: Record<string, unknown> = {}) {
  const [issuer, fixture] = await Promise.all([startTokenIssuer(), startFixture({ era: 'both' })])
  const vmcp = await startTestVmcp(
    { fixture: fixture.url },
    {
      aggregation: bareNames('fixture'),
      incomingAuth: { ...issuer.incomingAuth, authz: { type: 'cedar', policies } },
      codeMode,
      ...more,
    },
  )
  t.teardown(() => Promise.all([vmcp.close(), fixture.close(), issuer.close()]))
  const asks = async (subject: string, claims: Record<string, unknown> = {}) => {
    const headers = { authorization: `Bearer ${await issuer.token(subject, claims)}` }
    const session = await openSession(vmcp.url, { headers })
    return {
      session: (method: string, params?: Record<string, unknown>) => session.request(method, params),
      stateless: (method: string, params?: Record<string, unknown>) =>
        stateless(vmcp.url, method, params, { headers }),
    }
  }
  return { asks, fixture, vmcp }
}

const script = (text: string) => ({ name: TOOL, arguments: { script: text } })

interface Tool {
  readonly name: string
  readonly description?: string
}

function toolsOf(response: WireAnswer): Tool[] {
  return (response.response?.result?.['tools'] ?? []) as Tool[]
}

function textOf(response: WireAnswer): string {
  const content = response.response?.result?.['content'] as { text: string }[] | undefined
  return content?.[0]?.text ?? response.text
}

const ECHO = 'permit(principal, action == Action::"call_tool", resource == Tool::"echo");'

t.test(
  'policies: a script reaches only what its caller may use, and learns nothing of the rest',
  async (t) => {
    proves('3.endpoint.execute-tool-script.authz')
    const { asks, fixture } = await guarded(t, [ECHO])
    for (const era of ['session', 'stateless'] as const) {
      const ask = (await asks('ada'))[era]
      const listed = toolsOf(await ask('tools/list'))
      t.same(
        listed.map(({ name }) => name),
        ['echo', TOOL],
        era,
      )
      t.notMatch(listed.at(-1)?.description, /test_simple_text/, 'hidden tools are not described')
      t.equal(textOf(await ask('tools/call', script('return echo(a=1)'))), '{"a":1}')
      t.match(
        textOf(await ask('tools/call', script('return test_simple_text()'))),
        /undefined: test_simple_text/,
      )
      t.match(
        textOf(await ask('tools/call', script('return call_tool("test_simple_text")'))),
        /call_tool: unknown tool "test_simple_text"/,
      )
    }
    t.notOk(fixture.state.requests.some(({ headers }) => headers['mcp-name'] === 'test_simple_text'))
  },
)

t.test('policies: arguments are checked at each call, and a denial has no details', async (t) => {
  const { asks } = await guarded(t, [
    'permit(principal, action == Action::"call_tool", resource);',
    'forbid(principal, action == Action::"call_tool", resource == Tool::"echo") when { context has arg_secret };',
  ])
  const { session } = await asks('ada')
  t.equal(textOf(await session('tools/call', script('return echo(a=1)'))), '{"a":1}')
  t.equal(
    textOf(await session('tools/call', script('return [echo(a=1), echo(secret=1)]'))),
    'script execution failed: script.star:1:24: echo: call denied by authorization policy',
  )
})

t.test('policies: a policy that forbids the script tool hides it and rejects calls', async (t) => {
  const { asks } = await guarded(t, [
    'permit(principal, action == Action::"call_tool", resource);',
    `forbid(principal, action == Action::"call_tool", resource == Tool::"${TOOL}") unless { principal in ServiceGroup::"ops" };`,
  ])
  const [ops, dev] = await Promise.all([asks('ada', { groups: ['ops'] }), asks('bob', { groups: ['dev'] })])
  t.ok(toolsOf(await ops.session('tools/list')).some(({ name }) => name === TOOL))
  t.notOk(toolsOf(await dev.session('tools/list')).some(({ name }) => name === TOOL))
  t.equal((await dev.session('tools/call', script('return 1'))).status, 403)
  t.equal(textOf(await ops.session('tools/call', script('return 1'))), '1')
})

t.test(
  'rate limits: a script costs a token, and so does each of its calls',
  { skip: missingRedis },
  async (t) => {
    const [redis, backend, issuer] = await Promise.all([
      startRedis({ auth: { password: 'p' } }),
      startRawBackend(),
      startTokenIssuer(),
    ])
    const vmcp = await startTestVmcp(
      { raw: backend.url },
      {
        aggregation: bareNames('raw'),
        incomingAuth: issuer.incomingAuth,
        codeMode,
        sessionStorage: { provider: 'redis', address: redis.addr, keyPrefix: 'codemode:' },
        rateLimiting: { perUser: { maxTokens: 4, refillPeriod: '1h' } },
      },
      { env: { GATEHOUSE_SESSION_REDIS_PASSWORD: 'p' } },
    )
    t.teardown(async () => {
      await vmcp.close()
      await Promise.all([redis.stop(), backend.close(), issuer.close()])
    })
    const headers = { authorization: `Bearer ${await issuer.token('ada')}` }
    const session = await openSession(vmcp.url, { headers })
    t.equal(textOf(await session.request('tools/call', script('return len([echo(), echo()])'))), '2')
    t.match(textOf(await session.request('tools/call', script('return echo()'))), /echo: Rate limit exceeded/)
    t.equal(backend.requests.filter(({ method }) => method === 'tools/call').length, 2)
  },
)

t.test('audit: one line for the script, one for each call, under the same request', async (t) => {
  const logFile = join(t.testdir({}), 'audit.log')
  const { asks, vmcp } = await guarded(t, ['permit(principal, action == Action::"call_tool", resource);'], {
    audit: { enabled: true, logFile },
  })
  const { session } = await asks('ada')
  await session('tools/call', script('echo(a=1)\nreturn test_error_handling()'))
  await vmcp.close()
  const text = readFileSync(logFile, 'utf8')
  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Line)
    .filter(({ type }) => type === 'mcp_tool_call')
  t.same(
    lines.map(({ target, outcome, subjects }) => [target.name, outcome, subjects.user]),
    [
      ['echo', 'success', 'ada'],
      ['test_error_handling', 'application_error', 'ada'],
      [TOOL, 'application_error', 'ada'],
    ],
  )
  t.equal(new Set(lines.map(({ source }) => source.extra.request_id)).size, 1, 'all belong to one request')
  t.notMatch(text, /return test_error_handling/, 'the script is not recorded')
})

t.test('audit: arguments, result and backend of each call of a script are recorded on request', async (t) => {
  const logFile = join(t.testdir({}), 'audit.log')
  const backend = await startRawBackend({
    responses: {
      'tools/call': ({ params }) =>
        params['name'] === 'long'
          ? JSON.stringify({ content: [{ type: 'text', text: 'word '.repeat(20_000) }] })
          : '{"content":[],"structuredContent":{"token":"secret-value-1234","n":1}}',
    },
    tools: () => [
      '{"name":"echo","inputSchema":{"type":"object"}}',
      '{"name":"long","inputSchema":{"type":"object"}}',
    ],
  })
  const vmcp = await startTestVmcp(
    { raw: backend.url },
    {
      aggregation: bareNames('raw'),
      codeMode,
      compositeTools: [{ name: 'flow', steps: [{ id: 'a', tool: 'echo' }] }],
      audit: { enabled: true, logFile, includeRequestData: true, includeResponseData: true },
    },
  )
  t.teardown(() => backend.close())
  const session = await openSession(vmcp.url)
  await session.request('tools/call', script('parallel([lambda: echo(a=1), long])\nflow()'))
  await session.request('tools/call', script('call_tool("echo", b=2)'))
  await vmcp.close()
  const lines = readFileSync(logFile, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Line)
    .filter(({ type, source }) => type === 'mcp_tool_call' && source.type === 'local')
  const called = (name: string) => lines.filter(({ target }) => target.name === name)
  t.match(called('echo').at(-1), {
    metadata: { extra: { backend: 'raw', backend_name: 'raw' } },
    data: {
      request: { name: 'echo', arguments: { b: 2 } },
      response: { content: [], structuredContent: { token: '[redacted]', n: 1 } },
    },
  })
  t.equal(called('echo').length, 3, 'two calls of scripts and one of the workflow')
  t.match(called('long'), [
    {
      metadata: { extra: { backend: 'raw', backend_name: 'raw' } },
      data: {
        request: { name: 'long', arguments: {} },
        response: /^\{"content":\[\{"type":"text","text":"(?:word )+/,
        response_truncated: true,
      },
    },
  ])
  t.notOk(called('flow')[0]?.metadata.extra.backend, 'a workflow is not a backend')
})

interface Line {
  readonly type: string
  readonly outcome: string
  readonly target: { readonly name: string }
  readonly metadata: { readonly extra: { readonly backend?: string } }
  readonly subjects: { readonly user: string }
  readonly source: { readonly type: string; readonly extra: { readonly request_id: string } }
}

t.test('tool search: the script tool is found and called like any other', async (t) => {
  const backend = await startRawBackend()
  const vmcp = await startTestVmcp(
    { raw: backend.url },
    { aggregation: bareNames('raw'), codeMode, optimizer: {} },
  )
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const ask = (name: string, args: Record<string, unknown>) =>
    stateless(vmcp.url, 'tools/call', { name, arguments: args })
  const found = await ask('find_tool', { tool_description: 'run a script', tool_keywords: ['starlark'] })
  t.match(textOf(found), TOOL)
  const called = await ask('call_tool', { tool_name: TOOL, parameters: { script: 'return echo(x=1)' } })
  t.equal(textOf(called), '{"x":1}')
})

t.test('reload: code mode can be switched on and off, and running scripts end with it', async (t) => {
  const fixture = await startFixture()
  const config = ({ enabled }: { readonly enabled: boolean }) =>
    parseVmcpConfig(
      JSON.stringify({
        name: 'reloaded',
        groupRef: 'g',
        incomingAuth: { type: 'anonymous' },
        outgoingAuth: { source: 'inline' },
        aggregation: bareNames('fixture'),
        backends: [{ name: 'fixture', url: fixture.url, transport: 'streamable-http' }],
        codeMode: { enabled },
      }),
    )
  const vmcp = await startTestVmcp({ fixture: fixture.url }, { aggregation: bareNames('fixture'), codeMode })
  t.teardown(() => Promise.all([vmcp.close(), fixture.close()]))
  const names = async () => toolsOf(await stateless(vmcp.url, 'tools/list')).map(({ name }) => name)
  t.ok((await names()).includes(TOOL))
  const waiting = new Promise<void>((resolve) => fixture.state.events.once('waiting', () => resolve()))
  const under = stateless(vmcp.url, 'tools/call', script('wait()'))
  await waiting
  vmcp.reload(config({ enabled: false }))
  t.match((await under).text, /shutting down/)
  t.notOk((await names()).includes(TOOL))
  vmcp.reload(config({ enabled: true }))
  t.equal(textOf(await stateless(vmcp.url, 'tools/call', script('return 3'))), '3')
})
