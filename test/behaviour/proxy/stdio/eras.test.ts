/** `proxy stdio` between a client and a server of different protocol eras, on the wire. */
import t from 'tap'
import { startFixture } from '../../../helpers/mcp/fixture-server/index.ts'
import { startRawBackend, textResult } from '../../../helpers/mcp/raw-backend.ts'
import { rpc, startUpstream } from '../../../helpers/proxy/rig.ts'
import { initialize, initialized, startStdio, statelessMeta } from '../../../helpers/proxy/stdio-rig.ts'

const meta = { _meta: statelessMeta }

await t.test('a stateless client and a session server: each transport', async (t) => {
  const fixture = await startFixture()
  t.teardown(() => fixture.close())
  for (const url of [fixture.url, fixture.sseUrl]) {
    const bridge = startStdio(t, url)
    bridge.send(rpc('d', 'server/discover', meta))
    t.match(await bridge.message(), {
      id: 'd',
      result: {
        resultType: 'complete',
        supportedVersions: ['2026-07-28'],
        _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'fixture-session' } },
      },
    })
    bridge.send(rpc(7, 'tools/call', { name: 'test_simple_text', arguments: {}, ...meta }))
    t.match(await bridge.message(), {
      id: 7,
      result: { resultType: 'complete', content: [{ type: 'text' }] },
    })
    t.equal(await bridge.end(), true)
  }
})

await t.test('a session client and a stateless server: the proxy answers initialize', async (t) => {
  const fixture = await startFixture({ era: 'stateless' })
  t.teardown(() => fixture.close())
  const bridge = startStdio(t, fixture.url)
  bridge.send(initialize)
  t.match(await bridge.message(), {
    id: 0,
    result: { protocolVersion: '2025-11-25', serverInfo: { name: 'fixture-stateless' } },
  })
  bridge.send(initialized)
  bridge.send(rpc(1, 'tools/call', { name: 'test_simple_text', arguments: {} }))
  const { id, result } = await bridge.message()
  t.equal(id, 1)
  t.match(result, { content: [{ type: 'text' }] })
  t.notOk('resultType' in result)
  t.equal(await bridge.end(), true)
})

await t.test(
  'a stateless client and a session server: an unreadable notification fails no call',
  async (t) => {
    const unreadable = '"params":{"progressToken":1,"progressToken":2}'
    const backend = await startRawBackend({
      before(req, res, body) {
        const isInSession = req.headers['mcp-session-id'] !== undefined || body.includes('"initialize"')
        if (!isInSession) res.writeHead(400).end()
        return !isInSession
      },
      responses: {
        'tools/call': ({ res, id }) => {
          res.writeHead(200, { 'content-type': 'text/event-stream' })
          res.write(`data: {"jsonrpc":"2.0","method":"notifications/progress",${unreadable}}\n\n`)
          res.end(`data: {"jsonrpc":"2.0","id":${id},"result":${textResult('fine')}}\n\n`)
          return undefined
        },
      },
    })
    t.teardown(() => backend.close())
    const bridge = startStdio(t, backend.url)
    bridge.send(rpc(7, 'tools/call', { name: 'echo', arguments: {}, ...meta }))
    t.match(await bridge.message(), { id: 7, result: { content: [{ text: 'fine' }] } })
    t.equal(await bridge.end(), true)
  },
)

await t.test("a server of neither era: the client gets the server's own rejection", async (t) => {
  const target = await startUpstream((seen, res) => {
    const { id } = seen.body === '' ? { id: null } : JSON.parse(seen.body)
    res.writeHead(400, { 'Content-Type': 'application/json' })
    res.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32000, message: 'not today' } }))
  })
  t.teardown(() => target.close())
  for (const request of [JSON.stringify(initialize), rpc(1, 'tools/list', meta)]) {
    const bridge = startStdio(t, `${target.url}/mcp`)
    bridge.send(request)
    t.match(await bridge.message(), { error: { code: -32000, message: 'not today' } })
    await bridge.end()
  }
})
