/**
 * Resources that a result links to, and that no list contains, can be read and watched at the backend of the result.
 */
import t, { type Test } from 'tap'
import { openSession, stateless, statelessStream, type WireAnswer } from '../../../helpers/mcp/wire.ts'
import { type RawBackendOptions, startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { lockOf } from '../../../helpers/vmcp/pinning.ts'
import { startTestVmcp, vmcpConfig } from '../../../helpers/vmcp/vmcp.ts'

t.setTimeout(180_000)

/** A backend whose tool links to its arguments, and that reads any resource. */
function linking(name: string, more: RawBackendOptions = {}): RawBackendOptions {
  return {
    capabilities: '{"tools":{},"resources":{"subscribe":true},"prompts":{}}',
    ...more,
    responses: {
      'prompts/list': () => '{"prompts":[{"name":"ask"}]}',
      'prompts/get': () =>
        '{"messages":[{"role":"user","content":{"type":"resource_link","uri":"link://prompt","name":"l"}}]}',
      'tools/call': ({ params }) => {
        const { uri, embedded, padding = 0 } = params['arguments'] as Record<string, string>
        const link = { type: 'resource_link', uri, name: 'l' }
        const resource = { type: 'resource', resource: { uri: embedded, text: 'x' } }
        const text = { type: 'text', text: 'x'.repeat(Number(padding)) }
        return JSON.stringify({ content: [text, ...(uri ? [link] : []), ...(embedded ? [resource] : [])] })
      },
      'resources/list': () => `{"resources":[{"uri":"listed://${name}","name":"r"}]}`,
      'resources/templates/list': () => '{"resourceTemplates":[]}',
      'resources/read': ({ params }) =>
        JSON.stringify({
          contents: [
            { uri: params['uri'], text: `read by ${name}` },
            { uri: `${String(params['uri'])}/child`, text: 'child' },
          ],
        }),
      'resources/subscribe': () => '{}',
      'resources/unsubscribe': () => '{}',
      ...more.responses,
    },
  }
}

async function rig(t: Test, backends: Readonly<Record<string, RawBackendOptions>>, config: object = {}) {
  const started = Object.fromEntries(
    await Promise.all(
      Object.entries(backends).map(
        async ([name, options]) => [name, await startRawBackend(options)] as const,
      ),
    ),
  )
  const urls = Object.fromEntries(Object.entries(started).map(([name, { url }]) => [name, url]))
  const vmcp = await startTestVmcp(urls, config as Record<string, unknown>)
  t.teardown(() => Promise.all([vmcp.close(), ...Object.values(started).map((backend) => backend.close())]))
  return { vmcp, started, urls }
}

interface Client {
  readonly era: string
  request(method: string, params: Record<string, unknown>): Promise<WireAnswer>
}

async function clientsOf(url: string): Promise<readonly Client[]> {
  const session = await openSession(url)
  return [
    { era: 'session', request: (method, params) => session.request(method, params) },
    { era: 'stateless', request: (method, params) => stateless(url, method, params) },
  ]
}

async function read(client: Client, uri: string): Promise<unknown> {
  const { response } = await client.request('resources/read', { uri })
  const { contents } = (response?.result ?? {}) as { contents?: { text: string }[] }
  return contents?.[0]?.text ?? response?.error?.code
}

t.test('one backend: every URI is passed through', async (t) => {
  const { vmcp, started } = await rig(t, { a: linking('a') })
  for (const client of await clientsOf(vmcp.url)) {
    t.equal(await read(client, 'any://thing'), 'read by a', client.era)
    t.equal(await read(client, 'listed://a'), 'read by a', client.era)
  }
  const session = await openSession(vmcp.url)
  const stream = await session.listen()
  t.same((await session.request('resources/subscribe', { uri: 'any://thing' })).response?.result, {})
  const updated =
    '{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"any://thing"}}'
  started['a']?.push(updated)
  t.match(await stream.next(), { method: 'notifications/resources/updated', params: { uri: 'any://thing' } })
  t.same((await session.request('resources/unsubscribe', { uri: 'any://thing' })).response?.result, {})
  stream.close()
  const listener = await statelessStream(vmcp.url, 'subscriptions/listen', {
    notifications: { resourceSubscriptions: ['any://thing'] },
  })
  t.match((await listener.next()).params, { notifications: { resourceSubscriptions: ['any://thing'] } })
  started['a']?.push(updated)
  t.match(await listener.next(), { method: 'notifications/resources/updated' })
  listener.close()
})

t.test('one backend: the response to an unknown URI comes from the backend', async (t) => {
  const { vmcp } = await rig(t, {
    a: linking('a', {
      responses: {
        'resources/read': ({ id, res }) =>
          void res
            .writeHead(200, { 'content-type': 'application/json' })
            .end(`{"jsonrpc":"2.0","id":${id},"error":{"code":-32002,"message":"no such resource"}}`),
      },
    }),
  })
  const [session, modern] = await clientsOf(vmcp.url)
  t.equal(session && (await read(session, 'no://thing')), -32002)
  t.equal(modern && (await read(modern, 'no://thing')), -32602)
})

t.test('several backends: links of results lead to their backend', async (t) => {
  const { vmcp } = await rig(t, { a: linking('a'), b: linking('b') })
  for (const client of await clientsOf(vmcp.url)) {
    const { era } = client
    const call = (name: string, args: object) => client.request('tools/call', { name, arguments: args })
    t.type(await read(client, `link://${era}`), 'number', 'not handed out')
    await call('b_echo', { uri: `link://${era}` })
    t.equal(await read(client, `link://${era}`), 'read by b', 'a resource_link')
    t.equal(await read(client, `link://${era}/child`), 'read by b', 'a URI of what was read')
    await call('b_echo', { embedded: `emb://${era}` })
    t.equal(await read(client, `emb://${era}`), 'read by b', 'an embedded resource')
    await call('a_echo', { uri: `large://${era}"\u00e9`, padding: '300000' })
    t.equal(await read(client, `large://${era}"\u00e9`), 'read by a', 'a link in a large result')
    await client.request('prompts/get', { name: 'b_ask' })
    t.equal(await read(client, 'link://prompt'), 'read by b', 'a link of a prompt')
    await call('b_echo', { uri: 'listed://a' })
    t.equal(await read(client, 'listed://a'), 'read by a', 'a listed resource keeps its backend')
    t.match((await client.request('resources/read', { uri: 'other://x' })).response?.error, {}, 'unknown')
  }
})

t.test('several backends: links are those of the session, and updates reach it', async (t) => {
  const { vmcp, started } = await rig(t, { a: linking('a'), b: linking('b') })
  const [ada, bob] = await Promise.all([openSession(vmcp.url), openSession(vmcp.url)])
  const stream = await ada.listen()
  await ada.request('tools/call', { name: 'b_echo', arguments: { uri: 'link://x' } })
  t.equal((await bob.request('resources/read', { uri: 'link://x' })).response?.error?.code, -32002)
  t.same((await ada.request('resources/subscribe', { uri: 'link://x' })).response?.result, {})
  started['b']?.push(
    '{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"link://x"}}',
  )
  t.match(await stream.next(), { method: 'notifications/resources/updated', params: { uri: 'link://x' } })
  stream.close()
})

t.test('anonymous callers without sessions cannot direct each other to another backend', async (t) => {
  const { vmcp } = await rig(t, { a: linking('a'), b: linking('b') })
  const [, modern] = await clientsOf(vmcp.url)
  if (!modern) throw new Error('no client')
  await modern.request('tools/call', { name: 'b_echo', arguments: { uri: 'link://same' } })
  t.equal(await read(modern, 'link://same'), 'read by b')
  await modern.request('tools/call', { name: 'a_echo', arguments: { uri: 'link://same' } })
  t.type(await read(modern, 'link://same'), 'number')
  const session = await openSession(vmcp.url)
  for (const backend of ['a', 'b']) {
    await session.request('tools/call', { name: `${backend}_echo`, arguments: { uri: 'link://same' } })
    t.match((await session.request('resources/read', { uri: 'link://same' })).text, `read by ${backend}`)
  }
})

t.test('only templates of the linking backend decide about a link', async (t) => {
  const templates = {
    'resources/templates/list': () => '{"resourceTemplates":[{"uriTemplate":"link://{+x}","name":"t"}]}',
  }
  const { vmcp } = await rig(t, { a: linking('a', { responses: templates }), b: linking('b') })
  const session = await openSession(vmcp.url)
  t.match((await session.request('resources/read', { uri: 'link://x' })).text, 'read by a')
  await session.request('tools/call', { name: 'b_echo', arguments: { uri: 'link://x' } })
  t.match((await session.request('resources/read', { uri: 'link://x' })).text, 'read by b')
})

t.test('a replaced backend gets no links of the previous one', async (t) => {
  const { vmcp, urls } = await rig(t, { a: linking('a'), b: linking('b') })
  const other = await startRawBackend(linking('other'))
  t.teardown(() => other.close())
  const session = await openSession(vmcp.url)
  await session.request('tools/call', { name: 'b_echo', arguments: { uri: 'link://x' } })
  vmcp.reload(vmcpConfig({ ...urls, b: other.url }))
  t.equal((await session.request('resources/read', { uri: 'link://x' })).response?.error?.code, -32002)
})

t.test('pins: rejected templates and closed backends stay rejected', async (t) => {
  const template = '{"uriTemplate":"db://{x}","name":"t"}'
  const templates = { 'resources/templates/list': () => `{"resourceTemplates":[${template}]}` }
  const echo = '{"name":"echo","description":"Echoes","inputSchema":{"type":"object"}}'
  const pinning = { onChanged: 'block', onNew: 'block' }
  const blocked = await rig(
    t,
    { a: linking('a', { responses: templates }) },
    { pinning, toolLocks: [lockOf('a', [echo])] },
  )
  for (const client of await clientsOf(blocked.vmcp.url)) {
    t.equal(await read(client, 'db://x'), 403, client.era)
    t.equal(await read(client, 'any://x'), 'read by a', client.era)
  }
  const closed = await rig(t, { a: linking('a') }, { pinning: { ...pinning, noLock: 'block' } })
  for (const client of await clientsOf(closed.vmcp.url))
    t.equal(await read(client, 'any://x'), 403, client.era)
})

t.test('policies decide about links, by URI and by backend', async (t) => {
  const authz = (policy: string) => ({
    incomingAuth: { type: 'anonymous', authz: { type: 'cedar', policies: [policy] } },
  })
  const call = 'permit(principal, action == Action::"call_tool", resource);'
  for (const one of [true, false]) {
    const backends = { a: linking('a'), ...(one ? {} : { b: linking('b') }) }
    const denied = await rig(t, backends, authz(call))
    const permitted = await rig(
      t,
      backends,
      authz(
        `${call}\npermit(principal, action == Action::"read_resource", resource == Resource::"link://x");`,
      ),
    )
    for (const [{ vmcp }, expected] of [
      [denied, 403],
      [permitted, 'read by a'],
    ] as const) {
      for (const client of await clientsOf(vmcp.url)) {
        await client.request('tools/call', { name: 'a_echo', arguments: { uri: 'link://x' } })
        await client.request('tools/call', { name: 'a_echo', arguments: { uri: 'link://y' } })
        t.equal(await read(client, 'link://x'), expected, client.era)
        t.equal(await read(client, 'link://y'), 403, client.era)
      }
    }
  }
})
