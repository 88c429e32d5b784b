/** MCP Apps through a virtual server: addresses, names of apps, pages, in both client and backend eras. */
import t from 'tap'
import { page, startAppServer } from '../../../helpers/mcp/app-server.ts'
import { openSession } from '../../../helpers/mcp/wire.ts'
import {
  capabilities,
  clientOf,
  eras,
  type Fields,
  memberOf,
  names,
  resultOf,
  startClock,
  startPair,
  uri,
} from './clock-servers.ts'
import { startPinned } from '../../../helpers/vmcp/pinning.ts'
import { startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

const pairs = eras.flatMap((client) => eras.map((backend) => [client, backend] as const))

for (const [clientEra, backendEra] of pairs) {
  const what = `${clientEra} client, ${backendEra} backends`
  await t.test(`apps: two servers with the same page address (${what})`, async (t) => {
    const { url, alpha, close } = await startPair(backendEra)
    t.teardown(close)
    const request = await clientOf(clientEra, url)
    const tools = (await resultOf(request, 'tools/list'))['tools'] as Fields[]
    const resources = (await resultOf(request, 'resources/list'))['resources'] as Fields[]
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
      const read = await resultOf(request, 'resources/read', { uri: address })
      t.match(read['contents'], [{ uri: address, text: `<p>${name}: ui://clock/view.html</p>` }])
      const unlisted = await request('resources/read', { uri: `ui://${name}/unlisted/x` })
      t.ok(unlisted?.error, 'a page that no tool and no result names is not readable')
      const result = await resultOf(request, 'tools/call', { name: `${name}_show`, arguments: {} })
      t.match(result['content'], [
        { type: 'resource_link', uri: address },
        { type: 'resource', resource: { uri: address, text: `<p>${name}</p>` } },
        { type: 'text', text: uri },
      ])
      t.match(result['_meta'], { ui: { resourceUri: address } })
      const prompt = await resultOf(request, 'prompts/get', { name: `${name}_ask` })
      t.match(prompt['messages'], [{ content: { uri: address } }])
    }
    t.ok(
      alpha.requests.every(({ params }) => !JSON.stringify(params['uri'] ?? '').includes('alpha')),
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

await t.test(
  'apps: original names are listed once, for apps only, and listOriginalNames turns them off',
  async (t) => {
    const { url, close } = await startPair('session')
    t.teardown(close)
    for (const era of eras) {
      const tools = await names(await clientOf(era, url))
      const copies = tools.filter(({ name }) => !/^(alpha|beta)_/.test(name as string))
      t.same(
        copies.map(({ name }) => name as string),
        ['alpha-only', 'beta-only'],
        'ambiguous names are missing',
      )
      t.ok(copies.every((tool) => JSON.stringify(tool['_meta']) === '{"ui":{"visibility":["app"]}}'))
      const plain = (await names(await clientOf(era, url, {}))).map(({ name }) => name as string)
      t.same(
        plain,
        ['alpha_alpha-only', 'alpha_show', 'beta_beta-only', 'beta_show'],
        'without app-only tools',
      )
    }
    const off = await startPair('session', { extensions: { apps: { listOriginalNames: false } } })
    t.teardown(off.close)
    t.ok(
      (await names(await clientOf('session', off.url))).every(({ name }) =>
        /^(alpha|beta)_/.test(name as string),
      ),
    )
  },
)

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
    const vmcp = await startPinned(t, { alpha: alpha.url }, { extensions: { apps } })
    t.teardown(() => alpha.close())
    const request = await clientOf('session', vmcp.url)
    const expected = { prefersBorder: true, permissions, csp }
    const { resources } = await resultOf(request, 'resources/list')
    t.same(memberOf(resources, 0, '_meta', 'ui'), expected, 'in the list')
    t.equal(memberOf(resources, 0, 'uri'), uri, 'a single backend keeps its addresses')
    const { contents } = await resultOf(request, 'resources/read', { uri })
    t.same(memberOf(contents, 0, '_meta', 'ui'), expected, 'in the contents')
    const affected = ['connectDomains', ...('microphone' in permissions ? [] : ['permissions'])]
    t.same(
      vmcp.events.filter(({ type }) => type === 'page_narrowed').map(({ fields }) => fields),
      [{ backend: 'alpha', page: uri, affected }],
      'reported once',
    )
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
    const address = memberOf(tool, '_meta', 'ui', 'resourceUri') as string
    t.match(address, /^ui:\/\/thief\//)
    t.ok((await request('resources/read', { uri: address }))?.error)
  }
  t.notOk(victim.requests.some(({ method }) => method === 'resources/read'))
})

await t.test('apps: a disabled extension changes no addresses and no names', async (t) => {
  const { url, close } = await startPair('session', { extensions: { apps: { enabled: false } } })
  t.teardown(close)
  const request = await clientOf('session', url)
  const { resources } = await resultOf(request, 'resources/list')
  t.same(
    (resources as Fields[]).map((one) => one['uri'] as string),
    [uri],
  )
  t.match((await request('tools/call', { name: 'alpha-only' }))?.error, { code: -32602 })
})

await t.test('apps: page updates reach the client under the client address of the page', async (t) => {
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

await t.test(
  'apps: a unique bare address works, and updates arrive under the address that was used',
  async (t) => {
    const [alpha, beta] = [await startClock('alpha', 'session'), await startClock('beta', 'session')]
    const own = await startAppServer({
      name: 'own',
      era: 'session',
      tools: [{ name: 'draw', _meta: { ui: { resourceUri: 'ui://own-page' } } }],
      resources: [{ uri: 'ui://own-page', name: 'page' }],
      contents: { 'ui://own-page': page('ui://own-page', 'drawn') },
    })
    const vmcp = await startTestVmcp({ alpha: alpha.url, beta: beta.url, own: own.url })
    t.teardown(() => Promise.all([vmcp.close(), alpha.close(), beta.close(), own.close()]))
    const session = await openSession(vmcp.url, { capabilities })
    const read = await session.request('resources/read', { uri: 'ui://own-page' })
    t.match(read.response?.result, { contents: [{ uri: 'ui://own/own-page', text: 'drawn' }] })
    const stream = await session.listen()
    await session.request('resources/subscribe', { uri: 'ui://own-page' })
    own.push({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: 'ui://own-page' } })
    const update = await stream.next(({ method }) => method === 'notifications/resources/updated')
    t.equal((update.params as Fields)['uri'], 'ui://own-page')
    stream.close()
  },
)
