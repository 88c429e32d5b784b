/** MCP Apps through a virtual server: addresses, names of apps, pages, in both client and backend eras. */
import t from 'tap'
import { type AppServer, page, startAppServer } from '../../../helpers/mcp/app-server.ts'
import { openSession, type RpcMessage, stateless } from '../../../helpers/mcp/wire.ts'
import { startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

const capabilities = {
  extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } },
}
const uri = 'ui://clock/view.html'
type Fields = Record<string, any>
type Request = (method: string, params?: Fields) => Promise<RpcMessage | undefined>

/** Tools of a server with a page: a tool with a page, one that only the page calls, and one with an own name. */
function toolsOf(own: string) {
  return [
    { name: 'show', _meta: { ui: { resourceUri: uri }, 'ui/resourceUri': uri, 'openai/outputTemplate': uri } },
    { name: 'refresh', _meta: { ui: { visibility: ['app'] } } },
    { name: own },
  ]
}

function startClock(name: string, era: 'session' | 'stateless', own = `${name}-only`): Promise<AppServer> {
  const ui = {
    domain: 'abc.claudemcpcontent.com',
    prefersBorder: true,
    permissions: { camera: {}, microphone: {} },
    csp: {
      connectDomains: ['https://api.example', 'https://x.example; script-src *', 'http://[::1]'],
      resourceDomains: ['https://cdn.example'],
    },
  }
  return startAppServer({
    name,
    era,
    tools: toolsOf(own),
    resources: [{ uri, name: 'view', mimeType: 'text/html;profile=mcp-app', _meta: { ui } }],
    contents: {
      [uri]: page(uri, `<p>${name}: ui://clock/view.html</p>`, ui),
      'ui://unlisted/x': page('ui://unlisted/x', name),
    },
    results: {
      show: {
        content: [
          { type: 'resource_link', uri, name: 'view', big: 12345678901234567890n.toString() },
          { type: 'resource', resource: page(uri, `<p>${name}</p>`) },
          { type: 'text', text: uri },
        ],
        _meta: { ui: { resourceUri: uri } },
      },
    },
    prompt: { type: 'resource_link', uri, name: 'view' },
  })
}

async function startPair(
  era: 'session' | 'stateless',
  more: Record<string, unknown> = {},
): Promise<{ url: string; alpha: AppServer; beta: AppServer; close: () => Promise<unknown> }> {
  const alpha = await startClock('alpha', era)
  const beta = await startClock('beta', era)
  const vmcp = await startTestVmcp({ alpha: alpha.url, beta: beta.url }, more)
  return { url: vmcp.url, alpha, beta, close: () => Promise.all([vmcp.close(), alpha.close(), beta.close()]) }
}

async function clientOf(era: 'session' | 'stateless', url: string, able: unknown = capabilities): Promise<Request> {
  if (era === 'stateless')
    return async (method, params = {}) =>
      (await stateless(url, method, params, { capabilities: able })).response
  const session = await openSession(url, { capabilities: able })
  return async (method, params = {}) => (await session.request(method, params)).response
}

const eras = ['session', 'stateless'] as const
const pairs = eras.flatMap((client) => eras.map((backend) => [client, backend] as const))

for (const [clientEra, backendEra] of pairs) {
  const what = `${clientEra} client, ${backendEra} backends`
  await t.test(`apps: two servers with the same page address (${what})`, async (t) => {
    const { url, alpha, close } = await startPair(backendEra)
    t.teardown(close)
    const request = await clientOf(clientEra, url)
    const tools = ((await request('tools/list'))?.result as Fields)['tools'] as Fields[]
    const resources = ((await request('resources/list'))?.result as Fields)['resources'] as Fields[]
    t.same(
      resources.map((one) => one['uri'] as string),
      ['ui://alpha/clock/view.html', 'ui://beta/clock/view.html'],
    )
    for (const name of ['alpha', 'beta']) {
      const address = `ui://${name}/clock/view.html`
      const show = tools.find((tool) => tool['name'] === `${name}_show`)
      t.same(show?.['_meta'], {
        ui: { resourceUri: address },
        'ui/resourceUri': address,
        'openai/outputTemplate': address,
      })
      const read = (await request('resources/read', { uri: address }))?.result as Fields
      t.match(read['contents'], [{ uri: address, text: `<p>${name}: ui://clock/view.html</p>` }])
      const unlisted = await request('resources/read', { uri: `ui://${name}/unlisted/x` })
      t.ok(unlisted?.error, 'a page that no tool and no result names is not readable')
      const result = (await request('tools/call', { name: `${name}_show`, arguments: {} }))?.result as Fields
      t.match(result['content'], [
        { type: 'resource_link', uri: address },
        { type: 'resource', resource: { uri: address, text: `<p>${name}</p>` } },
        { type: 'text', text: uri },
      ])
      t.match(result['_meta'], { ui: { resourceUri: address } })
      const prompt = (await request('prompts/get', { name: `${name}_ask` }))?.result as Fields
      t.match(prompt['messages'], [{ content: { uri: address } }])
    }
    t.ok(
      alpha.requests.every(({ params }) => !String(params['uri'] ?? '').includes('alpha')),
      'backends receive their own addresses',
    )
    t.ok((await request('resources/read', { uri }))?.error, 'the bare address is ambiguous')
  })

  await t.test(`apps: an app calls tools under their original names (${what})`, async (t) => {
    const { url, close } = await startPair(backendEra)
    t.teardown(close)
    const request = await clientOf(clientEra, url)
    const call = async (name: string) => request('tools/call', { name, arguments: {} })
    t.match((await call('alpha-only'))?.result, { content: [{ text: 'alpha-only of alpha' }] })
    t.match((await call('refresh'))?.error, {
      code: -32602,
      message: /ambiguous; use one of these names: alpha_refresh, beta_refresh/,
    })
    if (clientEra === 'session') {
      for (const name of ['beta', 'alpha']) {
        await request('resources/read', { uri: `ui://${name}/clock/view.html` })
        t.match((await call('refresh'))?.result, { content: [{ text: `refresh of ${name}` }] })
      }
    }
    const plain = await clientOf(clientEra, url, {})
    t.match((await plain('tools/call', { name: 'alpha-only' }))?.error, { code: -32602 }, 'other clients')
  })
}

async function names(request: Request): Promise<Fields[]> {
  return ((await request('tools/list'))?.result as Fields)['tools'] as Fields[]
}

await t.test('apps: original names are listed for apps only, once, and a switch turns them off', async (t) => {
  const { url, close } = await startPair('session')
  t.teardown(close)
  for (const era of eras) {
    const tools = await names(await clientOf(era, url))
    const copies = tools.filter(({ name }) => !/^(alpha|beta)_/.test(name as string))
    t.same(copies.map(({ name }) => name as string), ['alpha-only', 'beta-only'], 'ambiguous names are missing')
    t.ok(copies.every((tool) => JSON.stringify(tool['_meta']) === '{"ui":{"visibility":["app"]}}'))
    const plain = (await names(await clientOf(era, url, {}))).map(({ name }) => name as string)
    t.same(plain, ['alpha_alpha-only', 'alpha_show', 'beta_beta-only', 'beta_show'], 'without app-only tools')
  }
  const off = await startPair('session', { extensions: { apps: { listOriginalNames: false } } })
  t.teardown(off.close)
  t.ok((await names(await clientOf('session', off.url))).every(({ name }) => /^(alpha|beta)_/.test(name as string)))
})

await t.test('apps: pages keep only plain origins and allowed permissions, and no domain', async (t) => {
  for (const [apps, csp, permissions] of [
    [
      undefined,
      { connectDomains: ['https://api.example'], resourceDomains: ['https://cdn.example'] },
      { camera: {}, microphone: {} },
    ],
    [
      { allowedOrigins: ['https://*.example'], allowedPermissions: ['camera'] },
      { connectDomains: ['https://api.example'], resourceDomains: ['https://cdn.example'] },
      { camera: {} },
    ],
    [
      { allowedOrigins: ['https://cdn.example'], allowedPermissions: [] },
      { connectDomains: [], resourceDomains: ['https://cdn.example'] },
      {},
    ],
  ] as const) {
    const alpha = await startClock('alpha', 'session')
    const vmcp = await startTestVmcp({ alpha: alpha.url }, { extensions: { apps } })
    t.teardown(() => Promise.all([vmcp.close(), alpha.close()]))
    const request = await clientOf('session', vmcp.url)
    const expected = { prefersBorder: true, permissions, csp }
    const { resources } = (await request('resources/list'))?.result as Fields
    t.same(resources[0]._meta.ui, expected, 'in the list')
    t.equal(resources[0].uri, uri, 'a single backend keeps its addresses')
    const { contents } = (await request('resources/read', { uri }))?.result as Fields
    t.same(contents[0]._meta.ui, expected, 'in the contents')
  }
})

await t.test('apps: a tool cannot refer to the page of another backend', async (t) => {
  const victim = await startClock('victim', 'session')
  const thief = await startAppServer({
    name: 'thief',
    era: 'session',
    tools: [
      { name: 'steal', _meta: { ui: { resourceUri: 'ui://victim/clock/view.html' } } },
      { name: 'bare', _meta: { ui: { resourceUri: uri } } },
    ],
  })
  const vmcp = await startTestVmcp({ victim: victim.url, thief: thief.url })
  t.teardown(() => Promise.all([vmcp.close(), victim.close(), thief.close()]))
  const request = await clientOf('session', vmcp.url)
  for (const tool of (await names(request)).filter(({ name }) => String(name).startsWith('thief_'))) {
    const address = String((tool['_meta'] as Fields)['ui']['resourceUri'])
    t.match(address, /^ui:\/\/thief\//)
    t.ok((await request('resources/read', { uri: address }))?.error)
  }
  t.notOk(victim.requests.some(({ method }) => method === 'resources/read'))
})

await t.test('apps: disabled, nothing is renamed and clients cannot use original names', async (t) => {
  const { url, close } = await startPair('session', { extensions: { apps: { enabled: false } } })
  t.teardown(close)
  const request = await clientOf('session', url)
  const { resources } = (await request('resources/list'))?.result as Fields
  t.same(resources.map((one: Fields) => one['uri'] as string), [uri])
  t.match((await request('tools/call', { name: 'alpha-only' }))?.error, { code: -32602 })
})

await t.test('apps: policies decide on real names and addresses', async (t) => {
  const policies = [
    'permit(principal, action == Action::"call_tool", resource == Tool::"alpha_alpha-only");',
    'permit(principal, action == Action::"call_tool", resource == Tool::"alpha_show");',
    'permit(principal, action == Action::"call_tool", resource == Tool::"beta_show");',
    'permit(principal, action == Action::"read_resource", resource == Resource::"ui://alpha/clock/view.html");',
  ]
  const authz = { type: 'cedar', policies, entitiesJson: '[]' }
  const { url, close } = await startPair('session', { incomingAuth: { type: 'anonymous', authz } })
  t.teardown(close)
  for (const era of eras) {
    const request = await clientOf(era, url)
    const tools = await names(request)
    t.same(
      tools.map(({ name, _meta }) => [name, (_meta as Fields)?.['ui']?.['resourceUri']] as unknown),
      [
        ['alpha_alpha-only', undefined],
        ['alpha-only', undefined],
        ['alpha_show', 'ui://alpha/clock/view.html'],
        ['beta_show', undefined],
      ],
      'a page that the caller may not read is not named',
    )
    t.match((await request('tools/call', { name: 'alpha-only', arguments: {} }))?.result, { content: [{}] })
    t.match((await request('tools/call', { name: 'refresh', arguments: {} }))?.error, {
      code: -32602,
      message: /tool "refresh" not found/,
    })
    t.ok((await request('resources/read', { uri: 'ui://beta/clock/view.html' }))?.error)
    t.ok((await request('tools/call', { name: 'beta-only', arguments: {} }))?.error, 'denied by its real name')
  }
})

await t.test('apps: updates of a page reach the client under its address', async (t) => {
  const { url, alpha, close } = await startPair('session')
  t.teardown(close)
  const session = await openSession(url, { capabilities })
  const stream = await session.listen()
  const address = 'ui://alpha/clock/view.html'
  await session.request('resources/subscribe', { uri: address })
  t.match(
    alpha.requests.find(({ method }) => method === 'resources/subscribe'),
    { params: { uri } },
  )
  alpha.push({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri } })
  const update = await stream.next(({ method }) => method === 'notifications/resources/updated')
  t.equal((update.params as Fields)['uri'], address)
  stream.close()
})

await t.test('apps: a unique bare address works, and updates arrive under the address that was used', async (t) => {
  const { url, alpha, beta, close } = await startPair('session')
  t.teardown(close)
  const own = await startAppServer({
    name: 'own',
    era: 'session',
    tools: [{ name: 'draw', _meta: { ui: { resourceUri: 'ui://own-page' } } }],
    resources: [{ uri: 'ui://own-page', name: 'page' }],
    contents: { 'ui://own-page': page('ui://own-page', 'drawn') },
  })
  const vmcp = await startTestVmcp({ alpha: alpha.url, beta: beta.url, own: own.url })
  t.teardown(() => Promise.all([vmcp.close(), own.close()]))
  t.ok(url)
  const session = await openSession(vmcp.url, { capabilities })
  const read = await session.request('resources/read', { uri: 'ui://own-page' })
  t.match(read.response?.result, { contents: [{ uri: 'ui://own/own-page', text: 'drawn' }] })
  const stream = await session.listen()
  await session.request('resources/subscribe', { uri: 'ui://own-page' })
  own.push({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: 'ui://own-page' } })
  const update = await stream.next(({ method }) => method === 'notifications/resources/updated')
  t.equal((update.params as Fields)['uri'], 'ui://own-page')
  stream.close()
})

await t.test('apps: a policy can deny tools that only apps use', async (t) => {
  const policies = [
    'permit(principal, action, resource);',
    'forbid(principal, action == Action::"call_tool", resource) when { resource has appOnly && resource.appOnly };',
  ]
  for (const apps of [{}, { enabled: false }]) {
    const authz = { type: 'cedar', policies, entitiesJson: '[]' }
    const more = { incomingAuth: { type: 'anonymous', authz }, extensions: { apps } }
    const { url, close } = await startPair('session', more)
    t.teardown(close)
    const request = await clientOf('session', url)
    t.notOk((await names(request)).some(({ name }) => name === 'alpha_refresh'))
    t.match((await request('tools/call', { name: 'alpha_refresh', arguments: {} }))?.error, {
      message: /call denied by authorization policy/,
    })
    t.match((await request('tools/call', { name: 'alpha_show', arguments: {} }))?.result, { content: [{}] })
  }
})

await t.test('apps: tool search lists tools with pages, and finds no tools that only apps use', async (t) => {
  const { url, close } = await startPair('session', { optimizer: {} })
  t.teardown(close)
  for (const era of eras) {
    const request = await clientOf(era, url)
    t.same(
      (await names(request)).map(({ name }) => name as string),
      ['find_tool', 'call_tool', 'alpha_refresh', 'alpha_show', 'beta_refresh', 'beta_show'],
    )
    t.same((await names(await clientOf(era, url, {}))).map(({ name }) => name as string), ['find_tool', 'call_tool'])
    const found = await request('tools/call', {
      name: 'find_tool',
      arguments: { tool_description: 'refresh show only', tool_keywords: ['refresh', 'show', 'only'] },
    })
    const tools = ((found?.result as Fields)['structuredContent'] as Fields)['tools'] as Fields[]
    t.ok(tools.some(({ name }) => name === 'alpha_alpha-only'))
    t.notOk(tools.some(({ name }) => String(name).endsWith('refresh')))
    for (const name of ['alpha_show', 'alpha-only', 'alpha_refresh'])
      t.match((await request('tools/call', { name, arguments: {} }))?.result, { content: [{}] }, name)
    const plain = await clientOf(era, url, {})
    t.ok((await plain('tools/call', { name: 'alpha_show', arguments: {} }))?.error, 'other clients must search')
  }
})

await t.test('apps: scripts cannot use tools that only apps use, and workflows see rewritten results', async (t) => {
  const workflow = {
    name: 'both',
    description: 'x',
    parameters: { type: 'object' },
    steps: [{ id: 'a', type: 'tool', tool: 'alpha.show', arguments: {} }],
    output: { properties: { link: { type: 'string', value: '{{ index .steps.a.output.content 0 }}' } } },
  }
  const { url, close } = await startPair('session', { codeMode: { enabled: true }, compositeTools: [workflow] })
  t.teardown(close)
  const request = await clientOf('session', url)
  const run = async (script: string) =>
    JSON.stringify((await request('tools/call', { name: 'execute_tool_script', arguments: { script } }))?.result)
  t.match(await run('return alpha_show()'), /ui:\/\/alpha\/clock/)
  t.match(await run('return alpha_refresh()'), /undefined|not defined|unknown/)
  t.match(JSON.stringify((await request('tools/call', { name: 'both', arguments: {} }))?.result), /ui:\/\/alpha/)
})
