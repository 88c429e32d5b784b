/** Resource updates reach subscribers, and no other client. */
import t from 'tap'
import { startFixture } from '../../../helpers/mcp/fixture-server/index.ts'
import { startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { openSession, type RpcMessage, statelessStream } from '../../../helpers/mcp/wire.ts'
import { until } from '../../../helpers/redis.ts'
import { bareNames, startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

t.setTimeout(180_000)

const URI = 'test://watched-resource'

function updated(message: RpcMessage): boolean {
  return message.method === 'notifications/resources/updated'
}

for (const era of ['session', 'stateless'] as const) {
  t.test(`resources of a ${era} backend: subscribed sessions and listeners get updates`, async (t) => {
    const [fixture, second] = await Promise.all([startFixture({ era }), startRawBackend()])
    const vmcp = await startTestVmcp(
      { fixture: fixture.url, second: second.url },
      { aggregation: bareNames('fixture') },
    )
    t.teardown(() => Promise.all([vmcp.close(), fixture.close(), second.close()]))
    const session = await openSession(vmcp.url)
    const other = await openSession(vmcp.url)
    const [stream, otherStream] = await Promise.all([session.listen(), other.listen()])
    t.same((await session.request('resources/subscribe', { uri: URI })).response?.result, {})
    await other.request('tools/call', { name: 'echo' })
    const listener = await statelessStream(vmcp.url, 'subscriptions/listen', {
      notifications: { resourceSubscriptions: [URI, 'test://no-such-thing'] },
    })
    const ack = await listener.next()
    t.same(
      ack.params?.['notifications'],
      { resourceSubscriptions: [URI] },
      'resources that cannot be watched are left out',
    )

    fixture.state.update(URI)
    t.equal((await stream.next(updated)).params?.['uri'], URI)
    const heard = await listener.next(updated)
    t.equal(heard.params?.['uri'], URI)
    t.same(heard.params?.['_meta'], ack.params?.['_meta'])
    t.same(otherStream.pending, [])

    t.same((await session.request('resources/unsubscribe', { uri: URI })).response?.result, {})
    fixture.state.update(URI)
    await listener.next(updated)
    t.same(stream.pending, [], 'an unsubscribed session gets no update')
    for (const each of [stream, otherStream, listener]) each.close()
  })
}

t.test('an empty subscription is an error, and a listener without a filter is rejected', async (t) => {
  const [fixture, second] = await Promise.all([startFixture(), startRawBackend()])
  const vmcp = await startTestVmcp(
    { fixture: fixture.url, second: second.url },
    { aggregation: bareNames('fixture') },
  )
  t.teardown(() => Promise.all([vmcp.close(), fixture.close(), second.close()]))
  const session = await openSession(vmcp.url)
  t.equal(
    (await session.request('resources/subscribe', { uri: 'test://nothing' })).response?.error?.code,
    -32002,
  )
  const refused = await statelessStream(vmcp.url, 'subscriptions/listen', {})
  t.equal(refused.status, 400)
  refused.close()
})

t.test('a closing server ends subscriptions with a result', async (t) => {
  const fixture = await startFixture()
  const vmcp = await startTestVmcp({ fixture: fixture.url }, { aggregation: bareNames('fixture') })
  t.teardown(() => fixture.close())
  const listener = await statelessStream(vmcp.url, 'subscriptions/listen', {
    notifications: { toolsListChanged: true },
  })
  const ack = await listener.next()
  await vmcp.close()
  const last = await listener.next()
  t.equal(last.result?.['resultType'], 'complete')
  t.match(last.result?.['_meta'], ack.params?.['_meta'])
  await listener.ended
})

for (const era of ['session', 'stateless'] as const) {
  t.test(`a restarted ${era} backend: subscriptions continue automatically`, async (t) => {
    const before = await startFixture({ era })
    const port = Number(new URL(before.url).port)
    const vmcp = await startTestVmcp({ fixture: before.url }, { aggregation: bareNames('fixture') })
    const session = await openSession(vmcp.url)
    const stream = await session.listen()
    t.same((await session.request('resources/subscribe', { uri: URI })).response?.result, {})
    const listener = await statelessStream(vmcp.url, 'subscriptions/listen', {
      notifications: { resourceSubscriptions: [URI], toolsListChanged: true },
    })
    await listener.next()
    await before.close()
    const after = await startFixture({ era, port })
    t.teardown(() => Promise.all([vmcp.close(), after.close()]))
    // One update covers the missed ones. From then on every update arrives.
    await Promise.all([stream.next(updated), listener.next(updated)])
    after.state.update(URI)
    t.equal((await stream.next(updated)).params?.['uri'], URI)
    t.equal((await listener.next(updated)).params?.['uri'], URI)
    after.state.toggleTool()
    await listener.next(({ method }) => method === 'notifications/tools/list_changed')
    for (const each of [stream, listener]) each.close()
  })
}

t.test('a backend can only announce updates of its own resources', async (t) => {
  const start = (name: string) =>
    startRawBackend({
      capabilities: '{"tools":{},"resources":{"subscribe":true}}',
      responses: {
        'resources/list': () => `{"resources":[{"uri":"test://${name}","name":"${name}"}]}`,
        'resources/templates/list': () => '{"resourceTemplates":[]}',
        'resources/subscribe': () => '{}',
      },
    })
  const [a, b] = [await start('a'), await start('b')]
  const vmcp = await startTestVmcp({ a: a.url, b: b.url })
  t.teardown(() => Promise.all([vmcp.close(), a.close(), b.close()]))
  const session = await openSession(vmcp.url)
  const stream = await session.listen()
  const uris = ['test://a', 'test://b']
  for (const uri of uris) t.same((await session.request('resources/subscribe', { uri })).response?.result, {})
  const notifications = { resourceSubscriptions: uris }
  const listener = await statelessStream(vmcp.url, 'subscriptions/listen', { notifications })
  t.same((await listener.next()).params?.['notifications'], notifications)
  const update = (uri: string) =>
    `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"${uri}"}}`
  // Repeats the updates, because the backend's streams may still be opening.
  await until(() => {
    for (const uri of uris) b.push(update(uri))
    return stream.pending.length > 0 && listener.pending.length > 0
  })
  for (const one of [stream, listener]) {
    t.notMatch(JSON.stringify(one.pending), 'test://a')
    one.close()
  }
})
