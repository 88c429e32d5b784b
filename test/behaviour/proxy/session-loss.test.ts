/**
 * Sessions that the target has lost, through the proxy: how servers report the loss, which requests are repeated, and
 * how the client's state is restored. Real npm servers with real clients, and custom servers for errors.
 */
import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t, { type Test } from 'tap'
import { startEverything } from '../../helpers/mcp/everything.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { openSession, post, stream } from '../../helpers/mcp/wire.ts'
import { type Rig, rpc, type Seen, startRig, startUpstream, type Upstream } from '../../helpers/proxy/rig.ts'

t.setTimeout(120_000)

const REFUSAL =
  '{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}'

type Refuse = (res: ServerResponse, seen: Seen) => void

const refuse400: Refuse = (res) => {
  res.writeHead(400, { 'Content-Type': 'application/json' }).end(REFUSAL)
}

interface Forgetful extends Upstream {
  /** Loses every session. */
  forget(): void
  /** Makes `initialize` fail from now on. */
  close(): Promise<void>
  refusesAll: boolean
  /** GET streams, newest last. */
  readonly streams: ServerResponse[]
}

/** A session-era server that rejects unknown sessions with the given response. */
async function startForgetful(
  t: Test,
  refuse: Refuse,
  accept = (res: ServerResponse): void => void res.writeHead(202).end(),
): Promise<Forgetful> {
  const alive = new Set<string>()
  const streams: ServerResponse[] = []
  let opened = 0
  const upstream = await startUpstream((seen, res) => {
    const session = String(seen.headers['mcp-session-id'])
    const message: { id?: unknown; method?: string } = seen.body === '' ? {} : JSON.parse(seen.body)
    if (message.method === 'initialize' && !server.refusesAll) {
      const fresh = `session-${++opened}`
      alive.add(fresh)
      res.writeHead(200, { 'Content-Type': 'application/json', 'Mcp-Session-Id': fresh })
      const result = {
        protocolVersion: '2025-11-25',
        capabilities: {},
        serverInfo: { name: 's', version: '1' },
      }
      res.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result }))
    } else if (!alive.has(session)) refuse(res, seen)
    else if (seen.method === 'GET') {
      res.writeHead(200, { 'Content-Type': 'text/event-stream' }).flushHeaders()
      streams.push(res)
    } else if (message.id === undefined || message.method === undefined) accept(res)
    else {
      res.writeHead(200, { 'Content-Type': 'application/json' })
      res.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result: { session } }))
    }
  })
  const server: Forgetful = Object.assign(upstream, {
    forget: () => alive.clear(),
    refusesAll: false,
    streams,
  })
  t.teardown(() => server.close())
  return server
}

async function rigFor(t: Test, target: Upstream | { origin: string }): Promise<Rig> {
  const rig = await startRig('origin' in target ? target.origin : target.url)
  t.teardown(() => rig.close())
  return rig
}

function methodsSince(server: Upstream, from: number): string[] {
  return server.seen
    .slice(from)
    .map(({ body, method }) => (body === '' ? method : (JSON.parse(body).method ?? 'response')))
}

for (const [name, refuse] of Object.entries<Refuse>({
  'HTTP 400 and -32000': refuse400,
  'HTTP 400 and plain text': (res) => res.writeHead(400).end('Bad Request: No valid session ID provided'),
  'HTTP 400, compressed as the client had asked': (res) =>
    res
      .writeHead(400, { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' })
      .end(gzipSync(REFUSAL)),
  'HTTP 401 without a challenge': (res) => res.writeHead(401).end('Unauthorized: Session not found'),
  'HTTP 404': (res) => res.writeHead(404).end(),
}))
  await t.test(`loss: a session rejected with ${name} is reopened once for all requests`, async (t) => {
    const server = await startForgetful(t, refuse)
    const { url } = await rigFor(t, server)
    const session = await openSession(`${url}/mcp`)
    server.forget()
    const from = server.seen.length
    const responses = await Promise.all([1, 2, 3].map(() => session.request('tools/call', { name: 'x' })))
    for (const { response, headers } of responses) {
      t.match(response, { result: { session: 'session-2' } })
      t.equal(headers.get('mcp-session-id'), null)
    }
    t.equal(methodsSince(server, from).filter((method) => method === 'initialize').length, 1)
  })

for (const [name, accept] of Object.entries<(res: ServerResponse) => void>({
  'an event stream that stays open'(res) {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(': open\n\n')
  },
  'JSON that does not end'(res) {
    res.writeHead(200, { 'Content-Type': 'application/json' }).write('{"ok":')
  },
  'a page': (res) => res.writeHead(200, { 'Content-Type': 'text/html' }).end('<p>ok</p>'),
}))
  await t.test(`loss: a server that answers notifications with ${name} gets a new session`, async (t) => {
    const server = await startForgetful(t, refuse400, accept)
    const { url } = await rigFor(t, server)
    const params = {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'test', version: '1' },
    }
    const opened = await post(`${url}/mcp`, rpc(0, 'initialize', params))
    const id = String(opened.headers.get('mcp-session-id'))
    server.forget()
    const { response } = await post(`${url}/mcp`, rpc(1), { 'mcp-session-id': id })
    t.match(response, { result: { session: 'session-2' } })
  })

for (const status of [404, 410])
  await t.test(`loss: HTTP ${status} with a response to the request itself is not repeated`, async (t) => {
    const body = (id: unknown): string =>
      `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":{"code":-32001,"message":"Session not found"}}`
    const calls: unknown[] = []
    const server = await startForgetful(t, (res, seen) => {
      const { id } = JSON.parse(seen.body) as { id: unknown }
      calls.push(id)
      res.writeHead(status, { 'Content-Type': 'application/json' }).end(body(id))
    })
    const { url } = await rigFor(t, server)
    const session = await openSession(`${url}/mcp`)
    server.forget()
    const response = await session.request('tools/call', { name: 'x' })
    t.equal(response.status, status)
    t.equal(response.text, body(calls[0]))
    t.equal(calls.length, 1)
  })

await t.test('loss: any other rejection reaches the client unchanged', async (t) => {
  const other = '{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid params: session"}}'
  let body = other
  const server = await startUpstream((seen, res) => {
    if (seen.body.includes('"initialize"')) {
      res.writeHead(200, { 'Content-Type': 'application/json', 'Mcp-Session-Id': 's' })
      res.end('{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"2025-11-25"}}')
    } else if (seen.body.includes('notifications/')) res.writeHead(202).end()
    else {
      res.writeHead(400, { 'Content-Type': 'application/json', 'X-Own': 'alive' })
      // In one piece with its length, or chunked.
      if (body.length % 2 === 1) res.write(body.slice(0, 1))
      res.end(body.slice(body.length % 2))
    }
  })
  t.teardown(() => server.close())
  const { url } = await rigFor(t, server)
  const session = await openSession(`${url}/mcp`)
  const from = server.seen.length
  const response = await session.request('tools/call')
  t.equal(response.status, 400)
  t.equal(response.text, other)
  t.equal(response.headers.get('x-own'), 'alive')
  for (const size of [0, 1, 65_536, 65_537, 65_538, 3_000_000, 3_000_001]) {
    body = 'session '.repeat(size / 8 + 1).slice(0, size)
    // Long bodies and bodies without the word are passed on. A short text about the session is a loss.
    if (size > 8 && size <= 65_536) body = body.replaceAll('session', 'nothing')
    t.equal((await session.request('tools/call')).text, body, `${size} bytes`)
  }
  t.equal(methodsSince(server, from).filter((method) => method === 'initialize').length, 0)
})

await t.test(
  'loss: if the target opens no new session, the client gets 404 and /readyz reports it',
  async (t) => {
    const server = await startForgetful(t, refuse400)
    const { url } = await rigFor(t, server)
    const readyz = async (): Promise<unknown> => (await fetch(`${url}/readyz`)).json()
    const sessions = []
    for (let n = 0; n < 6; n++) sessions.push(await openSession(`${url}/mcp`))
    server.forget()
    server.refusesAll = true
    for (const session of sessions.slice(0, 5)) {
      t.match(await readyz(), { status: 'ready' })
      const { status, response } = await session.request('tools/call')
      t.equal(status, 404)
      t.match(response, { error: { code: -32001, message: 'Session not found' } })
    }
    t.match(await readyz(), {
      status: 'not_ready',
      reason: 'the target does not reopen lost sessions',
    })
    server.refusesAll = false
    t.equal((await sessions[5]?.request('tools/call'))?.status, 200)
    t.match(await readyz(), { status: 'ready' })
  },
)

await t.test("loss: without the session's initialize request, the client gets 404", async (t) => {
  const server = await startForgetful(t, refuse400)
  const { url } = await rigFor(t, server)
  const { status, response } = await post(`${url}/mcp`, rpc(1), { 'mcp-session-id': 'from-before' })
  t.equal(status, 404)
  t.match(response, { id: 1, error: { code: -32001 } })
})

await t.test(
  'loss: messages that belong to the lost session are acknowledged and not repeated',
  async (t) => {
    const server = await startForgetful(t, refuse400)
    const { url } = await rigFor(t, server)
    const session = await openSession(`${url}/mcp`)
    for (const send of [
      () => session.response(1, { roots: [] }),
      () => session.notify('notifications/cancelled', { requestId: 1 }),
      () => session.notify('notifications/initialized'),
    ]) {
      server.forget()
      const from = server.seen.length
      const { status, text } = await send()
      t.equal(status, 202)
      t.equal(text, '')
      t.same(methodsSince(server, from).slice(1), ['initialize', 'notifications/initialized'])
    }
    server.forget()
    const from = server.seen.length
    t.equal((await session.notify('notifications/roots/list_changed')).status, 202)
    t.same(methodsSince(server, from), [
      'notifications/roots/list_changed',
      'initialize',
      'notifications/initialized',
      'notifications/roots/list_changed',
    ])
  },
)

await t.test('loss: subscriptions and the log level are restored', async (t) => {
  const server = await startForgetful(t, refuse400)
  const { url } = await rigFor(t, server)
  const session = await openSession(`${url}/mcp`)
  await session.request('resources/subscribe', { uri: 'a:1' })
  await session.request('resources/subscribe', { uri: 'a:2' })
  await session.request('resources/unsubscribe', { uri: 'a:1' })
  await session.request('logging/setLevel', { level: 'debug' })
  await session.request('logging/setLevel', { level: 'error' })
  server.forget()
  const from = server.seen.length
  await session.request('tools/call')
  const again = server.seen.slice(from).map(({ body }) => JSON.parse(body))
  t.match(again.slice(1, 3), [{ method: 'initialize' }, { method: 'notifications/initialized' }])
  const set = again.slice(3, 5).map(({ method, params }) => [method, params.uri ?? params.level])
  t.same(new Set(set.map(String)), new Set(['resources/subscribe,a:2', 'logging/setLevel,error']))
  t.match(again.slice(5), [{ method: 'tools/call' }])
})

await t.test(
  'loss: event ids of the lost session are dropped, and those of the next session are used',
  async (t) => {
    const server = await startForgetful(t, refuse400)
    const { url } = await rigFor(t, server)
    const session = await openSession(`${url}/mcp`)
    const get = (lastEventId?: string) =>
      stream(`${url}/mcp`, {
        headers: {
          ...session.headers,
          ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
        },
      })
    const sent = () => server.seen.findLast(({ method }) => method === 'GET')?.headers['last-event-id']
    ;(await get('resumed')).close()
    t.equal(sent(), 'resumed', 'as long as the session lives')
    server.forget()
    const after = await get('old')
    t.equal(after.status, 200)
    t.equal(sent(), undefined, 'the id is unknown in the new session')
    const message = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
    server.streams.at(-1)?.write('id: ne')
    server.streams.at(-1)?.write(`w-1\r\ndata: ${message}\r\n\r\n: comment\nid:new-2\ndata: ${message}\n\n`)
    await after.next()
    await after.next()
    after.close()
    for (const [id, passed] of [
      ['new-1', 'new-1'],
      ['new-2', 'new-2'],
      ['old', undefined],
    ] as const) {
      const again = await get(id)
      t.equal(sent(), passed, id)
      again.close()
    }
  },
)

await t.test('loss: an open SDK session survives a restart of the everything server', async (t) => {
  const server = await startEverything(t, 'streamableHttp')
  const { url } = await rigFor(t, server)
  const client = new Client({ name: 'test', version: '1' })
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`))
  await client.connect(transport)
  t.teardown(() => client.close())
  const id = transport.sessionId
  await client.listTools()
  await server.kill()
  await server.start()
  t.match(await client.callTool({ name: 'echo', arguments: { message: 'still here' } }), {
    content: [{ text: 'Echo: still here' }],
  })
  t.equal(transport.sessionId, id)
})

await t.test('loss: the proxy continues at once, whatever the target returns for initialize', async (t) => {
  const type = { 'Content-Type': 'text/event-stream', 'Mcp-Session-Id': 'next' }
  const said: Readonly<Record<string, (res: ServerResponse) => void>> = {
    // Handling each pair of lines in a separate turn of the event loop would take minutes.
    'a long stream without a response': (res) => res.writeHead(200, type).end('data:x\n'.repeat(140_000)),
    'lines that look like a response': (res) =>
      res.writeHead(200, type).end('data:x"result"\n'.repeat(60_000)),
    'a body with the word in it': (res) =>
      res
        .writeHead(200, { ...type, 'Content-Type': 'application/json' })
        .end('{"jsonrpc":"2.0","note":"\\"result\\""}'),
  }
  for (const [name, say] of Object.entries(said)) {
    const server = await startForgetful(t, (res, seen) => {
      if (seen.body.includes('"initialize"')) say(res)
      else refuse400(res, seen)
    })
    const { url } = await rigFor(t, server)
    const session = await openSession(`${url}/mcp`)
    server.forget()
    server.refusesAll = true
    const { status } = await session.request('tools/call')
    t.ok(status === 404 || status === 502, `${name}: ${status}`)
  }
})

await t.test(
  'loss: the response to initialize may come after other events, on a stream that stays open',
  async (t) => {
    const server = await startForgetful(t, (res, seen) => {
      if (!seen.body.includes('"initialize"')) return refuse400(res, seen)
      res.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8', 'Mcp-Session-Id': 'next' })
      res.write(
        ': hello\n\nid: 0\ndata:\n\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"\\"result\\""}}\n\n',
      )
      res.write('data: {"jsonrpc":"2.0","id":"init",\ndata: "result":{"protocolVersion":"2025-06-18"}}\n\n')
      server.refusesAll = false
    })
    const { url } = await rigFor(t, server)
    const session = await openSession(`${url}/mcp`)
    server.forget()
    server.refusesAll = true
    await session.request('tools/call')
    const confirmed = server.seen.find(
      ({ body, headers }) => headers['mcp-session-id'] === 'next' && body.includes('initialized'),
    )
    t.equal(confirmed?.headers['mcp-protocol-version'], '2025-06-18')
  },
)

t.test('a target that answers GET with 404: the session goes on without a stream', async (t) => {
  const backend = await startRawBackend({
    before(req, res) {
      if (req.method !== 'GET') return false
      res.writeHead(404).end()
      return true
    },
  })
  const rig = await startRig(new URL(backend.url).origin)
  t.teardown(() => Promise.all([rig.close(), backend.close()]))
  const session = await openSession(`${rig.url}/mcp`)
  const headers = { 'mcp-session-id': session.id, accept: 'text/event-stream' }
  t.equal((await fetch(`${rig.url}/mcp`, { headers })).status, 405)
  const { response } = await session.request('tools/list')
  t.match(response?.result, { tools: [{ name: 'echo' }] })
})
