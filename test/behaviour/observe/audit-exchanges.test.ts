/** The audit log of a virtual server: its lines and their content. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startFixture } from '../../helpers/mcp/fixture-server/index.ts'
import { openSession, post, stateless, stream } from '../../helpers/mcp/wire.ts'
import { proves } from '../../helpers/proves.ts'
import { startTokenIssuer } from '../../helpers/authserver/token-issuer.ts'
import { bareNames, startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

interface Line {
  readonly type: string
  readonly outcome: string
  readonly [member: string]: unknown
}

interface Rig {
  readonly url: string
  /** Stops the server and returns the audit lines. */
  lines(): Promise<Line[]>
}

async function rig(
  t: Test,
  audit: Record<string, unknown> = {},
  more: Record<string, unknown> = {},
  era: 'session' | 'stateless' = 'session',
): Promise<Rig> {
  const logFile = join(t.testdir({}), 'audit.log')
  const backend = await startFixture({ era })
  const vmcp = await startTestVmcp(
    { one: backend.url },
    { aggregation: bareNames('one'), audit: { enabled: true, logFile, ...audit }, ...more },
  )
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  return {
    url: vmcp.url,
    async lines() {
      await vmcp.close()
      return readFileSync(logFile, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as Line)
    },
  }
}

const briefly = ({ type, outcome }: Line) => `${type} ${outcome}`

await t.test('audit: one line for each exchange, by type', async (t) => {
  proves('3.config.audit', '3.config.audit.enabled', '3.event.audit')
  const { url, lines } = await rig(t)
  const session = await openSession(url, { headers: { 'user-agent': 'wire/1', 'x-request-id': 'req-7' } })
  await session.request('ping')
  await session.request('tools/list')
  await session.request('tools/call', { name: 'test_simple_text' })
  await session.request('resources/list')
  await session.request('resources/templates/list')
  await session.request('resources/read', { uri: 'test://static-text' })
  await session.request('prompts/list')
  await session.request('prompts/get', { name: 'test_simple_prompt' })
  await session.request('completion/complete', {
    ref: { type: 'ref/prompt', name: 'test_simple_prompt' },
    argument: { name: 'a', value: '' },
  })
  await session.request('logging/setLevel', { level: 'info' })
  await session.notify('notifications/roots/list_changed')
  const listening = await session.listen()
  await session.end()
  listening.close()
  await fetch(new URL('/health', url))
  const found = await lines()
  t.same(found.map(briefly), [
    'mcp_initialize success',
    'mcp_notification success',
    'mcp_ping success',
    'mcp_tools_list success',
    'mcp_tool_call success',
    'mcp_resources_list success',
    'mcp_request success',
    'mcp_resource_read success',
    'mcp_prompts_list success',
    'mcp_prompt_get success',
    'mcp_completion success',
    'mcp_logging success',
    'mcp_roots_list_changed success',
    'sse_connection success',
    'http_request success',
  ])
  const [, , , , call] = found
  if (!call) throw new Error('no line of the call')
  t.match(call, {
    level: 'AUDIT',
    message: 'audit_event',
    msg: 'audit_event',
    time: /^\d{4}-\d\d-\d\dT[\d:.]+Z$/,
    audit_id: /^[0-9a-f-]{36}$/,
    component: 'gatehouse-api',
    source: { type: 'network', value: '127.0.0.1', extra: { user_agent: 'wire/1', request_id: 'req-7' } },
    subjects: { user: 'Anonymous User', user_id: 'anonymous', client_name: 'wire', client_version: '1' },
    target: { endpoint: '/mcp', method: 'tools/call', name: 'test_simple_text', type: 'tool' },
    metadata: { extra: { transport: 'http', backend: 'one', backend_name: 'one' } },
  })
  const { extra } = call['metadata'] as { extra: { duration_ms: number; response_size_bytes: number } }
  t.ok(extra.duration_ms > 0 && extra.response_size_bytes > 50)
  t.equal(call['data'], undefined, 'bodies are not recorded by default')
  t.match(found[7], { target: { name: 'test://static-text', type: 'resource' } })
  t.match(found[9], { target: { name: 'test_simple_prompt', type: 'prompt' } })
  t.match(found[13], { target: { type: 'sse_endpoint', method: 'GET' } })
  t.match(found[14], { target: { type: 'endpoint', method: 'DELETE' } })
  t.equal(new Set(found.map((line) => line['audit_id'])).size, found.length)
})

await t.test('audit: stateless clients and backends cause the same lines', async (t) => {
  const { url, lines } = await rig(t, {}, {}, 'stateless')
  await stateless(url, 'server/discover')
  await stateless(url, 'tools/call', { name: 'test_simple_text' })
  await stateless(url, 'tools/call', { name: 'no_such_tool' })
  const found = await lines()
  t.same(found.map(briefly), ['mcp_request success', 'mcp_tool_call success', 'mcp_tool_call failure'])
  t.match(found[1], {
    subjects: { client_name: 'wire', client_version: '1' },
    metadata: { extra: { backend: 'one' } },
  })
  t.match(found[2], { metadata: { extra: { jsonrpc_error_code: -32602 } } })
})

await t.test(
  'audit: the deprecated HTTP+SSE transport, whose responses travel on another stream',
  async (t) => {
    const { url, lines } = await rig(t)
    const events = await stream(new URL('/sse', url).href)
    const endpoint = await events.next(({ method }) => method === 'endpoint')
    const target = new URL(String(endpoint.params?.['data']), url).href
    const send = (method: string, params: unknown, id?: number) =>
      post(target, JSON.stringify({ jsonrpc: '2.0', ...(id === undefined ? {} : { id }), method, params }))
    await send(
      'initialize',
      { protocolVersion: '2024-11-05', capabilities: {}, clientInfo: { name: 'old', version: '0' } },
      1,
    )
    await events.next(({ id }) => id === 1)
    await send('notifications/initialized', {})
    await send('tools/call', { name: 'test_error_handling' }, 2)
    await events.next(({ id }) => id === 2)
    await send('tools/call', { name: 'no_such_tool' }, 3)
    await events.next(({ id }) => id === 3)
    events.close()
    const found = await lines()
    t.same(found.map(briefly), [
      'sse_connection success',
      'mcp_initialize success',
      'mcp_notification success',
      'mcp_tool_call application_error',
      'mcp_tool_call application_error',
    ])
    t.match(found[3], { subjects: { client_name: 'old' }, metadata: { extra: { tool_error: true } } })
    t.match(found[4], { metadata: { extra: { jsonrpc_error_code: -32602 } } })
  },
)

await t.test('audit: errors in responses of status 200 are application errors', async (t) => {
  proves('3.error.audit.application', '3.config.audit.detectApplicationErrors')
  const { url, lines } = await rig(t)
  const session = await openSession(url)
  t.equal((await session.request('tools/call', { name: 'no_such_tool' })).status, 200)
  t.equal((await session.request('tools/call', { name: 'test_error_handling' })).status, 200)
  t.equal((await session.request('resources/read', { uri: 'test://nothing' })).status, 200)
  const found = (await lines()).filter(({ type }) => type !== 'mcp_initialize' && type !== 'mcp_notification')
  t.same(found.map(briefly), [
    'mcp_tool_call application_error',
    'mcp_tool_call application_error',
    'mcp_resource_read application_error',
  ])
  t.match(found[0], {
    metadata: {
      extra: { jsonrpc_error_code: -32602, jsonrpc_error_message: 'tool "no_such_tool" not found' },
    },
  })
  t.match(found[1], { metadata: { extra: { tool_error: true } } })
})

await t.test('audit: without detectApplicationErrors only the status matters', async (t) => {
  const { url, lines } = await rig(t, { detectApplicationErrors: false })
  const session = await openSession(url)
  await session.request('tools/call', { name: 'no_such_tool' })
  await session.request('tools/call', { name: 'test_error_handling' })
  const found = (await lines()).filter(({ type }) => type === 'mcp_tool_call')
  t.same(found.map(briefly), ['mcp_tool_call success', 'mcp_tool_call success'])
  t.notMatch(JSON.stringify(found), /jsonrpc_error|tool_error/)
})

await t.test('audit: requests rejected before they are read are recorded too', async (t) => {
  const issuer = await startTokenIssuer()
  t.teardown(() => issuer.close())
  const { url, lines } = await rig(t, {}, { incomingAuth: issuer.incomingAuth })
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
  t.equal((await post(url, body)).status, 401)
  t.equal((await post(url, body, { authorization: 'Bearer nonsense-nonsense' })).status, 401)
  t.equal((await post(url, body, { origin: 'https://evil.example' })).status, 403)
  t.equal((await fetch(url, { method: 'PUT' })).status, 405)
  const authorization = `Bearer ${await issuer.token('alice')}`
  t.equal((await post(url, 'not json', { authorization })).status, 400)
  const found = await lines()
  t.same(found.map(briefly), [
    'http_request denied',
    'http_request denied',
    'http_request denied',
    'http_request failure',
    'http_request failure',
  ])
  t.match(found[0], { subjects: { user: 'anonymous' }, target: { method: 'POST', endpoint: '/mcp' } })
  t.same(Object.keys(found[1]?.['subjects'] ?? {}), ['user'], 'a rejected token identifies no caller')
  t.match(found[4], { subjects: { user: 'alice', user_id: 'alice' } })
})

await t.test('audit: the caller and its actor are recorded', async (t) => {
  const issuer = await startTokenIssuer()
  t.teardown(() => issuer.close())
  const { url, lines } = await rig(t, { maxDelegationDepth: 1 }, { incomingAuth: issuer.incomingAuth })
  const token = await issuer.token('alice', {
    name: 'Alice A.',
    act: { sub: 'agent', iss: 'https://agents.example', act: { sub: 'outer-agent' } },
  })
  await openSession(url, { headers: { authorization: `Bearer ${token}` } })
  const [line] = await lines()
  t.match(line, {
    subjects: { user: 'Alice A.', user_id: 'alice' },
    delegation: {
      chain: [{ sub: 'agent', iss: 'https://agents.example' }],
      truncated: true,
      omitted: 1,
      malformed: false,
    },
  })
})

await t.test('audit: component and selected event types are configurable', async (t) => {
  proves('3.config.audit.component', '3.config.audit.eventTypes', '3.config.audit.excludeEventTypes')
  const only = await rig(t, {
    component: 'front door',
    eventTypes: ['mcp_tools_list', 'mcp_ping', 'sse_connection'],
    excludeEventTypes: ['mcp_ping'],
  })
  const session = await openSession(only.url)
  await session.request('ping')
  await session.request('tools/list')
  const found = await only.lines()
  t.same(found.map(briefly), ['mcp_tools_list success'])
  t.equal(found[0]?.['component'], 'front door')
})

await t.test('audit: bodies are recorded on request, redacted and truncated', async (t) => {
  proves(
    '3.config.audit.includeRequestData',
    '3.config.audit.includeResponseData',
    '3.config.audit.maxDataSize',
    '3.limit.audit.maxDataSize',
  )
  const { url, lines } = await rig(t, { includeRequestData: true, includeResponseData: true })
  const session = await openSession(url)
  const args = { note: 'hello', password: 'hunter2', list: ['Bearer abcdefghij'] }
  await session.request('tools/call', { name: 'echo', arguments: args })
  await session.request('tools/call', { name: 'echo', arguments: { text: 'x'.repeat(5_000) } })
  const calls = (await lines()).filter(({ type }) => type === 'mcp_tool_call')
  t.match(calls[0], {
    data: {
      request: {
        method: 'tools/call',
        params: {
          name: 'echo',
          arguments: { note: 'hello', password: '[redacted]', list: ['Bearer [redacted]'] },
        },
      },
      response: { result: { content: [{ type: 'text', text: /hello/ }] } },
    },
  })
  t.notMatch(JSON.stringify(calls), /hunter2|abcdefghij/)
  const { data } = calls[1] as unknown as { data: Record<string, unknown> }
  t.match(data, { request_truncated: true, response_truncated: true, request: /^\{"jsonrpc":"2\.0",/ })
  for (const text of [data['request'], data['response']])
    t.ok(typeof text === 'string' && Buffer.byteLength(text) === 1024, 'the beginning, 1024 bytes by default')
})

await t.test('audit: only the requested body is recorded, and none with maxDataSize 0', async (t) => {
  const request = await rig(t, { includeRequestData: true })
  await (await openSession(request.url)).request('ping')
  t.same(Object.keys((await request.lines()).at(-1)?.['data'] ?? {}), ['request'])
  const response = await rig(t, { includeResponseData: true })
  await (await openSession(response.url)).request('ping')
  t.match((await response.lines()).at(-1), { data: { response: { result: {} } } })
  const nothing = await rig(t, { includeRequestData: true, includeResponseData: true, maxDataSize: 0 })
  await (await openSession(nothing.url)).request('ping')
  t.equal((await nothing.lines()).at(-1)?.['data'], undefined)
})

await t.test(
  'audit: a response on an event stream is recorded and checked like a JSON response',
  async (t) => {
    const { url, lines } = await rig(t, { includeResponseData: true })
    const session = await openSession(url)
    const params = { name: 'test_tool_with_progress', _meta: { progressToken: 'p' } }
    const response = await session.request('tools/call', params)
    t.ok(response.messages.length > 1, 'progress came before the result')
    const call = (await lines()).find(({ type }) => type === 'mcp_tool_call')
    t.match(call, { outcome: 'success', data: { response: { id: Number, result: { content: [] } } } })
  },
)
