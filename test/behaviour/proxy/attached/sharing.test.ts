/**
 * A stdio server that its image starts, with one attached process that all sessions share. Real servers and SDK
 * clients; the API server is a stub (test/e2e/kube/attach.test.ts uses a real one).
 */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t, { type Test as TapTest } from 'tap'
import { attachedBridge, isReady, startApiStub } from '../../../helpers/kube/attach-stub.ts'
import { openSession, post, statelessRequest } from '../../../helpers/mcp/wire.ts'
import { until } from '../../../helpers/redis.ts'

const everything = ['node_modules/@modelcontextprotocol/server-everything/dist/index.js', 'stdio']
const updated = 'notifications/resources/updated'
const program = 'test/helpers/mcp/fixture-server/stdio-program.ts'

async function bridgeTo(t: TapTest, words: readonly string[], more = {}) {
  const { stub, baseUrl } = await startApiStub(t, words)
  const bridge = await attachedBridge(t, baseUrl, more)
  return { stub, bridge, url: bridge.url }
}

async function connect(t: TapTest, url: string) {
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(url)))
  t.teardown(() => client.close())
  return client
}

t.test('attached: many clients share one process, each with separate ids', async (t) => {
  const { stub, bridge, url } = await bridgeTo(t, everything)
  const clients = await Promise.all(Array.from({ length: 8 }, () => connect(t, url)))
  t.equal(clients[0]?.getServerVersion()?.name, 'mcp-servers/everything')
  const calls = clients.flatMap((client, at) =>
    Array.from({ length: 10 }, async (_, n) => {
      const message = `${at}/${n}`
      const { content } = await client.callTool({ name: 'echo', arguments: { message } })
      return [message, content]
    }),
  )
  for (const [message, content] of await Promise.all(calls))
    t.match(content, [{ type: 'text', text: `Echo: ${String(message)}` }])
  t.equal(stub.streams.attachers, 1, 'one attachment')
  t.ok(await isReady(bridge))
  t.match(JSON.parse(stub.record['attach.json'] ?? ''), {
    holder: 'proxy-a',
    attached: true,
    reason: 'Attached',
    run: 'pod-1/stub://1',
  })
})

t.test('attached: equal ids and progress tokens of two clients do not collide', async (t) => {
  const { url } = await bridgeTo(t, everything)
  const sessions = await Promise.all([openSession(url), openSession(url)])
  const answers = await Promise.all(
    sessions.map(({ headers }, at) =>
      post(
        url,
        JSON.stringify({
          jsonrpc: '2.0',
          id: 7,
          method: 'tools/call',
          params: {
            name: 'trigger-long-running-operation',
            arguments: { duration: 0.2 + 0.2 * at, steps: 2 + at },
            _meta: { progressToken: 'same' },
          },
        }),
        headers,
      ),
    ),
  )
  for (const [at, { messages }] of answers.entries()) {
    const progress = messages.filter(({ method }) => method === 'notifications/progress')
    t.same(
      progress.map(({ params }) => [params?.['progressToken'], params?.['progress']]),
      Array.from({ length: 2 + at }, (_, n) => ['same', n + 1]),
    )
    t.equal(messages.at(-1)?.id, 7)
    t.ok(messages.at(-1)?.result, 'the result comes last')
  }
})

t.test('attached: clients are offered no feature that would expose other clients', async (t) => {
  const { url } = await bridgeTo(t, everything)
  const session = await openSession(url, { capabilities: { sampling: {}, elicitation: {}, roots: {} } })
  const { capabilities } = session.initialized.result as { capabilities: object }
  t.notOk('tasks' in capabilities, 'tasks are left out')
  const { response } = await session.request('tasks/list')
  t.equal(response?.error?.code, -32601)
  const sampled = await session.request('tools/call', {
    name: 'trigger-sampling-request',
    arguments: { prompt: 'hi', maxTokens: 5 },
  })
  t.ok(sampled.response, 'a tool that needs the client ends')
  t.notMatch(sampled.messages, [{ method: 'sampling/createMessage' }])
})

t.test('attached: an older client gets a session in its own revision', async (t) => {
  const { url } = await bridgeTo(t, everything)
  for (const version of ['2024-11-05', '2025-06-18']) {
    const session = await openSession(url, { version })
    t.equal(session.initialized.result?.['protocolVersion'], version)
    t.ok((await session.request('tools/list')).response?.result)
  }
})

t.test('attached: only subscribers get updates, and the last one ends the subscription', async (t) => {
  const { stub, url } = await bridgeTo(t, [program, 'session'])
  const uri = 'test://watched-resource'
  const [one, two] = [await openSession(url), await openSession(url)]
  const heardByTwo = await two.listen()
  // The notification uses the stream of the waiting request.
  const touch = async () => {
    const { messages } = await one.request('tools/call', { name: 'test_trigger_resource_update' })
    return messages.flatMap(({ method, params }) => (method === updated ? [params?.['uri']] : []))
  }
  t.strictSame(await touch(), [], 'there are no subscribers')
  t.ok((await one.request('resources/subscribe', { uri })).response?.result)
  t.strictSame(await touch(), [uri])
  await two.request('ping')
  t.notMatch(heardByTwo.pending, [{ method: updated }])
  await stub.restart()
  await until(async () => (await one.request('ping')).response?.result !== undefined)
  t.strictSame(await touch(), [uri], 'restored after a restart')
  t.ok((await one.request('resources/unsubscribe', { uri })).response?.result)
  t.strictSame(await touch(), [])
  heardByTwo.close()
})

t.test(
  'attached: cancelled calls, and calls of a disconnected client, are cancelled at the server',
  async (t) => {
    const lines: string[] = []
    const { url } = await bridgeTo(t, [program, 'session'], { onLine: (line: string) => lines.push(line) })
    const session = await openSession(url)
    const call = (id: number) =>
      post(
        url,
        JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'wait', arguments: {} } }),
        session.headers,
      ).catch(() => undefined)
    const first = call(1)
    await until(() => lines.includes('fixture: waiting'))
    await session.notify('notifications/cancelled', { requestId: 1 })
    await until(() => lines.includes('fixture: cancelled'))
    void call(2)
    await until(() => lines.filter((line) => line === 'fixture: waiting').length === 2)
    await session.end()
    await until(() => lines.filter((line) => line === 'fixture: cancelled').length === 2)
    await first
  },
)

for (const era of ['session', 'stateless', 'both'])
  t.test(`attached: clients of both eras reach a server of era ${era}`, async (t) => {
    const { url } = await bridgeTo(t, [program, era])
    const session = await openSession(url)
    const listed = await session.request('tools/list')
    t.ok(listed.response?.result, listed.text)
    const called = await session.request('tools/call', { name: 'echo', arguments: { text: 'hello' } })
    t.match(called.text, 'hello')
    const { body, headers } = statelessRequest('tools/call', { name: 'echo', arguments: { text: 'there' } })
    const stateless = await post(url, body, headers)
    t.match(stateless.text, 'there')
  })
