/** The stages of a request to a virtual server: a stage that responds ends the request. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { anonymousCaller } from '../../../runtime/incoming/identity.ts'
import type { VmcpExchange } from '../../../runtime/vmcp/model/exchange.ts'
import { type HttpParts, makeHandler } from '../../../runtime/vmcp/server/http.ts'

t.test('an authentication stage that responds ends the request', async (t) => {
  const served: string[] = []
  const edge = {
    handle: () => served.push('handle'),
    open: () => served.push('open'),
    post: () => served.push('post'),
  }
  const parts = {
    load: { admit: () => undefined, turn: () => undefined, bodies: {} },
    reloadable: {
      originCheck: { check: () => undefined },
      authenticator: {
        route: () => undefined,
        sendChallenge: () => false,
        stage(exchange: VmcpExchange) {
          exchange.caller = anonymousCaller()
          exchange.res.writeHead(302, { location: '/login' }).end()
        },
      },
    },
    edges: { sessionEdge: edge, oldSseEdge: edge, statelessEdge: edge },
    observer: {
      enabled: false,
      started: (exchange: VmcpExchange) => exchange,
      finished: () => undefined,
      wrap: (handler: unknown) => handler,
    },
    routes: () => undefined,
    isStopping: () => false,
    events: { emit: (type: string) => t.fail(`unexpected event ${type}`) },
  } as unknown as HttpParts
  const server = createServer(makeHandler(parts))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
  for (const method of ['GET', 'DELETE', 'OPTIONS']) {
    const response = await fetch(url, {
      method,
      redirect: 'manual',
      headers: { accept: 'text/event-stream' },
    })
    t.equal(response.status, 302, method)
  }
  t.strictSame(served, [])
})
