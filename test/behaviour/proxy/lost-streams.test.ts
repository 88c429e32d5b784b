/** `proxy stdio` with servers that have no stream for unsolicited messages, or one that ends the session. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { silentLog } from '../../../runtime/net/index.ts'
import { type RawBackend, startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { initialize, initialized, startStdio } from '../../helpers/proxy/stdio-rig.ts'
import { until } from '../../helpers/redis.ts'

t.setTimeout(60_000)

async function rig(t: Test, onGet: (req: IncomingMessage, res: ServerResponse) => void) {
  let gets = 0
  const server = await startRawBackend({
    before(req, res) {
      if (req.method !== 'GET') return false
      gets++
      onGet(req, res)
      return true
    },
  })
  t.teardown(() => server.close())
  const warnings: string[] = []
  const log = { ...silentLog, warn: (text: string) => void warnings.push(text) }
  const bridge = startStdio(t, server.url, { log })
  bridge.send(initialize)
  t.match(await bridge.message(), { id: 0, result: {} })
  bridge.send(initialized)
  const list = async (id: number) => {
    bridge.send({ jsonrpc: '2.0', id, method: 'tools/list' })
    t.match(await bridge.message(), { id, result: { tools: [{ name: 'echo' }] } })
  }
  return { server, list, warnings, gets: () => gets }
}

function sessionsOf(server: RawBackend): number {
  return server.requests.filter(({ method }) => method === 'initialize').length
}

for (const status of [400, 404, 405, 410]) {
  t.test(`a GET response with ${status} causes no loop of sessions`, async (t) => {
    const { server, list, gets } = await rig(t, (_req, res) =>
      res.writeHead(status).end('Mcp-Session-Id: unknown session'),
    )
    // A loop would have opened many sessions by then.
    for (let id = 1; id <= 50; id++) await list(id)
    // The forwarding code tries another session once.
    t.ok(sessionsOf(server) <= 2)
    t.ok(gets() <= 2)
  })
}

t.test('a stream that ends immediately and ends the session is reopened with growing pauses', async (t) => {
  const streamed = new Set<unknown>()
  const { server, list, warnings } = await rig(t, (req, res) => {
    const session = req.headers['mcp-session-id']
    if (streamed.has(session)) {
      server.sessions.delete(String(session))
      res.writeHead(404).end()
      return
    }
    streamed.add(session)
    res.writeHead(200, { 'content-type': 'text/event-stream' }).end('retry: 20\n\n')
  })
  // Pauses grow from session to session, as they do for the streams of one session.
  await until(() => warnings.includes('the server closes its event stream as soon as it is opened'))
  await list(1)
  t.ok(sessionsOf(server) >= 3)
})

t.test(
  'the deprecated HTTP+SSE transport: a connection that ends immediately is reopened with growing pauses',
  async (t) => {
    let connections = 0
    let stream: ServerResponse | undefined
    const server = createServer((req, res) => {
      if (req.method === 'GET') {
        connections++
        stream = res.writeHead(200, { 'content-type': 'text/event-stream' })
        stream.write('event: endpoint\ndata: /messages\n\n')
        return
      }
      let body = ''
      req.on('data', (chunk) => (body += String(chunk)))
      req.on('end', () => {
        res.writeHead(202).end()
        const { id, method } = JSON.parse(body) as { id?: number; method: string }
        const result = {
          protocolVersion: '2024-11-05',
          capabilities: {},
          serverInfo: { name: 's', version: '1' },
        }
        if (method === 'initialize')
          stream?.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`)
        else stream?.end()
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    t.teardown(() => server.closeAllConnections())
    t.teardown(() => server.close())
    const { port } = server.address() as AddressInfo
    const bridge = startStdio(t, `http://127.0.0.1:${port}/sse`)
    bridge.send(initialize)
    t.match(await bridge.message(), { id: 0, result: {} })
    bridge.send(initialized)
    await until(() => connections >= 3)
    await setTimeout(300)
    t.ok(connections <= 10, `${connections} connections`)
  },
)
