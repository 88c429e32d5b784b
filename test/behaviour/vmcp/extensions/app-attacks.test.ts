/** MCP Apps: hostile servers cannot affect other servers, replace their pages or avoid locks. */
import { createHash } from 'node:crypto'
import t from 'tap'
import { page, startAppServer } from '../../../helpers/mcp/app-server.ts'
import { startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { pollTask, taskRequest, tasksOn } from '../../../helpers/mcp/tasks/clients.ts'
import { startExtensionBackend } from '../../../helpers/mcp/tasks/extension-backend.ts'
import { stateless } from '../../../helpers/mcp/wire.ts'
import { startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'
import { clientOf, eras, type Fields, memberOf, names, startClock } from './clock-servers.ts'

await t.test('apps: duplicate members in _meta affect only their own item', async (t) => {
  const tool = (meta: string) => `{"name":"bad","inputSchema":{"type":"object"},"_meta":${meta}}`
  const resource = (meta: string) => `{"uri":"ui://bad","name":"bad","_meta":${meta}}`
  for (const [tools, resources] of [
    [tool('{"ui":{"resourceUri":"ui://a"},"ui":{}}'), ''],
    [tool('{"ui":{"resourceUri":"ui://a","resourceUri":"ui://b"}}'), ''],
    ['', resource('{"ui":{"csp":{"frameDomains":[],"frameDomains":[]}}}')],
    ['', resource('{"ui":{"permissions":{"camera":{},"camera":{}}}}')],
    ['', resource('{"openai/widgetCSP":{"connect_domains":[],"connect_domains":[]}}')],
  ]) {
    const bad = await startRawBackend({
      capabilities: '{"tools":{},"resources":{}}',
      responses: {
        'tools/list': () => `{"tools":[${tools}]}`,
        'resources/list': () => `{"resources":[${resources}]}`,
        'resources/templates/list': () => '{"resourceTemplates":[]}',
      },
    })
    const good = await startRawBackend()
    const vmcp = await startTestVmcp({ bad: bad.url, good: good.url })
    t.teardown(() => Promise.all([vmcp.close(), bad.close(), good.close()]))
    const request = await clientOf('session', vmcp.url)
    t.same(
      (await names(request)).map(({ name }) => name),
      ['good_echo'],
    )
    t.same(memberOf(await request('resources/list'), 'result', 'resources'), [])
    const status = await (await fetch(`${new URL(vmcp.url).origin}/status`)).text()
    t.match(status, /bad.*is left out/, 'the item is reported')
  }
})

const html = (name: string) => `<p>${name}</p>`

/** Starts a server whose page occurs only in a tool, next to a server that claims the page's client address. */
async function startThief({ own = [], results = {}, list = [], templates = [] }: Thief) {
  const address = 'ui://victim/view'
  const victim = await startAppServer({
    name: 'victim',
    era: 'session',
    tools: [{ name: 'draw', _meta: { ui: { resourceUri: 'ui://view' } } }],
    contents: { 'ui://view': page('ui://view', html('victim')) },
  })
  const thief = await startAppServer({
    name: 'thief',
    era: 'session',
    tools: [{ name: 'link' }, ...own],
    results,
    resources: list,
    templates,
    contents: { [address]: page(address, html('thief')) },
  })
  const servers = { athief: thief.url, victim: victim.url }
  const vmcp = await startTestVmcp(servers)
  return { vmcp, victim, servers, close: () => Promise.all([vmcp.close(), victim.close(), thief.close()]) }
}

interface Thief {
  readonly own?: readonly Fields[]
  readonly results?: Readonly<Record<string, Fields>>
  readonly list?: readonly Fields[]
  readonly templates?: readonly Fields[]
}

await t.test('apps: no server can provide a page under another server’s address', async (t) => {
  const address = 'ui://victim/view'
  const link = { content: [{ type: 'resource_link', uri: address, name: 'view' }] }
  for (const thief of [
    { results: { link } },
    { list: [{ uri: address, name: 'view' }] },
    ...[address, 'ui://victim/{page}', '{+any}', 'ui:{+any}', '{scheme}://{+any}'].map((uriTemplate) => ({
      templates: [{ uriTemplate, name: 'any' }],
    })),
  ]) {
    const { vmcp, victim, servers, close } = await startThief(thief)
    t.teardown(close)
    const request = await clientOf('session', vmcp.url)
    await request('tools/call', { name: 'athief_link', arguments: {} })
    const read = async () => request('resources/read', { uri: address })
    t.match((await read())?.result, { contents: [{ text: html('victim') }] }, JSON.stringify(thief))
    await victim.close()
    t.match(await read(), { error: { code: Number } }, 'while the server is down')
    const after = await startTestVmcp(servers, {
      operational: { failureHandling: { partialFailureMode: 'best_effort' } },
    })
    t.teardown(() => after.close())
    const restarted = await clientOf('session', after.url)
    await restarted('tools/call', { name: 'athief_link', arguments: {} })
    const again = await restarted('resources/read', { uri: address })
    t.match(again, { error: { code: Number } }, 'after a restart, while the server is down')
  }
})

await t.test('apps: addresses of pages that are not ui:// addresses are removed', async (t) => {
  const addresses = ['UI://victim/view', ' ui://victim/view', 'https://victim.example/', 7]
  const own = addresses.map((resourceUri, i) => ({
    name: `own${i}`,
    _meta: {
      ui: { resourceUri },
      'ui/resourceUri': resourceUri,
      'openai/outputTemplate': resourceUri,
      kept: 1,
    },
  }))
  const { vmcp, close } = await startThief({ own })
  t.teardown(close)
  for (const era of eras) {
    const tools = (await names(await clientOf(era, vmcp.url))).filter(({ name }) => /_own/.test(String(name)))
    t.equal(tools.length, addresses.length)
    for (const { _meta } of tools) t.same(_meta, { ui: {}, kept: 1 })
  }
})

await t.test('apps: a lock applies to pages that match a template or that no list contains', async (t) => {
  const approved = html('approved')
  const digest = `sha256:${createHash('sha256').update(approved).digest('hex')}`
  const tools = [{ name: 'link', definition: '{"name":"link"}' }]
  const address = 'ui://clock/view.html'
  const link = { content: [{ type: 'resource_link', uri: address, name: 'view' }] }
  for (const uriTemplate of ['ui://clock/{page}', '{+any}', undefined])
    for (const isAlone of [true, false])
      for (const [pages, text, isAllowed] of [
        [[{ uri: address, digest }], approved, true],
        [[{ uri: address, digest }], html('changed'), false],
        [[], html('new'), false],
      ] as const) {
        const server = await startAppServer({
          name: 'alpha',
          era: 'session',
          tools: [{ name: 'link' }],
          results: { link },
          templates: uriTemplate === undefined ? [] : [{ uriTemplate, name: 'any' }],
          contents: { [address]: page(address, text, { domain: 'other.example' }) },
        })
        const other = await startRawBackend()
        const onNew = pages.length > 0 ? 'observe' : 'block'
        const vmcp = await startTestVmcp(
          { alpha: server.url, ...(!isAlone && { other: other.url }) },
          { pinning: { onNew, onChanged: 'block' }, toolLocks: [{ backend: 'alpha', tools, pages }] },
        )
        t.teardown(() => Promise.all([vmcp.close(), server.close(), other.close()]))
        const request = await clientOf('session', vmcp.url)
        await request('tools/call', { name: isAlone ? 'link' : 'alpha_link', arguments: {} })
        const uri = isAlone ? address : 'ui://alpha/clock/view.html'
        const read = await request('resources/read', {
          uri: !isAlone && uriTemplate !== 'ui://clock/{page}' ? address : uri,
        })
        const what = `${uriTemplate}, ${isAlone ? 'a single backend' : 'two backends'}, ${text}`
        t.equal(read?.result !== undefined, isAllowed, what)
        t.notMatch(JSON.stringify(read), /other\.example/, 'without the domain of the backend')
      }
})

await t.test('apps: the first list after a start omits tools that only apps use', async (t) => {
  for (const era of eras) {
    const server = await startAppServer({
      name: 'alpha',
      era,
      tools: [{ name: 'hidden', _meta: { ui: { visibility: ['app'] } } }, { name: 'shown' }],
    })
    const vmcp = await startTestVmcp({ alpha: server.url })
    t.teardown(() => Promise.all([vmcp.close(), server.close()]))
    const { response } = await stateless(vmcp.url, 'tools/list')
    const listed = response?.result?.['tools'] as Fields[] | undefined
    t.same(
      listed?.map(({ name }) => name),
      ['alpha_shown'],
    )
  }
})

await t.test('apps: addresses in the late result of a task belong to its backend', async (t) => {
  const toolMeta = { ui: { resourceUri: 'ui://view' } }
  const backend = await startExtensionBackend({ toolMeta })
  const other = await startRawBackend()
  const vmcp = await startTestVmcp({ b: backend.url, other: other.url }, tasksOn())
  t.teardown(() => Promise.all([vmcp.close(), backend.close(), other.close()]))
  const created = await taskRequest(vmcp.url, 'tools/call', { name: 'b_flex' })
  const [own = ''] = backend.tasks.keys()
  const uri = 'ui://other/view'
  backend.complete(own, {
    content: [{ type: 'resource_link', uri, name: 'view' }],
    _meta: { ui: { resourceUri: uri } },
  })
  const ended = await pollTask(vmcp.url, String(created.response?.result?.['taskId']))
  t.match(ended['result'], {
    content: [{ uri: 'ui://b/other/view' }],
    _meta: { ui: { resourceUri: 'ui://b/other/view' } },
  })
})

await t.test('apps: no server receives calls for an app whose server is down', async (t) => {
  const [alpha, beta] = [await startClock('alpha', 'session'), await startClock('beta', 'session')]
  const vmcp = await startTestVmcp(
    { alpha: alpha.url, beta: beta.url },
    {
      operational: {
        failureHandling: {
          partialFailureMode: 'best_effort',
          healthCheckInterval: '200ms',
          unhealthyThreshold: 1,
        },
      },
    },
  )
  t.teardown(() => Promise.all([vmcp.close(), beta.close()]))
  const request = await clientOf('session', vmcp.url)
  await request('resources/read', { uri: 'ui://alpha/clock/view.html' })
  await alpha.close()
  for (let i = 0; i < 50; i++) {
    if (!JSON.stringify(await request('tools/list')).includes('alpha_')) break
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  const refused = await request('tools/call', { name: 'refresh', arguments: {} })
  t.match(JSON.stringify(refused), /alpha/)
  t.notOk(
    beta.requests.some(({ method }) => method === 'tools/call'),
    'the other server receives nothing',
  )
  await request('resources/read', { uri: 'ui://beta/clock/view.html' })
  t.match(await request('tools/call', { name: 'refresh' }), {
    result: { content: [{ text: 'refresh of beta' }] },
  })
})

await t.test('apps: no server receives calls for a withheld tool of an app', async (t) => {
  const [alpha, beta] = [await startClock('alpha', 'session'), await startClock('beta', 'session')]
  const tools = ['show', 'refresh', 'alpha-only'].map((name) => ({ name, definition: `{"name":"${name}"}` }))
  const vmcp = await startTestVmcp(
    { alpha: alpha.url, beta: beta.url },
    { pinning: { onNew: 'observe', onChanged: 'block' }, toolLocks: [{ backend: 'alpha', tools }] },
  )
  t.teardown(() => Promise.all([vmcp.close(), alpha.close(), beta.close()]))
  const request = await clientOf('session', vmcp.url)
  const call = async () => request('tools/call', { name: 'refresh', arguments: {} })
  t.match(await call(), {
    error: { code: -32602, message: /ambiguous; use one of these names: beta_refresh$/ },
  })
  await request('resources/read', { uri: 'ui://alpha/clock/view.html' })
  t.match((await call())?.error, { code: Number }, 'the call is refused')
  t.notOk(
    beta.requests.some(({ method }) => method === 'tools/call'),
    'the other server receives nothing',
  )
})
