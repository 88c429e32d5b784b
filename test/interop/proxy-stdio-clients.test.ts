/**
 * Runs `gatehouse proxy stdio` as the program that an MCP client starts: both generations of the SDK, in both protocol
 * eras, against real servers from npm and the fixture backend, over both HTTP transports.
 */
import { once } from 'node:events'
import { Client as Client2 } from '@modelcontextprotocol/client'
import { StdioClientTransport as Transport2 } from '@modelcontextprotocol/client/stdio'
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import t, { type Test } from 'tap'
import { type Peer, Recorder } from '../helpers/conformance/record.ts'
import { startEverything } from '../helpers/mcp/everything.ts'
import { startFixture } from '../helpers/mcp/fixture-server/index.ts'
import { proves } from '../helpers/proves.ts'
import { program } from '../helpers/gatehouse.ts'

proves('1.command.stdio')

const recorder = new Recorder('proxy-stdio-clients')

/** Records the operations of a client that started `proxy stdio`. */
function record(t: Test, sdk: 1 | 2, era: Peer['era'], server: Peer, operations: readonly string[]): void {
  const client = { name: `TypeScript SDK ${sdk}`, era, transport: 'stdio' } as const
  recorder.addTested(t, { client, through: 'proxy stdio', server, operations })
}

function command(url: string, ...more: string[]) {
  return {
    command: process.execPath,
    args: [program, 'proxy', 'stdio', ...more, url],
    stderr: 'pipe' as const,
  }
}

async function connect1(t: Test, url: string, ...more: string[]) {
  const client = new Client1(
    { name: 'sdk1', version: '1' },
    { capabilities: { sampling: {}, elicitation: { form: {}, url: {} }, roots: { listChanged: true } } },
  )
  client.setRequestHandler(CreateMessageRequestSchema, () => ({
    model: 'none',
    role: 'assistant' as const,
    content: { type: 'text' as const, text: 'sampled words' },
  }))
  client.setRequestHandler(ElicitRequestSchema, () => ({
    action: 'accept' as const,
    content: { username: 'ada', email: 'ada@example.com', name: 'ada' },
  }))
  client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: 'file:///project' }] }))
  const violations: Error[] = []
  Object.assign(client, { onerror: (error: Error) => violations.push(error) })
  const transport = new Transport1(command(url, ...more))
  await client.connect(transport)
  t.teardown(() => client.close())
  return { client, transport, violations }
}

async function connect2(t: Test, url: string, mode: 'legacy' | 'auto' | { pin: string }) {
  const client = new Client2(
    { name: 'sdk2', version: '1' },
    { capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} }, versionNegotiation: { mode } },
  )
  client.setRequestHandler('elicitation/create', () => ({
    action: 'accept' as const,
    content: { name: 'ada', ok: true },
  }))
  client.setRequestHandler('roots/list', () => ({ roots: [{ uri: 'file:///project' }] }))
  const violations: Error[] = []
  Object.assign(client, { onerror: (error: Error) => violations.push(error) })
  await client.connect(new Transport2(command(url)))
  t.teardown(() => client.close())
  return { client, violations }
}

function textOf(result: { [key: string]: unknown }): string {
  return JSON.stringify(result['content'])
}

for (const kind of ['streamableHttp', 'sse'] as const) {
  t.test(`sdk1, npm server over ${kind}: tools, progress and requests to the client`, async (t) => {
    const { url } = await startEverything(t, kind)
    const { client, violations } = await connect1(t, url)
    t.equal(client.getServerVersion()?.name, 'mcp-servers/everything')
    t.ok((await client.listTools()).tools.some(({ name }) => name === 'echo'))
    t.match(textOf(await client.callTool({ name: 'echo', arguments: { message: 'ünï\n2' } })), 'ünï\\n2')
    const seen: number[] = []
    await client.callTool(
      { name: 'trigger-long-running-operation', arguments: { duration: 0.4, steps: 4 } },
      undefined,
      { onprogress: ({ progress }) => seen.push(progress) },
    )
    // The client removes its handler with the response, so progress in the same read can be lost.
    t.same(seen.slice(0, 3), [1, 2, 3])
    const sampled = await client.callTool({
      name: 'trigger-sampling-request',
      arguments: { prompt: 'hi', maxTokens: 5 },
    })
    t.match(textOf(sampled), 'sampled words')
    const odd = violations.filter(
      ({ message }) => !message.includes('progress notification for an unknown token'),
    )
    t.same(odd, [], 'only messages were printed')
    const transport = kind === 'sse' ? 'HTTP+SSE' : 'streamable HTTP'
    const server = { name: 'server-everything from npm', era: 'session', transport } as const
    record(t, 1, 'session', server, ['tools', 'progress', 'sampling'])
  })
}

t.test(
  'sdk1, session-era fixture: unsolicited messages, requests to the client, cancellation, the end',
  async (t) => {
    const fixture = await startFixture()
    t.teardown(() => fixture.close())
    const { client, violations } = await connect1(t, fixture.url)
    const changed = new Promise(
      (resolve) => (client.fallbackNotificationHandler = async (n) => resolve(n.method)),
    )
    await client.callTool({ name: 'test_trigger_tool_change', arguments: {} })
    t.equal(await changed, 'notifications/tools/list_changed', 'over the GET stream')
    t.match(
      textOf(await client.callTool({ name: 'test_elicitation', arguments: { message: 'who?' } })),
      'ada@example.com',
    )
    t.match(textOf(await client.callTool({ name: 'test_roots', arguments: {} })), 'file:///project')
    const abort = new AbortController()
    const waiting = once(fixture.state.events, 'waiting')
    const cancelled = once(fixture.state.events, 'cancelled')
    const call = client.callTool({ name: 'wait', arguments: {} }, undefined, { signal: abort.signal })
    await waiting
    const many = await Promise.all(
      Array.from({ length: 20 }, (_, i) => client.callTool({ name: 'echo', arguments: { i } })),
    )
    t.same(
      many.map(textOf).map((text) => /\d+/.exec(text)?.[0]),
      Array.from({ length: 20 }, (_, i) => String(i)),
      'side by side',
    )
    abort.abort()
    await t.rejects(call)
    await cancelled
    await client.close()
    t.equal(fixture.state.requests.at(-1)?.method, 'DELETE')
    t.same(violations, [])
    const server = { name: 'SDK 1 server', era: 'session', transport: 'streamable HTTP' } as const
    record(t, 1, 'session', server, ['tools', 'changed lists', 'elicitation', 'roots', 'cancellation'])
  },
)

t.test('sdk2, stateless fixture: tools, input_required results, subscriptions, cancellation', async (t) => {
  const fixture = await startFixture({ era: 'stateless' })
  t.teardown(() => fixture.close())
  const { client, violations } = await connect2(t, fixture.url, { pin: '2026-07-28' })
  t.ok((await client.listTools()).tools.some(({ name }) => name === 'test_simple_text'))
  t.match(textOf(await client.callTool({ name: 'test_simple_text', arguments: {} })), 'simple text')
  t.match(
    textOf(await client.callTool({ name: 'test_input_required_result_elicitation', arguments: {} })),
    'Hello, ada!',
  )
  await client
    .callTool({ name: 'test_mirrored_header', arguments: { region: 'zürich' } })
    .catch(() => undefined)
  const mirrored = fixture.state.requests.find(
    ({ headers }) => headers['mcp-name'] === 'test_mirrored_header',
  )
  t.equal(mirrored?.headers['mcp-param-region'], `=?base64?${Buffer.from('zürich').toString('base64')}?=`)
  t.equal(mirrored?.headers['mcp-method'], 'tools/call')
  t.equal(mirrored?.headers['mcp-protocol-version'], '2026-07-28')

  const changed = new Promise((resolve) =>
    client.setNotificationHandler('notifications/tools/list_changed', () => resolve(true)),
  )
  const subscription = await client.listen({ toolsListChanged: true })
  await client.callTool({ name: 'test_trigger_tool_change', arguments: {} })
  t.equal(await changed, true)
  await subscription.close()

  const abort = new AbortController()
  const waiting = once(fixture.state.events, 'waiting')
  const cancelled = once(fixture.state.events, 'cancelled')
  const call = client.callTool({ name: 'wait', arguments: {} }, { signal: abort.signal })
  await waiting
  abort.abort()
  await t.rejects(call)
  await cancelled
  t.notOk(
    fixture.state.requests.some(({ method }) => method !== 'POST'),
    'no session to end',
  )
  t.same(violations, [])
  const server = { name: 'SDK 2 server', era: 'stateless', transport: 'streamable HTTP' } as const
  record(t, 2, 'stateless', server, [
    'tools',
    'elicitation',
    'mirrored headers',
    'changed lists',
    'cancellation',
  ])
})

t.test('sdk2 detects the era of the server through the bridge', async (t) => {
  for (const [era, name] of [
    ['session', 'fixture-session'],
    ['stateless', 'fixture-stateless'],
  ] as const) {
    const fixture = await startFixture({ era })
    t.teardown(() => fixture.close())
    const { client } = await connect2(t, fixture.url, 'auto')
    t.equal(client.getServerVersion()?.name, name)
    t.match(textOf(await client.callTool({ name: 'test_simple_text', arguments: {} })), 'simple text')
    const sdk = era === 'session' ? 1 : 2
    const server = { name: `SDK ${sdk} server`, era, transport: 'streamable HTTP' } as const
    record(t, 2, 'either', server, ['detection of the era', 'tools'])
  }
})

t.test('sdk2 in the session era, the deprecated HTTP+SSE transport', async (t) => {
  const fixture = await startFixture()
  t.teardown(() => fixture.close())
  const { client, violations } = await connect2(t, fixture.sseUrl, 'legacy')
  t.match(textOf(await client.callTool({ name: 'test_simple_text', arguments: {} })), 'simple text')
  t.match(textOf(await client.callTool({ name: 'test_roots', arguments: {} })), 'file:///project')
  t.same(violations, [])
  const server = { name: 'SDK 1 server', era: 'session', transport: 'HTTP+SSE' } as const
  record(t, 2, 'session', server, ['tools', 'roots'])
})

t.test('the conformance page shows these results', async (t) => recorder.compare(t))
