/**
 * A virtual server that shuts down serves requests on open connections, and closes each connection with the response.
 */
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { startFixture } from '../../helpers/mcp/fixture-server/index.ts'
import { openSession, statelessRequest } from '../../helpers/mcp/wire.ts'
import { bareNames, startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

const params = { name: 'echo', arguments: { text: 'still here' } }

for (const era of ['session', 'stateless'] as const) {
  t.test(
    `drain: a ${era} client on a kept connection gets its result, and a new connection is refused`,
    async (t) => {
      const fixture = await startFixture({ era: 'session' })
      t.teardown(() => fixture.close())
      const vmcp = await startTestVmcp(
        { fixture: fixture.url },
        { aggregation: bareNames('fixture') },
        { graceMs: 60_000 },
      )
      t.teardown(() => vmcp.close())
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      t.teardown(() => agent.destroy())
      const session = await openSession(vmcp.url)
      const call =
        era === 'session'
          ? {
              headers: session.headers,
              body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
            }
          : statelessRequest('tools/call', params)
      const send = async () => {
        const headers = {
          ...call.headers,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
        }
        const req = request(vmcp.url, { method: 'POST', agent, headers })
        req.end(call.body)
        const [res] = (await once(req, 'response')) as [IncomingMessage]
        return { connection: res.headers.connection, body: await text(res), reused: req.reusedSocket }
      }
      t.match(await send(), { connection: 'keep-alive', body: /still here/ })
      const closed = vmcp.close()
      t.match(await send(), { connection: 'close', body: /still here/, reused: true })
      await t.rejects(send(), { code: 'ECONNREFUSED' })
      await closed
    },
  )
}
