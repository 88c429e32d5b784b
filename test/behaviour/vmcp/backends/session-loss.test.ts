/**
 * Backends that have lost their sessions, behind a virtual server: a new session is opened however they report the
 * loss, safe requests are repeated, client state is restored, and sessions that keep getting lost appear in the health.
 */
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  Client as StatelessClient,
  StreamableHTTPClientTransport as Transport2,
} from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t, { type Test } from 'tap'
import { startEverything } from '../../../helpers/mcp/everything.ts'
import { openSession, stateless } from '../../../helpers/mcp/wire.ts'
import { type RawBackend, type RawBackendOptions, startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { bareNames, startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

const REFUSAL =
  '{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}'

type Refuse = (res: ServerResponse) => void

const refuse400: Refuse = (res) => {
  res.writeHead(400, { 'content-type': 'application/json' }).end(REFUSAL)
}

/** A backend that rejects unknown sessions in its own way, and also `initialize` if configured. */
async function backendThat(refuse: Refuse, options: RawBackendOptions = {}): Promise<RawBackend> {
  const backend: RawBackend = await startRawBackend({
    ...options,
    before(req, res, body) {
      if (options.before?.(req, res, body)) return true
      const session = req.headers['mcp-session-id']
      if (typeof session !== 'string' || backend.sessions.has(session)) return false
      refuse(res)
      return true
    },
  })
  return backend
}

for (const [name, refuse] of Object.entries<Refuse>({
  'HTTP 400 and -32000': refuse400,
  'HTTP 400 and plain text': (res) => res.writeHead(400).end('Bad Request: No valid session ID provided'),
  'HTTP 401 without a challenge': (res) => res.writeHead(401).end('Unauthorized: Session not found'),
  'HTTP 404': (res) => res.writeHead(404).end(),
}))
  t.test(`loss: a session rejected with ${name} is reopened, and the call is executed once`, async (t) => {
    const backend = await backendThat(refuse)
    const vmcp = await startTestVmcp({ raw: backend.url })
    t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
    const session = await openSession(vmcp.url)
    const callAs = {
      session: (n: number) => session.request('tools/call', { name: 'raw_echo', arguments: { n } }),
      stateless: (n: number) => stateless(vmcp.url, 'tools/call', { name: 'raw_echo', arguments: { n } }),
    }
    for (const [era, call] of Object.entries(callAs)) {
      await call(1)
      backend.sessions.clear()
      const before = backend.requests.length
      t.match((await call(2)).response?.result, { content: [{ text: '{"n":2}' }] }, era)
      const calls = backend.requests.slice(before).filter(({ method }) => method === 'tools/call')
      t.equal(calls.length, 1, era)
    }
  })

t.test('loss: a loss that a call notices also restores subscriptions and rereads lists', async (t) => {
  const backend = await backendThat(refuse400, {
    capabilities: '{"tools":{"listChanged":true},"resources":{"subscribe":true}}',
    responses: {
      'resources/list': () => '{"resources":[{"uri":"a:1","name":"one"}]}',
      'resources/templates/list': () => '{"resourceTemplates":[]}',
      'resources/subscribe': () => '{}',
    },
  })
  const vmcp = await startTestVmcp({ raw: backend.url }, { aggregation: bareNames('raw') })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  const events = await session.listen()
  await session.request('resources/subscribe', { uri: 'a:1' })
  const lost = backend.requests.findLast(({ method }) => method === 'resources/subscribe')
  const id = lost?.headers['mcp-session-id']
  const old = [...backend.streams].find(({ req }) => req.headers['mcp-session-id'] === id)
  if (!old) throw new Error('the session has no stream')
  const oldEnd = once(old, 'close')
  // The sessions are lost, while the streams stay open and silent.
  backend.sessions.clear()
  const before = backend.requests.length
  t.match((await session.request('tools/call', { name: 'echo' })).response?.result, { content: [{}] })
  await events.next(({ method }) => method === 'notifications/resources/updated')
  const again = backend.requests.slice(before).find(({ method }) => method === 'resources/subscribe')
  t.match(again?.params, { uri: 'a:1' })
  t.ok(backend.sessions.has(String(again?.headers['mcp-session-id'])), 'in the new session')
  await oldEnd
  events.close()
})

t.test(
  'loss: a call in flight gets its response and is not repeated when only its session is lost',
  async (t) => {
    let response: (() => void) | undefined
    const waiting = new Promise<void>((resolve) => {
      response = resolve
    })
    let calls = 0
    const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>()
    const { promise: refused, resolve: noteRefusal } = Promise.withResolvers<void>()
    const refuse: Refuse = (res) => {
      res.writeHead(404).end()
      if (res.req.method === 'GET') noteRefusal()
    }
    const backend = await backendThat(refuse, {
      responses: {
        async 'tools/call'() {
          calls++
          arrive()
          await waiting
          return '{"content":[{"type":"text","text":"late"}]}'
        },
      },
    })
    const vmcp = await startTestVmcp({ raw: backend.url })
    t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
    const session = await openSession(vmcp.url)
    const call = session.request('tools/call', { name: 'raw_echo' })
    await arrived
    // The listening stream is cut and notices the loss while the call is running.
    backend.sessions.clear()
    for (const stream of backend.streams) stream.destroy()
    await refused
    response?.()
    t.match((await call).response?.result, { content: [{ text: 'late' }] })
    t.equal(calls, 1)
  },
)

t.test('health: a rejected ping proves that the backend is alive, a failed one does not', async (t) => {
  for (const [httpStatus, code, status] of [
    [400, -32601, 'healthy'],
    [400, -32000, 'healthy'],
    [500, -32000, 'unhealthy'],
  ] as const) {
    const backend = await startRawBackend({
      responses: {
        ping({ id, res }) {
          const error = `{"code":${code},"message":"no"}`
          res.writeHead(httpStatus, { 'content-type': 'application/json' })
          res.end(`{"jsonrpc":"2.0","id":${id},"error":${error}}`)
          return undefined
        },
      },
    })
    const vmcp = await startTestVmcp(
      { raw: backend.url },
      { operational: { failureHandling: { unhealthyThreshold: 1 } } },
    )
    t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
    t.equal(await healthOf(vmcp.origin, (health) => health['status'] !== 'unknown'), status)
  }
})

/** Returns the status of the only backend once its health is as expected. */
async function healthOf(
  origin: string,
  wanted: (health: Record<string, unknown>) => boolean,
): Promise<unknown> {
  for (;;) {
    const response = await fetch(`${origin}/api/backends/health`)
    const { backends } = (await response.json()) as { backends: Record<string, Record<string, unknown>> }
    const [health = {}] = Object.values(backends)
    if (wanted(health)) return health['status']
  }
}

t.test('health: repeated session losses count as failures, and a successful call clears them', async (t) => {
  let holds = true
  const backend = await startRawBackend({
    before(req: IncomingMessage, res, body) {
      if (holds || !body.includes('"tools/call"')) return false
      refuse400(res)
      return true
    },
  })
  const failureHandling = {
    partialFailureMode: 'best_effort',
    unhealthyThreshold: 3,
    healthCheckInterval: '1h',
  }
  const vmcp = await startTestVmcp({ raw: backend.url }, { operational: { failureHandling } })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  await healthOf(vmcp.origin, ({ status }) => status === 'healthy')
  const session = await openSession(vmcp.url)
  const call = () => session.request('tools/call', { name: 'raw_echo' })
  await call()
  holds = false
  for (let n = 0; n < 3; n++) {
    const { response } = await call()
    t.match(response?.result, {
      isError: true,
      content: [{ text: 'backend raw: the backend has lost the session' }],
    })
  }
  const response = await fetch(`${vmcp.origin}/api/backends/health`)
  t.match(await response.json(), {
    backends: { raw: { status: 'degraded', consecutive_failures: 3, last_error_category: 'session_lost' } },
  })
  holds = true
  t.match((await call()).response?.result, { content: [{}] })
  t.equal(await healthOf(vmcp.origin, () => true), 'healthy')
})

t.test('restart: clients of both eras notice nothing when the everything server restarts', async (t) => {
  const server = await startEverything(t, 'streamableHttp')
  const vmcp = await startTestVmcp({ everything: server.url }, { aggregation: bareNames('everything') })
  t.teardown(() => vmcp.close())
  const client = await connect(t, vmcp.url)
  const modern = new StatelessClient(
    { name: 'modern', version: '1' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  )
  await modern.connect(new Transport2(new URL(vmcp.url)))
  t.teardown(() => modern.close())
  const calls = {
    session: () => client.callTool({ name: 'echo', arguments: { message: 'here' } }),
    stateless: () => modern.callTool({ name: 'echo', arguments: { message: 'here' } }),
  }
  for (const call of Object.values(calls)) await call()
  for (let n = 0; n < 2; n++) {
    await server.kill()
    await server.start()
    for (const [era, call] of Object.entries(calls))
      t.match(await call(), { content: [{ text: 'Echo: here' }] }, era)
    t.ok((await client.listTools()).tools.length > 0)
  }
})

async function connect(t: Test, url: string): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(url)))
  t.teardown(() => client.close())
  return client
}
