/**
 * A stdio server exposed on the deprecated HTTP+SSE transport (MCPServer, `proxyMode: sse`): real npm server, real SDK
 * clients.
 */
import { once } from 'node:events'
import { request } from 'node:http'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import t, { type Test as TapTest } from 'tap'
import { parseTarget } from '../../../../../runtime/config/proxy/target.ts'
import { startGatehouse } from '../../../../helpers/gatehouse.ts'
import { post, stream } from '../../../../helpers/mcp/wire.ts'
import { rpc, startRig } from '../../../../helpers/proxy/rig.ts'
import { bridgeTo, checkSampling, everything } from './rig.ts'

const sseBridge = (t: TapTest, more = {}) => bridgeTo(t, [everything, 'stdio'], { mode: 'sse', ...more })

async function connect(t: TapTest, url: string, capabilities = {}): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, { capabilities })
  await client.connect(new SSEClientTransport(new URL(url)))
  t.teardown(() => client.close())
  return client
}

/** Opens a stream and returns the data of its first event. */
async function endpointOf(url: string): Promise<{ endpoint: string; close: () => void }> {
  const req = request(url, { headers: { accept: 'text/event-stream' } })
  req.end()
  const [res] = await once(req, 'response')
  const [chunk] = await once(res, 'data')
  const endpoint = /^event: endpoint\ndata: (\S+)\n\n/.exec(String(chunk))?.[1] ?? ''
  return { endpoint, close: () => res.destroy() }
}

await t.test("SSE: two clients call one kind of server, and neither gets the other's messages", async (t) => {
  const { url } = await sseBridge(t)
  t.match(url, /\/sse$/)
  const [one, two] = [await connect(t, url), await connect(t, url)]
  const heard: unknown[] = []
  two.onerror = (error) => heard.push(error)
  const responses = await Promise.all(
    [one, two].map((client, i) => client.callTool({ name: 'echo', arguments: { message: `ünï ${i}` } })),
  )
  t.match(JSON.stringify(responses[0]?.content), 'Echo: ünï 0')
  t.match(JSON.stringify(responses[1]?.content), 'Echo: ünï 1')
  // Both clients used the same ids, so a broadcast response would be an error for the other client.
  t.same(heard, [])
})

await t.test('SSE: progress arrives on the stream before the result', async (t) => {
  const { url } = await sseBridge(t)
  // Checked on the wire, because an SDK client drops its progress handler when the result arrives in the same read.
  const events = await stream(url)
  t.teardown(() => events.close())
  const endpoint = new URL(String((await events.next()).params?.['data']), url).href
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } }
  await post(endpoint, rpc(1, 'initialize', params))
  t.ok((await events.next(({ id }) => id === 1)).result)
  await post(endpoint, '{"jsonrpc":"2.0","method":"notifications/initialized"}')
  await post(
    endpoint,
    rpc(2, 'tools/call', {
      name: 'trigger-long-running-operation',
      arguments: { duration: 0.2, steps: 2 },
      _meta: { progressToken: 7 },
    }),
  )
  const seen: unknown[] = []
  for (let done = false; !done; ) {
    const { id, method, params: said } = await events.next()
    if (method === 'notifications/progress') seen.push([said?.['progressToken'], said?.['progress']])
    done = id === 2
  }
  t.same(seen, [
    [7, 1],
    [7, 2],
  ])
})

await t.test(
  'SSE: a question from the server arrives on the stream, and the response goes back',
  async (t) => {
    const { url } = await sseBridge(t)
    const client = await connect(t, url, { sampling: {} })
    await checkSampling(t, client)
  },
)

await t.test('SSE: works through the proxy in front of it, as in a pod', async (t) => {
  const { port } = await sseBridge(t)
  const origin = `http://127.0.0.1:${port}`
  const target = { ...parseTarget(origin), path: '/sse', transport: 'sse' as const }
  const rig = await startRig(origin, { target })
  t.teardown(() => rig.close())
  const client = await connect(t, `${rig.url}/sse`)
  t.ok((await client.listTools()).tools.some(({ name }) => name === 'echo'))
})

await t.test('SSE: invalid requests are rejected, and a session ends with its stream', async (t) => {
  const { url, port } = await sseBridge(t, { maxSessions: 1 })
  const origin = `http://127.0.0.1:${port}`
  const post = (path: string, body: string, headers = {}): Promise<Response> =>
    fetch(origin + path, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json', ...headers },
    })
  const ping = '{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}'
  const unknown = await post('/messages?session_id=x', ping)
  t.equal(unknown.status, 404)
  t.equal(
    await unknown.text(),
    '{"jsonrpc":"2.0","id":9007199254740993,"error":{"code":-32001,"message":"Session not found"}}',
  )
  t.equal((await post('/messages', ping)).status, 404, 'no session named')
  t.equal((await post('/mcp', ping)).status, 404, 'the newer transport is not offered')
  t.equal((await fetch(url)).status, 406)
  t.equal((await post('/sse', ping)).status, 405)

  const first = await endpointOf(url)
  t.match(first.endpoint, /^\/messages\?session_id=[\w-]{36}$/)
  t.equal((await post(first.endpoint, '[]')).status, 400, 'batch')
  t.equal((await post(first.endpoint, ping, { origin: 'http://evil.example' })).status, 403)
  t.equal((await post(first.endpoint, ping)).status, 202)
  t.equal((await fetch(url, { headers: { accept: 'text/event-stream' } })).status, 503, 'the limit applies')
  first.close()
  let status = 202
  while (status === 202) status = (await post(first.endpoint, ping)).status
  t.equal(status, 404, 'it ended with its stream')
  const second = await endpointOf(url)
  t.not(second.endpoint, first.endpoint)
  second.close()
})

await t.test('SSE: a file with proxyMode sse selects the transport', async (t) => {
  const path = join(mkdtempSync(join(tmpdir(), 'sse-')), 'proxy.yaml')
  const stdio = { command: process.execPath, args: [everything] }
  writeFileSync(path, JSON.stringify({ name: 'demo', stdio, proxyMode: 'sse' }))
  const run = startGatehouse(['proxy', '--config', path, '--host', '127.0.0.1', '--port', '0', 'demo'])
  const [, port] = await run.waitFor(/Stdio server demo started on port (\d+)/)
  const client = await connect(t, `http://127.0.0.1:${port}/sse`)
  t.ok((await client.listTools()).tools.length > 0)
  await client.close()
  t.equal(await run.interrupt(), 0)
})
