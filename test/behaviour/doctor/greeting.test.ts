/** `client status --check` needs one greeting, however the server handles its streams. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { startFixture } from '../../helpers/mcp/fixture-server/index.ts'
import { greet } from '../../../runtime/toolkit/mcp-client/greeting.ts'

/** Longer than any greeting needs. A greeting that waits for the end of a stream exceeds the test's own limit. */
const timeoutMs = 60_000

async function peer(t: Test, handle: (req: IncomingMessage, res: ServerResponse) => void): Promise<string> {
  const server = createServer(handle)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
}

await t.test('a greeting shows the names of servers of both eras', async (t) => {
  for (const era of ['session', 'stateless'] as const) {
    const fixture = await startFixture({ era })
    t.teardown(() => fixture.close())
    t.strictSame(await greet(fixture.url, { timeoutMs }), { kind: 'server', name: `fixture-${era}` })
  }
})

await t.test('a greeting succeeds when the event stream stays open after the response', async (t) => {
  const result =
    '{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"open","version":"1"}}'
  const url = await peer(t, (req, res) => {
    if (req.method === 'DELETE') return void res.writeHead(200).write('never ends')
    res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Mcp-Session-Id': 's' })
    res.write(`event: message\ndata: {"jsonrpc":"2.0","id":1,"result":${result}}\n\n`)
  })
  t.strictSame(await greet(url, { timeoutMs }), { kind: 'server', name: 'open' })
})

await t.test(
  'a greeting handles a stream without a response, a login, a page and a missing server',
  async (t) => {
    const silent = await peer(t, (_req, res) => {
      res.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(': comment\n\n')
    })
    t.strictSame(await greet(silent, { timeoutMs: 300 }), { kind: 'silent' })
    const login = await peer(t, (_req, res) => res.writeHead(401).end())
    t.strictSame(await greet(login, { timeoutMs }), { kind: 'login' })
    const page = await peer(t, (_req, res) => res.end('<html>'))
    t.strictSame(await greet(page, { timeoutMs }), { kind: 'other', status: 200 })
    t.strictSame(await greet('http://127.0.0.1:1/mcp', { timeoutMs }), { kind: 'silent' })
  },
)
