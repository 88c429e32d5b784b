/**
 * Changing lists: clients whose view changed are notified, other clients are not, and the next list shows the change.
 */
import t from 'tap'
import { startFixture } from '../../../helpers/mcp/fixture-server/index.ts'
import {
  openSession,
  type RpcMessage,
  statelessStream,
  type WireSession,
  type WireStream,
} from '../../../helpers/mcp/wire.ts'
import { proves } from '../../../helpers/proves.ts'
import { startVmcp } from '../../../../runtime/vmcp/index.ts'
import { startRawBackend, textResult } from '../../../helpers/mcp/raw-backend.ts'
import { bareNames, startTestVmcp, vmcpConfig } from '../../../helpers/vmcp/vmcp.ts'

proves('3.config.backends', '3.config.aggregation')

async function toolNames(session: WireSession): Promise<string[]> {
  const { response } = await session.request('tools/list')
  return ((response?.result?.['tools'] ?? []) as { name: string }[]).map(({ name }) => name)
}

function is(method: string) {
  return (message: RpcMessage) => message.method === method
}

async function listening(url: string): Promise<{ session: WireSession; stream: WireStream }> {
  const session = await openSession(url)
  return { session, stream: await session.listen() }
}

t.test('a backend added by a changed configuration: open sessions are notified and see it', async (t) => {
  const [a, b] = await Promise.all([startFixture(), startFixture({ era: 'stateless' })])
  const vmcp = await startTestVmcp({ a: a.url })
  t.teardown(() => Promise.all([vmcp.close(), a.close(), b.close()]))
  const { session, stream } = await listening(vmcp.url)
  t.notOk((await toolNames(session)).includes('b_echo'))
  vmcp.reload(vmcpConfig({ a: a.url, b: b.url }))
  await stream.next(is('notifications/tools/list_changed'))
  const after = await toolNames(session)
  t.ok(after.includes('b_echo'))
  t.ok(after.includes('a_echo'))
  t.match((await session.request('tools/call', { name: 'b_echo', arguments: { x: 1 } })).text, 'x')

  vmcp.reload(vmcpConfig({ b: b.url }))
  await stream.next(is('notifications/tools/list_changed'))
  t.notOk((await toolNames(session)).includes('a_echo'))
  const gone = await session.request('tools/call', { name: 'a_echo' })
  t.equal(gone.response?.error?.code, -32602)
  stream.close()
})

for (const era of ['session', 'stateless'] as const) {
  t.test(`a ${era} backend announces a change: sessions and stateless listeners are notified`, async (t) => {
    const fixture = await startFixture({ era })
    const vmcp = await startTestVmcp({ fixture: fixture.url }, { aggregation: bareNames('fixture') })
    t.teardown(() => Promise.all([vmcp.close(), fixture.close()]))
    const { session, stream } = await listening(vmcp.url)
    await toolNames(session)
    await session.request('prompts/list')
    const listener = await statelessStream(vmcp.url, 'subscriptions/listen', {
      notifications: { toolsListChanged: true },
    })
    const ack = await listener.next()
    t.equal(ack.method, 'notifications/subscriptions/acknowledged')
    t.same(ack.params?.['notifications'], { toolsListChanged: true })
    fixture.state.toggleTool()
    await stream.next(is('notifications/tools/list_changed'))
    const told = await listener.next()
    t.equal(told.method, 'notifications/tools/list_changed')
    t.same(told.params?.['_meta'], ack.params?.['_meta'])
    t.ok((await toolNames(session)).includes('extra_tool'))
    fixture.state.togglePrompt()
    await stream.next(is('notifications/prompts/list_changed'))
    t.same(listener.pending, [], 'the listener subscribed to tools only')
    listener.close()
    stream.close()
  })
}

t.test('a client that has read no list is not notified', async (t) => {
  const fixture = await startFixture()
  const vmcp = await startTestVmcp({ fixture: fixture.url }, { aggregation: bareNames('fixture') })
  t.teardown(() => Promise.all([vmcp.close(), fixture.close()]))
  const [quiet, curious] = await Promise.all([listening(vmcp.url), listening(vmcp.url)])
  await toolNames(curious.session)
  fixture.state.toggleTool()
  await curious.stream.next(is('notifications/tools/list_changed'))
  t.same(quiet.stream.pending, [])
  quiet.stream.close()
  curious.stream.close()
})

t.test('changes of a backend without offered tools cause no notification', async (t) => {
  const fixture = await startFixture()
  const aggregation = { conflictResolution: 'prefix', tools: [{ workload: 'fixture', filter: ['echo'] }] }
  const vmcp = await startTestVmcp({ fixture: fixture.url }, { aggregation })
  t.teardown(() => Promise.all([vmcp.close(), fixture.close()]))
  const { session, stream } = await listening(vmcp.url)
  t.same(await toolNames(session), ['fixture_echo'])
  await session.request('prompts/list')
  fixture.state.toggleTool()
  fixture.state.togglePrompt()
  await stream.next(is('notifications/prompts/list_changed'))
  t.same(stream.pending, [])
  stream.close()
})

t.test(
  'a backend that shows one client more than other clients: only that client is notified and sees it',
  async (t) => {
    const unlocked = new Set<unknown>()
    const tool = (name: string) => `{"name":"${name}","inputSchema":{"type":"object"}}`
    const backend = await startRawBackend({
      responses: {
        'tools/list': ({ headers }) =>
          `{"tools":[${tool('unlock')}${unlocked.has(headers['mcp-session-id']) ? `,${tool('treasure')}` : ''}]}`,
        'tools/call': ({ headers, params, id, res }) => {
          if (params['name'] !== 'unlock')
            return textResult(unlocked.has(headers['mcp-session-id']) ? 'gold' : 'no')
          unlocked.add(headers['mcp-session-id'])
          const event = (message: string) => `data: ${message}\n\n`
          res.writeHead(200, { 'content-type': 'text/event-stream' })
          res.write(event('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'))
          res.end(event(`{"jsonrpc":"2.0","id":${id},"result":${textResult('unlocked')}}`))
          return undefined
        },
      },
    })
    const vmcp = await startTestVmcp({ raw: backend.url }, { aggregation: bareNames('raw') })
    t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
    const [ada, bob] = await Promise.all([listening(vmcp.url), listening(vmcp.url)])
    for (const { session } of [ada, bob]) t.same(await toolNames(session), ['unlock'])
    t.match((await ada.session.request('tools/call', { name: 'unlock' })).text, 'unlocked')
    await ada.stream.next(is('notifications/tools/list_changed'))
    t.same(await toolNames(ada.session), ['treasure', 'unlock'])
    t.match((await ada.session.request('tools/call', { name: 'treasure' })).text, 'gold')
    t.same(await toolNames(bob.session), ['unlock'])
    t.same(bob.stream.pending, [])
    t.equal((await bob.session.request('tools/call', { name: 'treasure' })).response?.error?.code, -32602)
    ada.stream.close()
    bob.stream.close()
  },
)

t.test('changed policies: every client that has read a list is notified', async (t) => {
  const fixture = await startFixture()
  t.teardown(() => fixture.close())
  const config = (policy: string) =>
    vmcpConfig(
      { fixture: fixture.url },
      {
        aggregation: bareNames('fixture'),
        incomingAuth: { type: 'anonymous', authz: { type: 'cedar', policies: [policy] } },
      },
    )
  const vmcp = await startVmcp(config('permit(principal, action, resource);'), { port: 0 })
  t.teardown(() => vmcp.close())
  const { session, stream } = await listening(vmcp.url)
  t.ok((await toolNames(session)).length > 1)
  vmcp.reload(config('permit(principal, action, resource == Tool::"echo");'))
  await stream.next(is('notifications/tools/list_changed'))
  t.same(await toolNames(session), ['echo'])
  t.same(stream.pending, [], 'prompts were never listed')
  stream.close()
})

t.test('the sessions of a removed backend are closed, and it can be added again', async (t) => {
  const raw = await startRawBackend()
  const vmcp = await startTestVmcp({ raw: raw.url })
  t.teardown(() => Promise.all([vmcp.close(), raw.close()]))
  const session = await openSession(vmcp.url)
  await session.request('tools/call', { name: 'raw_echo' })
  t.ok(raw.sessions.size > 0)
  vmcp.reload(vmcpConfig({}))
  while (raw.sessions.size > 0) await new Promise((resolve) => setTimeout(resolve, 10))
  t.same((await session.request('tools/list')).response?.result?.['tools'], [])
  vmcp.reload(vmcpConfig({ raw: raw.url }))
  t.match((await session.request('tools/call', { name: 'raw_echo' })).text, 'content')
})
