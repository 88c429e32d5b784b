/**
 * `proxy stdio` under failures: lost sessions, broken streams, servers of the deprecated HTTP+SSE transport, on the
 * wire.
 */
import type { ServerResponse } from 'node:http'
import t from 'tap'
import { startFixture } from '../../../helpers/mcp/fixture-server/index.ts'
import { proves } from '../../../helpers/proves.ts'
import { rpc, type Seen, startUpstream } from '../../../helpers/proxy/rig.ts'
import { initialize, initialized, startStdio } from '../../../helpers/proxy/stdio-rig.ts'
import { until } from '../../../helpers/redis.ts'
import { untyped } from '../../../helpers/untyped.ts'

// Streams break and reopen with pauses, so the file runs in a separate process.
t.setTimeout(180_000)

proves('1.command.stdio')

interface Incoming {
  readonly id?: number | string
  readonly method?: string
}

function messageOf(seen: Seen): Incoming {
  return seen.body === '' ? {} : untyped(JSON.parse(seen.body))
}

function response(res: ServerResponse, id: unknown, result: unknown, headers = {}): void {
  res.writeHead(200, { 'Content-Type': 'application/json', ...headers })
  res.end(JSON.stringify({ jsonrpc: '2.0', id, result }))
}

const opened = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 's', version: '1' } }

/** The sessions that are alive, and the rejection of unknown ones. */
function sessionServer(refuse: (res: ServerResponse) => void) {
  const alive = new Set<string>()
  let opens = 0
  return {
    alive,
    server: startUpstream((seen, res) => {
      const { id, method } = messageOf(seen)
      const session = String(seen.headers['mcp-session-id'])
      if (method === 'initialize') {
        const next = `session-${++opens}`
        alive.add(next)
        return response(res, id, opened, { 'Mcp-Session-Id': next })
      }
      if (seen.method === 'DELETE') return void res.writeHead(alive.delete(session) ? 204 : 404).end()
      if (!alive.has(session)) return refuse(res)
      if (seen.method === 'GET') return void res.writeHead(405).end()
      if (id === undefined) return void res.writeHead(202).end()
      response(res, id, { session })
    }),
  }
}

await t.test('session: a lost session is reopened, and the request repeated once', async (t) => {
  const refusals: [string, (res: ServerResponse) => void][] = [
    ['404', (res) => res.writeHead(404).end()],
    [
      '400 as in the early examples',
      (res) => {
        res.writeHead(400, { 'Content-Type': 'application/json' })
        res.end(
          '{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}',
        )
      },
    ],
    [
      '-32001 with another status',
      (res) => {
        res.writeHead(400, { 'Content-Type': 'application/json' })
        res.end('{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}')
      },
    ],
  ]
  for (const [name, refuse] of refusals) {
    const { alive, server } = sessionServer(refuse)
    const target = await server
    t.teardown(() => target.close())
    const bridge = startStdio(t, `${target.url}/mcp`)
    bridge.send(initialize)
    t.match(await bridge.message(), { id: 0, result: opened })
    bridge.send(initialized)
    bridge.send(rpc(1))
    t.match(await bridge.message(), { id: 1, result: { session: 'session-1' } })
    alive.clear()
    // Several requests notice the loss at once; one initialize serves them all.
    for (const id of [2, 3, 4]) bridge.send(rpc(id))
    const ids = new Set<unknown>()
    for (let i = 0; i < 3; i++) {
      const message = await bridge.message()
      t.ok(message.result, name)
      ids.add(message.id)
    }
    t.same(ids, new Set([2, 3, 4]), 'the client never sees the second initialize')
    t.equal(alive.size, 1, `${name}: one new session`)
    t.equal(await bridge.end(), true)
    t.equal(alive.size, 0, 'and it is terminated')
    t.equal(
      target.seen.filter(({ body }) => body.includes('notifications/initialized')).length,
      2,
      'the new session is initialized, too',
    )
  }
})

await t.test('session: a request that the server has answered is not repeated', async (t) => {
  const calls: unknown[] = []
  let isKnown = true
  const target = await startUpstream((seen, res) => {
    const { id, method } = messageOf(seen)
    if (method === 'initialize') return response(res, id, opened, { 'Mcp-Session-Id': 's' })
    if (seen.method === 'GET') return void res.writeHead(405).end()
    if (id === undefined) return void res.writeHead(202).end()
    calls.push(id)
    if (isKnown) return response(res, id, {})
    res.writeHead(404, { 'Content-Type': 'application/json' })
    res.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32001, message: 'Session not found' } }))
  })
  t.teardown(() => target.close())
  const bridge = startStdio(t, `${target.url}/mcp`)
  bridge.send(initialize)
  await bridge.message()
  bridge.send(initialized)
  isKnown = false
  bridge.send(rpc(2))
  t.match(await bridge.message(), { id: 2, error: { code: -32001 } })
  isKnown = true
  bridge.send(rpc(3))
  t.match(await bridge.message(), { id: 3, result: {} })
  t.same(calls, [2, 3])
  // The bridge answers the request before it opens the session again.
  await until(() => target.seen.filter(({ body }) => body.includes('"initialize"')).length === 2)
  await bridge.end()
})

await t.test('session: a session that cannot be reopened is error -32001', async (t) => {
  let dead = false
  const target = await startUpstream((seen, res) => {
    const { id, method } = messageOf(seen)
    if (dead || seen.method === 'GET') res.writeHead(404).end()
    else if (method === 'initialize') response(res, id, opened, { 'Mcp-Session-Id': 's' })
    else if (id === undefined) res.writeHead(202).end()
    else response(res, id, {})
  })
  t.teardown(() => target.close())
  const bridge = startStdio(t, `${target.url}/mcp`)
  bridge.send(initialize)
  await bridge.message()
  bridge.send(initialized)
  dead = true
  bridge.send(rpc('x'))
  t.match(await bridge.message(), { id: 'x', error: { code: -32001 } })
})

await t.test(
  "streams: the standing stream is reopened with its last event id, after the server's retry time",
  async (t) => {
    const gets: { id: string | undefined; at: number }[] = []
    const target = await startUpstream((seen, res) => {
      const { id, method } = messageOf(seen)
      if (method === 'initialize') response(res, id, opened, { 'Mcp-Session-Id': 's' })
      else if (seen.method === 'GET') {
        const last = seen.headers['last-event-id']
        gets.push({ id: typeof last === 'string' ? last : undefined, at: performance.now() })
        res.writeHead(200, { 'Content-Type': 'text/event-stream' })
        const n = gets.length
        res.write(
          `retry: 20\nid: e${n}\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{"n":${n}}}\n\n`,
        )
        if (n < 3) res.end()
      } else res.writeHead(202).end()
    })
    t.teardown(() => target.close())
    const bridge = startStdio(t, `${target.url}/mcp`)
    bridge.send(initialize)
    await bridge.message()
    bridge.send(initialized)
    for (const n of [1, 2, 3])
      t.match(await bridge.message(), { method: 'notifications/message', params: { n } })
    t.same(
      gets.map(({ id }) => id),
      [undefined, 'e1', 'e2'],
    )
    t.ok((gets[1]?.at ?? 0) - (gets[0]?.at ?? 0) >= 19, 'not before the retry time')
  },
)

for (const [what, refuse] of Object.entries<(res: ServerResponse) => void>({
  'as taken (409)': (res) => void res.writeHead(409).end(),
  'with 408': (res) => void res.writeHead(408).end(),
  'by a cut connection': (res) => void res.destroy(),
}))
  await t.test(`streams: the standing stream is reopened after a rejection ${what}`, async (t) => {
    let gets = 0
    const target = await startUpstream((seen, res) => {
      const { id, method } = messageOf(seen)
      if (method === 'initialize') response(res, id, opened, { 'Mcp-Session-Id': 's' })
      else if (seen.method === 'GET') {
        if (++gets === 2) return refuse(res)
        res.writeHead(200, { 'Content-Type': 'text/event-stream' })
        // Even without event ids, the stream is reopened.
        res.write(
          `retry: 20\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{"n":${gets}}}\n\n`,
        )
        if (gets === 1) res.end()
      } else res.writeHead(202).end()
    })
    t.teardown(() => target.close())
    const bridge = startStdio(t, `${target.url}/mcp`)
    bridge.send(initialize)
    await bridge.message()
    bridge.send(initialized)
    for (const n of [1, 3])
      t.match(await bridge.message(), { method: 'notifications/message', params: { n } })
  })

await t.test('streams: a response in many parts is read to its end', async (t) => {
  let gets = 0
  const target = await startUpstream((seen, res) => {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' })
    if (seen.method === 'POST') {
      res.end('retry: 1\nid: 0\ndata: \n\n')
      return
    }
    gets++
    t.equal(seen.headers['last-event-id'], String(gets - 1))
    const done = gets === 12
    const data = done
      ? '{"jsonrpc":"2.0","id":1,"result":{}}'
      : '{"jsonrpc":"2.0","method":"notifications/progress"}'
    res.end(`id: ${gets}\ndata: ${data}\n\n`)
  })
  t.teardown(() => target.close())
  const bridge = startStdio(t, `${target.url}/mcp`)
  bridge.send(rpc(1))
  for (let i = 1; i < 12; i++) t.match(await bridge.message(), { method: 'notifications/progress' })
  t.match(await bridge.message(), { id: 1, result: {} })
})

await t.test('streams: a stream that stays open after its response does not delay the exit', async (t) => {
  const target = await startUpstream((_seen, res) => {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' })
    res.write('data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n')
  })
  t.teardown(() => target.close())
  const bridge = startStdio(t, `${target.url}/mcp`, { drainMs: 60_000 })
  bridge.send(rpc(1))
  await bridge.message()
  t.equal(await bridge.end(), true)
})

await t.test('end: the exit waits for pending responses, up to a limit', async (t) => {
  const { promise: arrived, resolve: arrive } = Promise.withResolvers<ServerResponse>()
  const target = await startUpstream((_seen, res) => arrive(res))
  t.teardown(() => target.close())
  const waiting = startStdio(t, `${target.url}/mcp`, { drainMs: 60_000 })
  waiting.send(rpc(1))
  waiting.input.end()
  response(await arrived, 1, { late: true })
  t.match(await waiting.message(), { id: 1, result: { late: true } })
  await waiting.done

  const hasty = startStdio(t, `${target.url}/mcp`, { drainMs: 1 })
  hasty.send(rpc(2))
  hasty.input.end()
  await hasty.done
})

await t.test(
  'the deprecated HTTP+SSE transport: the fixture works by its address and as a fallback',
  async (t) => {
    const fixture = await startFixture({
      before(req, res) {
        if (req.url !== '/fallback') return false
        // A server from before streamable HTTP: the same address, GET only.
        if (req.method === 'POST') {
          res.writeHead(405).end()
          return true
        }
        req.url = '/sse'
        return false
      },
    })
    t.teardown(() => fixture.close())
    for (const url of [fixture.sseUrl, fixture.url.replace('/mcp', '/fallback')]) {
      const bridge = startStdio(t, url)
      bridge.send(initialize)
      t.match(await bridge.message(), { id: 0, result: { serverInfo: { name: 'fixture-session' } } })
      bridge.send(initialized)
      bridge.send(rpc(1, 'tools/call', { name: 'test_simple_text', arguments: {} }))
      t.match(await bridge.message(), { id: 1, result: { content: [{ type: 'text' }] } })
      t.equal(await bridge.end(), true)
    }
  },
)

await t.test(
  'the deprecated HTTP+SSE transport: a broken stream fails its calls, and a new session is opened',
  async (t) => {
    let streams = 0
    let current: ServerResponse | undefined
    let isInitialized = false
    const target = await startUpstream((seen, res) => {
      if (seen.method === 'GET') {
        streams++
        current = res
        isInitialized = false
        res.writeHead(200, { 'Content-Type': 'text/event-stream' })
        res.write(`event: endpoint\ndata: /messages?n=${streams}\n\n`)
        return
      }
      res.writeHead(202).end()
      const { id, method } = messageOf(seen)
      isInitialized ||= method === 'initialize'
      const session = isInitialized ? new URL(seen.url, 'http://x').searchParams.get('n') : 'not initialized'
      const result = method === 'initialize' ? opened : { session }
      if (id !== undefined && method !== 'hang') {
        current?.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`)
      } else if (method === 'hang') current?.destroy()
    })
    t.teardown(() => target.close())
    const bridge = startStdio(t, `${target.url}/sse`)
    bridge.send(initialize)
    t.match(await bridge.message(), { id: 0 })
    bridge.send(initialized)
    bridge.send(rpc(1, 'fine'))
    t.match(await bridge.message(), { id: 1, result: { session: '1' } })
    // After repeated losses, the bridge waits before it opens a session on its own. A request opens one at once.
    for (let session = 2; session <= 4; session++) {
      const id = session * 2
      bridge.send(rpc(id, 'hang'))
      t.match(await bridge.message(), { id, error: { code: -32603 } })
      bridge.send(rpc(id + 1, 'fine'))
      t.match(await bridge.message(), { id: id + 1, result: { session: String(session) } })
    }
    t.equal(target.seen.filter(({ body }) => body.includes('"initialize"')).length, 4)
  },
)

await t.test('the deprecated HTTP+SSE transport: an endpoint on another origin is rejected', async (t) => {
  const elsewhere = await startUpstream((_seen, res) => res.writeHead(202).end())
  const target = await startUpstream((_seen, res) => {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' })
    res.write(`event: endpoint\ndata: ${elsewhere.url}/messages\n\n`)
  })
  t.teardown(() => Promise.all([target.close(), elsewhere.close()]))
  const bridge = startStdio(t, `${target.url}/sse`, { input: { remoteAuthBearerToken: 'secret' } })
  bridge.send(initialize)
  t.match(await bridge.message(), { id: 0, error: { message: /another origin/ } })
  t.equal(elsewhere.seen.length, 0)
})
