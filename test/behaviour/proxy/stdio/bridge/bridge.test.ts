/** A stdio server exposed over streamable HTTP: real npm servers, real SDK clients. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t, { type Test as TapTest } from 'tap'
import { openSession } from '../../../../helpers/mcp/wire.ts'
import { bridgeTo, checkSampling, everything } from './rig.ts'

async function connect(t: TapTest, url: string, capabilities = {}) {
  const client = new Client({ name: 'test', version: '1' }, { capabilities })
  const transport = new StreamableHTTPClientTransport(new URL(url))
  await client.connect(transport)
  t.teardown(() => client.close())
  return { client, transport }
}

t.test('bridge: a real server responds over HTTP', async (t) => {
  const { url } = await bridgeTo(t, [everything, 'stdio'])
  const { client } = await connect(t, url)
  t.equal(client.getServerVersion()?.name, 'mcp-servers/everything')
  const { tools } = await client.listTools()
  t.ok(tools.some(({ name }) => name === 'echo'))
  const response = await client.callTool({ name: 'echo', arguments: { message: 'ünï' } })
  t.match(response.content, [{ type: 'text', text: 'Echo: ünï' }])
})

t.test('bridge: each session has its own server, and ends with DELETE', async (t) => {
  const { url } = await bridgeTo(t, [everything, 'stdio'])
  const one = await connect(t, url)
  const two = await connect(t, url)
  t.not(one.transport.sessionId, two.transport.sessionId)
  await one.transport.terminateSession()
  await t.rejects(one.client.listTools(), /404|not found|Session/i)
  t.ok((await two.client.listTools()).tools.length > 0, 'the other session continues')
})

t.test('bridge: progress reaches the request that requested it', async (t) => {
  const { url } = await bridgeTo(t, [everything, 'stdio'])
  // Checked on the wire, because an SDK client drops its progress handler when the result arrives in the same read.
  const session = await openSession(url)
  const { messages } = await session.request('tools/call', {
    name: 'trigger-long-running-operation',
    arguments: { duration: 0.4, steps: 4 },
    _meta: { progressToken: 'p' },
  })
  const progress = messages.filter(({ method }) => method === 'notifications/progress')
  t.same(
    progress.map(({ params }) => [params?.['progressToken'], params?.['progress']]),
    [1, 2, 3, 4].map((n) => ['p', n]),
  )
  t.ok(messages.at(-1)?.result, 'the result comes last')
})

t.test(
  'bridge: a question from the server reaches the client during its call, and the response goes back',
  async (t) => {
    const { url } = await bridgeTo(t, [everything, 'stdio'])
    const { client } = await connect(t, url, { sampling: {} })
    await checkSampling(t, client)
  },
)

t.test('bridge: invalid requests get the documented errors', async (t) => {
  const { url } = await bridgeTo(t, [everything, 'stdio'], { maxSessions: 1 })
  const post = (body: string, headers = {}) =>
    fetch(url, {
      method: 'POST',
      body,
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headers,
      },
    })
  const unknown = await post('{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}', {
    'mcp-session-id': 'x',
  })
  t.equal(unknown.status, 404)
  t.equal(
    await unknown.text(),
    '{"jsonrpc":"2.0","id":9007199254740993,"error":{"code":-32001,"message":"Session not found"}}',
  )
  t.equal((await post('{"jsonrpc":"2.0","id":1,"method":"ping"}')).status, 400, 'no session named')
  t.equal((await post('[]')).status, 400, 'batch')
  t.equal((await post('nonsense')).status, 400, 'not JSON')
  t.equal((await fetch(url, { method: 'PUT' })).status, 405)
  t.equal((await fetch(url)).status, 406)
  t.equal((await fetch(url.replace('/mcp', '/other'))).status, 404)
  t.equal((await post('{}', { origin: 'http://evil.example' })).status, 403)
  await connect(t, url)
  const initialize = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
  })
  t.equal((await post(initialize)).status, 503, 'the session limit applies')
})

t.test('bridge: a command that cannot start is reported', async (t) => {
  const missing = await bridgeTo(t, [], { command: ['/no/such/program'] })
  t.equal(await missing.failed, 'the command was not found')
  const ends = await bridgeTo(t, ['-e', 'process.exit(3)'])
  t.equal(await ends.failed, 'exited with code 3')
})

t.test('bridge: closing ends every process that it started', async (t) => {
  const lines: string[] = []
  const bridge = await bridgeTo(t, ['-e', 'console.error(process.pid); setInterval(() => {}, 1000)'], {
    onLine: (line: string) => lines.push(line),
  })
  while (lines.length === 0) await new Promise((resolve) => setImmediate(resolve))
  await bridge.close()
  t.throws(() => process.kill(Number(lines[0]), 0), /ESRCH/)
})
