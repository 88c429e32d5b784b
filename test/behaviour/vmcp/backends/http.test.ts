/** The HTTP interface: built-in paths, methods, media types, malformed messages, sessions by header. */
import t from 'tap'
import { openSession, post, stateless, statelessRequest } from '../../../helpers/mcp/wire.ts'
import { proves } from '../../../helpers/proves.ts'
import { startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { startTestVmcp, vmcpConfig } from '../../../helpers/vmcp/vmcp.ts'

proves('3.endpoint.transports', '3.auth.incoming.1', '3.config.incomingAuth')

async function start(t: { teardown(work: () => unknown): void }) {
  const backend = await startRawBackend()
  const vmcp = await startTestVmcp({ raw: backend.url })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  return vmcp
}

t.test('built-in paths work without a session, and other paths are not found', async (t) => {
  const vmcp = await start(t)
  const get = async (path: string, init?: RequestInit) => {
    const response = await fetch(vmcp.origin + path, init)
    return { status: response.status, body: await response.text(), headers: response.headers }
  }
  t.match(await get('/health'), { status: 200, body: '{"status":"ok"}' })
  t.match(await get('/ping'), { status: 200 })
  t.match(await get('/readyz'), { status: 200, body: '{"status":"ready","mode":"static"}' })
  const status = await get('/status')
  t.equal(status.headers.get('cache-control'), 'no-store')
  t.match(JSON.parse(status.body), {
    name: 'test-vmcp',
    group_ref: 'test-group',
    backends: [{ name: 'raw', transport: 'streamable-http' }],
  })
  t.notMatch(status.body, /127\.0\.0\.1/, 'no address is shown')
  t.match(JSON.parse((await get('/api/backends/health')).body), {
    monitoring_enabled: true,
    summary: { total: 1 },
  })
  t.equal((await get('/status', { method: 'POST' })).status, 405)
  for (const path of ['/', '/mcpx', '/mcp//', '/.well-known/oauth-protected-resource', '/admin']) {
    t.equal((await get(path)).status, 404, path)
  }
})

t.test('methods, media types and sizes are checked before the body is read', async (t) => {
  const vmcp = await start(t)
  const status = async (init: RequestInit) => (await fetch(vmcp.url, init)).status
  t.equal(await status({ method: 'PUT' }), 405)
  t.equal(await status({ method: 'GET' }), 406)
  t.equal(await status({ method: 'GET', headers: { 'mcp-protocol-version': '2026-07-28' } }), 405)
  t.equal(await status({ method: 'POST', body: '{}', headers: { 'content-type': 'text/plain' } }), 415)
  t.equal(
    await status({
      method: 'POST',
      body: 'x'.repeat(8_388_609),
      headers: { 'content-type': 'application/json' },
    }),
    413,
  )
  t.equal(
    await status({
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: 'https://evil.example' },
      body: '{}',
    }),
    403,
  )
})

t.test('malformed messages get the right code, and their id is echoed and never null', async (t) => {
  const vmcp = await start(t)
  const cases: [string, number, number][] = [
    ['[]', 400, -32600],
    ['{"jsonrpc":"2.0"', 400, -32700],
    ['', 400, -32700],
    ['{"jsonrpc":"2.0","id":null,"method":"ping"}', 400, -32600],
    ['{"jsonrpc":"2.0","id":7,"method":"ping","method":"tools/list"}', 400, -32600],
    ['{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","NAME":"b"}}', 400, -32602],
    ['{"jsonrpc":"2.0","id":7,"method":"tools/list"}', 400, -32600],
  ]
  for (const [body, status, code] of cases) {
    const response = await post(vmcp.url, body)
    t.equal(response.status, status, body)
    t.equal(response.response?.error?.code, code, body)
    t.notMatch(response.text, '"id":null')
  }
  t.match(
    (await post(vmcp.url, '{"jsonrpc":"2.0","id":12345678901234567890,"method":"tools/list"}')).text,
    '"id":12345678901234567890',
  )
})

t.test('sessions: unknown, ended and foreign ids are not found', async (t) => {
  const vmcp = await start(t)
  const session = await openSession(vmcp.url)
  const unknown = await session.request('tools/list', {}, { 'mcp-session-id': 'nobody' })
  t.equal(unknown.status, 404)
  t.equal(unknown.response?.error?.code, -32001)
  t.equal((await session.request('ping', {}, { 'mcp-protocol-version': '1999-01-01' })).status, 400)
  t.equal((await session.request('ping')).status, 200)
  t.equal((await session.end()).status, 200)
  t.equal((await session.request('ping')).status, 404)
  t.equal((await session.end()).status, 404)
})

t.test('initialize: versions are negotiated, and capabilities list what is implemented', async (t) => {
  const vmcp = await start(t)
  for (const version of ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']) {
    const { initialized } = await openSession(vmcp.url, { version })
    t.equal(initialized.result?.['protocolVersion'], version)
  }
  const { initialized, id } = await openSession(vmcp.url, { version: '2025-11-25' })
  t.same(initialized.result?.['capabilities'], {
    tools: { listChanged: true },
    resources: { subscribe: true, listChanged: true },
    prompts: { listChanged: true },
    logging: {},
    completions: {},
    extensions: { 'io.modelcontextprotocol/ui': {} },
  })
  t.match(id, /^[0-9a-f-]{36}$/)
  const future = await post(
    vmcp.url,
    JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2099-01-01', capabilities: {}, clientInfo: {} },
    }),
  )
  t.equal(future.response?.result?.['protocolVersion'], '2025-11-25')
})

t.test('requests of a session: unknown methods and tools, duplicate ids, log levels', async (t) => {
  const vmcp = await start(t)
  const session = await openSession(vmcp.url)
  t.match((await session.request('no/such')).response, { error: { code: -32601 } })
  t.match((await session.request('tools/call', { name: 'nope' })).response, { error: { code: -32602 } })
  t.match((await session.request('tools/call', { name: 'raw_echo', arguments: [] })).response, {
    error: { code: -32602 },
  })
  t.match((await session.request('tools/call', {})).response, { error: { code: -32602 } })
  t.match((await session.request('logging/setLevel', { level: 'loud' })).response, {
    error: { code: -32602 },
  })
  t.match((await session.request('logging/setLevel', { level: 'error' })).response, { result: {} })
  t.match((await session.request('tools/list', { cursor: 'nonsense' })).response, {
    error: { code: -32602, message: 'invalid cursor' },
  })
  t.match((await session.request('resources/read', { uri: 'x://y' })).response, {
    error: { code: -32002, data: { uri: 'x://y' } },
  })
})

t.test('preflight: a page may send mirrored arguments and passed-through headers', async (t) => {
  const backend = await startRawBackend()
  const vmcp = await startTestVmcp({ raw: backend.url }, { passthroughHeaders: ['X-Tenant'] })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const asked = async () => {
    const response = await fetch(vmcp.url, {
      method: 'OPTIONS',
      headers: {
        origin: vmcp.origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'content-type,mcp-param-region,x-other,x-tenant',
      },
    })
    t.equal(response.status, 204)
    return response.headers.get('access-control-allow-headers')
  }
  t.match(await asked(), /Last-Event-ID, mcp-param-region, x-tenant$/)
  vmcp.reload(vmcpConfig({ raw: backend.url }, { passthroughHeaders: ['X-Other'] }))
  t.match(
    await asked(),
    /Last-Event-ID, mcp-param-region, x-other$/,
    'according to the current configuration',
  )
})

t.test('stateless requests: no session is created, and responses forbid caching', async (t) => {
  const vmcp = await start(t)
  const list = await stateless(vmcp.url, 'tools/list')
  t.equal(list.status, 200)
  t.equal(list.headers.get('mcp-session-id'), null)
  t.equal(list.headers.get('cache-control'), 'private, no-store')
  t.match(list.response?.result, { resultType: 'complete', ttlMs: 0, cacheScope: 'private' })
  t.match(list.response?.result?.['_meta'], { 'io.modelcontextprotocol/serverInfo': { name: 'test-vmcp' } })
  t.equal((await stateless(vmcp.url, 'ping')).status, 404)
  t.match(await stateless(vmcp.url, 'tools/call', { name: 'nope' }), {
    status: 400,
    response: { error: { code: -32602 } },
  })
  const { body, headers } = statelessRequest('tools/list')
  const mismatch = await post(vmcp.url, body, { ...headers, 'mcp-method': 'tools/call' })
  t.match(mismatch, { status: 400, response: { error: { code: -32020 } } })
  const notification = await post(
    vmcp.url,
    JSON.stringify({
      jsonrpc: '2.0',
      method: 'notifications/x',
      params: { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } },
    }),
    { 'mcp-protocol-version': '2026-07-28' },
  )
  t.equal(notification.status, 202)
})

t.test('lists have pages of a thousand items, in order and complete', async (t) => {
  const tools = Array.from({ length: 2_345 }, (_, i) => `{"name":"t${i}","inputSchema":{"type":"object"}}`)
  const backend = await startRawBackend({ tools: () => tools })
  const vmcp = await startTestVmcp({ raw: backend.url })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  const names: string[] = []
  let cursor: string | undefined
  const sizes: number[] = []
  do {
    const { response } = await session.request('tools/list', cursor === undefined ? {} : { cursor })
    const page = response?.result as { tools: { name: string }[]; nextCursor?: string }
    sizes.push(page.tools.length)
    names.push(...page.tools.map(({ name }) => name))
    cursor = page.nextCursor
    t.ok((cursor?.length ?? 0) <= 512)
  } while (cursor !== undefined)
  t.same(sizes, [1000, 1000, 345])
  t.equal(new Set(names).size, 2_345)
  t.same(names, [...names].sort())
})
