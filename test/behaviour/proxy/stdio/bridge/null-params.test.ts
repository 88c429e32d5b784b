/** Clients of stdio servers that send null for absent members, and a trailing slash in the path. */
import t from 'tap'
import { openSession, post, stateless, stream } from '../../../../helpers/mcp/wire.ts'
import { bridgeTo, program } from './rig.ts'

t.setTimeout(120_000)

for (const era of ['session', 'stateless'])
  t.test(`${era} program: null params are absent params, and the path may end in a slash`, async (t) => {
    const bridge = await bridgeTo(t, [program, era])
    const url = `${bridge.url}/`
    const session = await openSession(url)
    const listed = await post(
      url,
      '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null,"result":null,"error":null}',
      session.headers,
    )
    t.match(listed, { status: 200, response: { result: { tools: [] } } }, listed.text)
    const clean = '{"jsonrpc":"2.0","id":null,"method":"notifications/initialized","params":null}'
    t.equal((await post(url, clean, session.headers)).status, 202)
    const listening = await session.listen()
    t.equal(listening.status, 200)
    listening.close()
    t.equal((await session.end()).status, 200)

    const meta = { progressToken: null, 'io.modelcontextprotocol/clientInfo': null }
    t.match(await stateless(url, 'tools/list', { cursor: null }, { meta }), { status: 200 })
    const called = await stateless(url, 'tools/call', { name: 'test_simple_text', arguments: null }, { meta })
    t.match(called, { status: 200, response: { result: { content: [{ type: 'text' }] } } }, called.text)
  })

t.test('HTTP+SSE: both paths may end in a slash', async (t) => {
  const bridge = await bridgeTo(t, [program, 'session'], { mode: 'sse' })
  const opened = await stream(`${bridge.url}/`)
  t.equal(opened.status, 200)
  const { params } = await opened.next(({ method }) => method === 'endpoint')
  const path = String(params?.['data']).replace('/messages?', '/messages/?')
  t.equal(
    (await post(new URL(path, bridge.url).href, '{"jsonrpc":"2.0","id":1,"method":"ping"}')).status,
    202,
  )
  opened.close()
})
