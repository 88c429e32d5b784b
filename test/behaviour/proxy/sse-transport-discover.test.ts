/**
 * Clients of the deprecated HTTP+SSE transport that send `server/discover` first, as the official Go SDK does. The
 * message is accepted, the rejection arrives on the stream, and the session then opens as usual.
 */
import t, { type Test } from 'tap'
import { parseTarget } from '../../../runtime/config/proxy/target.ts'
import { silentLog } from '../../../runtime/net/index.ts'
import { startStdioBridge } from '../../../runtime/proxy/index.ts'
import { startFixture } from '../../helpers/mcp/fixture-server/index.ts'
import { type RpcMessage, post, statelessRequest, stream, type WireStream } from '../../helpers/mcp/wire.ts'
import { startRig, startUpstream } from '../../helpers/proxy/rig.ts'
import { startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

const initialize = {
  jsonrpc: '2.0',
  id: 2,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
}

/** A request with stateless metadata but no header of that revision, because this transport defines none. */
function discover(id: number): string {
  const { body } = statelessRequest('server/discover')
  return body.replace(/"id":\d+/, `"id":${id}`)
}

async function open(t: Test, url: string): Promise<{ events: WireStream; endpoint: string }> {
  const events = await stream(url)
  t.teardown(() => events.close())
  const first = await events.next()
  return { events, endpoint: new URL(String(first.params?.['data']), url).href }
}

const responses =
  (id: number) =>
  (message: RpcMessage): boolean =>
    message.id === id

async function worksAfterDiscover(t: Test, url: string): Promise<void> {
  const { events, endpoint } = await open(t, url)
  t.equal((await post(endpoint, discover(1))).status, 202)
  t.match(await events.next(responses(1)), { id: 1, error: { code: -32601 } })
  t.equal((await post(endpoint, JSON.stringify(initialize))).status, 202)
  t.match(await events.next(responses(2)), { id: 2, result: { protocolVersion: '2025-11-25' } })
  await post(endpoint, '{"jsonrpc":"2.0","method":"notifications/initialized"}')
  t.equal((await post(endpoint, '{"jsonrpc":"2.0","id":3,"method":"tools/list"}')).status, 202)
  const tools = await events.next(responses(3))
  t.ok(Array.isArray(tools.result?.['tools']))
  t.equal((await post(endpoint, discover(4))).status, 202)
  t.match(await events.next(responses(4)), { id: 4, error: { code: -32601 } }, 'within a session, too')
}

await t.test('discover: through the proxy to an SSE server', async (t) => {
  const fixture = await startFixture()
  const { origin } = new URL(fixture.sseUrl)
  t.teardown(() => fixture.close())
  await t.test('with a configured path and transport', async (t) => {
    const target = { ...parseTarget(origin), path: '/sse', transport: 'sse' as const }
    const rig = await startRig(origin, { target })
    t.teardown(() => rig.close())
    await worksAfterDiscover(t, `${rig.url}/sse`)
  })
  await t.test('without configuration', async (t) => {
    const rig = await startRig(origin)
    t.teardown(() => rig.close())
    await worksAfterDiscover(t, `${rig.url}/sse`)
  })
})

await t.test(
  'discover: a configured streamable HTTP target keeps its checks, whatever the query',
  async (t) => {
    const upstream = await startUpstream((_seen, res) => res.end())
    const target = { ...parseTarget(upstream.url), path: '/mcp', transport: 'streamable-http' as const }
    const rig = await startRig(upstream.url, { target })
    t.teardown(() => Promise.all([rig.close(), upstream.close()]))
    const { status, response } = await post(`${rig.url}/mcp?sessionId=1`, discover(1))
    t.equal(status, 400)
    t.match(response, { error: { code: -32020 } })
    t.equal(upstream.seen.length, 0)
  },
)

await t.test('discover: a stdio server served with proxyMode sse', async (t) => {
  const bridge = await startStdioBridge({
    command: [
      process.execPath,
      'node_modules/@modelcontextprotocol/server-everything/dist/index.js',
      'stdio',
    ],
    env: { PATH: process.env['PATH'] ?? '' },
    cwd: process.cwd(),
    host: '127.0.0.1',
    port: 0,
    mode: 'sse',
    log: silentLog,
  })
  t.teardown(() => bridge.close())
  await worksAfterDiscover(t, bridge.url)
})

await t.test('discover: a virtual server on /sse', async (t) => {
  const fixture = await startFixture()
  const vmcp = await startTestVmcp({ fixture: fixture.url })
  t.teardown(async () => {
    await vmcp.close()
    await fixture.close()
  })
  await worksAfterDiscover(t, `${vmcp.origin}/sse`)
})

await t.test('before initialize: a request is rejected on the stream, a ping gets a response', async (t) => {
  const vmcp = await startTestVmcp({})
  t.teardown(() => vmcp.close())
  const { events, endpoint } = await open(t, `${vmcp.origin}/sse`)
  t.equal((await post(endpoint, '{"jsonrpc":"2.0","id":1,"method":"tools/list"}')).status, 202)
  t.match(await events.next(), { id: 1, error: { code: -32600, message: /initialize first/ } })
  t.equal((await post(endpoint, '{"jsonrpc":"2.0","id":2,"method":"ping"}')).status, 202)
  t.match(await events.next(), { id: 2, result: {} })
  t.equal((await post(endpoint, '{"jsonrpc":"2.0","method":"notifications/x"}')).status, 202)
})
