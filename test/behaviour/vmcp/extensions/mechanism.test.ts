/** Protocol extensions: what clients see, what backends receive, and the routes of unknown methods. */
import t from 'tap'
import { startExtensionBackend } from '../../../helpers/mcp/tasks/extension-backend.ts'
import { openSession, type RpcMessage, stateless } from '../../../helpers/mcp/wire.ts'
import { startRawBackend, textResult } from '../../../helpers/mcp/raw-backend.ts'
import { startFixture } from '../../../helpers/mcp/fixture-server/index.ts'
import { bareNames, startTestVmcp, vmcpConfig } from '../../../helpers/vmcp/vmcp.ts'

const ui = 'io.modelcontextprotocol/ui'
const declared = {
  extensions: { [ui]: { mimeTypes: ['text/html;profile=mcp-app'] }, 'com.example/other': {} },
}

function extensionsIn(message: RpcMessage | undefined): unknown {
  const capabilities = message?.result?.['capabilities'] as Record<string, unknown> | undefined
  return capabilities?.['extensions']
}

await t.test('extensions: enabled extensions are advertised, in both eras', async (t) => {
  for (const [extensions, expected] of [
    [undefined, { [ui]: {} }],
    [{ apps: { enabled: false } }, undefined],
    [
      { custom: [{ id: 'com.example/x', methods: ['x/run'], routeBy: 'name' }] },
      { [ui]: {}, 'com.example/x': {} },
    ],
  ] as const) {
    const backend = await startRawBackend()
    const vmcp = await startTestVmcp({ raw: backend.url }, { extensions })
    t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
    const session = await openSession(vmcp.url)
    t.same(extensionsIn(session.initialized), expected)
    const { response } = await stateless(vmcp.url, 'server/discover')
    t.same(extensionsIn(response), expected)
    t.equal(response?.result?.['cacheScope'], 'private')
    t.ok(Number(response?.result?.['ttlMs']) <= 60_000, 'clients do not cache the capabilities for long')
  }
})

await t.test('extensions: backends receive only enabled extensions that this client declared', async (t) => {
  for (const [extensions, expected] of [
    [undefined, { [ui]: declared.extensions[ui] }],
    [{ apps: { enabled: false } }, undefined],
  ] as const) {
    const opened: Readonly<Record<string, unknown>>[] = []
    const backend = await startRawBackend({ opened: (_session, capabilities) => opened.push(capabilities) })
    const modern = await startFixture({ era: 'stateless' })
    const vmcp = await startTestVmcp({ raw: backend.url, modern: modern.url }, { extensions })
    t.teardown(() => Promise.all([vmcp.close(), backend.close(), modern.close()]))
    const session = await openSession(vmcp.url, { capabilities: declared })
    await session.request('tools/call', { name: 'raw_echo', arguments: {} })
    t.ok(opened.length > 0)
    t.same(opened.at(-1)?.['extensions'], expected, 'from a session')
    opened.length = 0
    await stateless(vmcp.url, 'tools/call', { name: 'raw_echo', arguments: {} }, { capabilities: declared })
    t.ok(opened.length > 0)
    t.same(opened.at(-1)?.['extensions'], expected, 'from a stateless client')
    const plain = await openSession(vmcp.url)
    await plain.request('tools/call', { name: 'raw_echo', arguments: {} })
    t.equal(opened.at(-1)?.['extensions'], undefined, 'from a client without extensions')
  }
})

await t.test('extensions: an open session loses an extension that a reload disables', async (t) => {
  const opened: Readonly<Record<string, unknown>>[] = []
  const modern = await startExtensionBackend()
  const added = await startRawBackend({ opened: (_session, capabilities) => opened.push(capabilities) })
  const backends = { modern: modern.url }
  const vmcp = await startTestVmcp(backends)
  t.teardown(() => Promise.all([vmcp.close(), modern.close(), added.close()]))
  const session = await openSession(vmcp.url, { capabilities: declared })
  const seen = async () => {
    await session.request('tools/call', { name: 'modern_sync', arguments: {} })
    const { params } = modern.requests.findLast(({ method }) => method === 'tools/call') ?? {}
    const meta = Object(params?.['_meta'])['io.modelcontextprotocol/clientCapabilities']
    return Object(meta)['extensions']
  }
  t.same(await seen(), { [ui]: declared.extensions[ui] })
  const apps = { enabled: false }
  vmcp.reload(vmcpConfig({ ...backends, added: added.url }, { extensions: { apps } }))
  t.same(await seen(), undefined)
  await session.request('tools/call', { name: 'added_echo', arguments: {} })
  t.ok(opened.length > 0)
  t.notOk(
    opened.some((one) => 'extensions' in one),
    'new backend sessions do not declare it either',
  )
  vmcp.reload(vmcpConfig(backends))
  t.same(await seen(), { [ui]: declared.extensions[ui] }, 'enabled again')
})

await t.test('extensions: a declaration with an unknown revision is not used', async (t) => {
  const backend = await startRawBackend({
    capabilities: `{"tools":{},"extensions":{"${ui}":{"revision":"2099-01-01"}}}`,
    opened: (_session, capabilities) => opened.push(capabilities),
  })
  const opened: Readonly<Record<string, unknown>>[] = []
  const vmcp = await startTestVmcp({ raw: backend.url })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const capabilities = { extensions: { [ui]: { revision: '2099-01-01' } } }
  const session = await openSession(vmcp.url, { capabilities })
  await session.request('tools/call', { name: 'raw_echo', arguments: {} })
  t.notOk(
    opened.some((one) => 'extensions' in one),
    'the declaration is not forwarded',
  )
  const status = await (await fetch(`${new URL(vmcp.url).origin}/status`)).text()
  t.match(status, /extension io.modelcontextprotocol\/ui is not used, because its revision/)
})

const custom = [
  { id: 'com.example/find', methods: ['find/run'], routeBy: 'name', param: 'tool' },
  { id: 'com.example/doc', methods: ['doc/outline'], routeBy: 'uri' },
  {
    id: 'com.example/report',
    methods: ['report/make'],
    notifications: ['notifications/report/ready'],
    routeBy: 'backend',
    backend: 'one',
  },
]

async function startPair(policies?: readonly string[], more: Readonly<Record<string, unknown>> = {}) {
  const results = {
    'resources/list': () => '{"resources":[{"uri":"doc://a","name":"a"}]}',
    'resources/templates/list': () => '{"resourceTemplates":[]}',
  }
  const one = await startRawBackend({
    capabilities: '{"tools":{},"resources":{}}',
    responses: {
      ...results,
      'find/run': ({ params }) => textResult(JSON.stringify(params)),
      'doc/outline': ({ params }) => textResult(JSON.stringify(params)),
      'report/make': ({ params }) => textResult(JSON.stringify(params)),
    },
  })
  const two = await startRawBackend()
  const authz = policies && { type: 'cedar', policies, entitiesJson: '[]' }
  const vmcp = await startTestVmcp(
    { one: one.url, two: two.url },
    { extensions: { custom }, incomingAuth: { type: 'anonymous', ...(authz && { authz }) }, ...more },
  )
  return { one, two, vmcp, close: () => Promise.all([vmcp.close(), one.close(), two.close()]) }
}

await t.test('extensions: a method is routed by tool name, by URI or to a fixed backend', async (t) => {
  const { vmcp, one, close } = await startPair()
  t.teardown(close)
  const session = await openSession(vmcp.url)
  const clients = {
    session: async (method: string, params: Record<string, unknown>) =>
      (await session.request(method, params)).response,
    stateless: async (method: string, params: Record<string, unknown>) =>
      (await stateless(vmcp.url, method, params)).response,
  }
  for (const [era, request] of Object.entries(clients)) {
    const found = await request('find/run', { tool: 'one_echo', depth: 2 })
    t.match(found?.result, { content: [{ text: /"tool":"echo","depth":2/ }] }, `${era}: by name`)
    const outline = await request('doc/outline', { uri: 'doc://a' })
    t.match(outline?.result, { content: [{ text: /"uri":"doc:\/\/a"/ }] }, `${era}: by URI`)
    const made = await request('report/make', { month: 5 })
    t.match(made?.result, { content: [{ text: /"month":5/ }] }, `${era}: fixed`)
    t.match(
      await request('find/run', { tool: 'nothing' }),
      { error: { code: -32602 } },
      `${era}: unknown tool`,
    )
    t.match(await request('find/run', {}), { error: { code: -32602, message: /tool must be a string/ } })
    t.match(
      await request('find/other', { tool: 'one_echo' }),
      { error: { code: -32601 } },
      `${era}: no route`,
    )
  }
  t.notOk(one.requests.some(({ method }) => method === 'find/other'))
})

await t.test('extensions: policies decide on the item that the route selects', async (t) => {
  const { vmcp, close } = await startPair([
    'permit(principal, action == Action::"call_tool", resource == Tool::"two_echo");',
    'permit(principal, action == Action::"call_tool", resource == Tool::"report/make");',
  ])
  t.teardown(close)
  const request = async (method: string, params: Record<string, unknown>) =>
    stateless(vmcp.url, method, params)
  t.equal((await request('find/run', { tool: 'one_echo' })).status, 403, 'by name')
  t.equal((await request('doc/outline', { uri: 'doc://a' })).status, 403, 'by URI')
  t.equal((await request('report/make', {})).status, 200, 'a fixed backend needs its own permission')
  const without = await startPair([
    'permit(principal, action == Action::"call_tool", resource == Tool::"x");',
  ])
  t.teardown(without.close)
  t.equal((await stateless(without.vmcp.url, 'report/make', {})).status, 403)
})

await t.test('extensions: sessions receive only the notifications that are listed', async (t) => {
  const { vmcp, one, two, close } = await startPair()
  t.teardown(close)
  const session = await openSession(vmcp.url)
  for (const name of ['one_echo', 'two_echo']) await session.request('tools/call', { name, arguments: {} })
  const events = await session.listen()
  two.push('{"jsonrpc":"2.0","method":"notifications/report/ready","params":{"n":0}}')
  await new Promise((resolve) => setTimeout(resolve, 100))
  one.push('{"jsonrpc":"2.0","method":"notifications/report/other","params":{"n":1}}')
  one.push('{"jsonrpc":"2.0","method":"notifications/report/ready","params":{"n":2}}')
  const message = await events.next()
  t.match(message, { method: 'notifications/report/ready', params: { n: 2 } })
})

await t.test('extensions: quotas and guardrails apply to routed methods', async (t) => {
  const { vmcp, one, close } = await startPair(undefined, {
    quotas: [
      { name: 'daily', match: { backend: 'one' }, per: 'server', window: 'day', limit: 1, unit: 'calls' },
    ],
    guardrails: { redact: [{ name: 'mail', patterns: ['email'], direction: 'both' }] },
  })
  t.teardown(close)
  const first = await stateless(vmcp.url, 'find/run', { tool: 'one_echo', to: 'ada@example.com' })
  t.ok(first.response?.result)
  t.notMatch(one.requests.at(-1)?.body, /ada@example/, 'the address is masked')
  t.ok((await stateless(vmcp.url, 'find/run', { tool: 'one_echo' })).response?.error, 'the quota is used up')
  t.ok((await stateless(vmcp.url, 'report/make')).response?.error, 'for a fixed backend too')
  t.equal(one.requests.filter(({ method }) => method === 'find/run').length, 1)
})

await t.test('extensions: a tool with the name of a routed method keeps its own facts', async (t) => {
  const tool = '{"name":"x/run","inputSchema":{"type":"object"},"_meta":{"ui":{"visibility":["app"]}}}'
  const backend = await startRawBackend({
    responses: { 'tools/list': () => `{"tools":[${tool}]}`, 'x/run': () => textResult('extension') },
  })
  const policies = [
    'permit(principal, action, resource);',
    'forbid(principal, action == Action::"call_tool", resource) when { resource has appOnly };',
  ]
  const vmcp = await startTestVmcp(
    { one: backend.url },
    {
      aggregation: bareNames('one'),
      extensions: { custom: [{ id: 'a/x', methods: ['x/run'], routeBy: 'backend', backend: 'one' }] },
      incomingAuth: { type: 'anonymous', authz: { type: 'cedar', policies, entitiesJson: '[]' } },
    },
  )
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  t.equal((await stateless(vmcp.url, 'tools/call', { name: 'x/run', arguments: {} })).status, 403)
  t.match((await stateless(vmcp.url, 'x/run')).response?.result, { content: [{ text: 'extension' }] })
})
