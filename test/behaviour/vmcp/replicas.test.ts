/** Two replicas with one Redis: a session opened on one continues on the other, and ends everywhere. */
import t from 'tap'
import { startFixture } from '../../helpers/mcp/fixture-server/index.ts'
import { openSession, post, stateless, type WireSession } from '../../helpers/mcp/wire.ts'
import { proves } from '../../helpers/proves.ts'
import { startRawBackend, textResult } from '../../helpers/mcp/raw-backend.ts'
import { missingRedis, type RedisProcess, startRedis } from '../../helpers/redis.ts'
import { startTokenIssuer } from '../../helpers/authserver/token-issuer.ts'
import { bareNames, startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

proves(
  '3.config.sessionStorage.provider',
  '3.config.sessionStorage.address',
  '3.config.sessionStorage.db',
  '3.config.sessionStorage.keyPrefix',
  '3.config.sessionStorage.password',
)

const PASSWORD = 'session-redis-password'
const env = { GATEHOUSE_SESSION_REDIS_PASSWORD: PASSWORD }

/** The same session at another address. */
function at(url: string, session: WireSession, method: string, params: unknown = {}) {
  return post(url, JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }), session.headers)
}

function storage(redis: RedisProcess) {
  return { sessionStorage: { provider: 'redis', address: redis.addr, db: 3, keyPrefix: 'team-a:' } }
}

t.setTimeout(180_000)

t.test('replicas', { skip: missingRedis }, async (t) => {
  const redis = await startRedis({ auth: { password: PASSWORD } })
  t.teardown(() => redis.stop())

  await t.test('a session continues on another replica, with the session of its backend', async (t) => {
    const backend = await startRawBackend({
      responses: { 'tools/call': ({ headers }) => textResult(String(headers['mcp-session-id'])) },
    })
    const [a, b] = await Promise.all(
      [1, 2].map(() => startTestVmcp({ raw: backend.url }, storage(redis), { env })),
    )
    t.teardown(() => Promise.all([a?.close(), b?.close(), backend.close()]))
    if (!a || !b) throw new Error('no replicas')
    const session = await openSession(a.url, { capabilities: { elicitation: {} } })
    await session.request('logging/setLevel', { level: 'error' })
    const first = (await at(a.url, session, 'tools/call', { name: 'raw_echo' })).text
    t.equal(
      (await at(b.url, session, 'tools/call', { name: 'raw_echo' })).text,
      first,
      'the backend sees one session',
    )
    t.match((await at(b.url, session, 'tools/list')).text, 'raw_echo')
    const key = `team-a:${session.id}`
    t.match(redis.cli('-n', '3', 'get', key), '"logLevel":"error"')
    t.match(redis.cli('-n', '3', 'get', key), '"owner"')
    t.ok(Number(redis.cli('-n', '3', 'pttl', key)) > 1_700_000)
  })

  await t.test('alternating requests to replicas: one session at the backend, one log level', async (t) => {
    const backend = await startRawBackend({
      capabilities: '{"tools":{},"logging":{}}',
      responses: {
        'tools/call': ({ headers }) => textResult(String(headers['mcp-session-id'])),
        'logging/setLevel': () => '{}',
      },
    })
    const [a, b] = await Promise.all(
      [1, 2].map(() => startTestVmcp({ raw: backend.url }, storage(redis), { env })),
    )
    t.teardown(() => Promise.all([a?.close(), b?.close(), backend.close()]))
    if (!a || !b) throw new Error('no replicas')
    // Opened on one replica, first used on the other. The first has a live copy that has not connected to the backend
    // yet.
    const session = await openSession(a.url)
    const called = async (url: string) => (await at(url, session, 'tools/call', { name: 'raw_echo' })).text
    const first = await called(b.url)
    for (const url of [a.url, b.url, a.url]) t.equal(await called(url), first)
    await at(b.url, session, 'logging/setLevel', { level: 'error' })
    await at(a.url, session, 'ping')
    t.match(redis.cli('-n', '3', 'get', `team-a:${session.id}`), '"logLevel":"error"')
    await at(a.url, session, 'tools/list')
    t.match(
      redis.cli('-n', '3', 'get', `team-a:${session.id}`),
      '"logLevel":"error"',
      'a replica that saves does not undo the other’s changes',
    )
  })

  await t.test('a session that ends on one replica ends on the other at once', async (t) => {
    const backend = await startRawBackend()
    const [a, b] = await Promise.all(
      [1, 2].map(() => startTestVmcp({ raw: backend.url }, storage(redis), { env })),
    )
    t.teardown(() => Promise.all([a?.close(), b?.close(), backend.close()]))
    if (!a || !b) throw new Error('no replicas')
    const session = await openSession(a.url)
    t.equal((await at(b.url, session, 'ping')).status, 200)
    await session.end()
    t.equal((await at(b.url, session, 'ping')).status, 404)
    t.equal((await at(a.url, session, 'ping')).status, 404)
  })

  await t.test('a closing replica leaves its sessions to the other replicas', async (t) => {
    const backend = await startRawBackend()
    const [a, b] = await Promise.all(
      [1, 2].map(() => startTestVmcp({ raw: backend.url }, storage(redis), { env })),
    )
    t.teardown(() => Promise.all([b?.close(), backend.close()]))
    if (!a || !b) throw new Error('no replicas')
    const session = await openSession(a.url)
    await at(a.url, session, 'tools/call', { name: 'raw_echo' })
    const known = new Set(backend.sessions)
    await a.close()
    t.match((await at(b.url, session, 'tools/call', { name: 'raw_echo' })).text, 'content')
    t.ok(
      [...known].some((id) => backend.sessions.has(id)),
      'the session at the backend was not ended',
    )
  })

  await t.test('subscriptions move with the session', async (t) => {
    const fixture = await startFixture()
    const more = { ...storage(redis), aggregation: bareNames('fixture') }
    const [a, b] = await Promise.all([1, 2].map(() => startTestVmcp({ fixture: fixture.url }, more, { env })))
    t.teardown(() => Promise.all([b?.close(), fixture.close()]))
    if (!a || !b) throw new Error('no replicas')
    const session = await openSession(a.url)
    await session.request('resources/subscribe', { uri: 'test://watched-resource' })
    await a.close()
    const moved = { ...session, url: b.url }
    const { stream } = await import('../../helpers/mcp/wire.ts')
    const updates = await stream(moved.url, { headers: session.headers })
    await at(b.url, session, 'tools/call', { name: 'echo' })
    fixture.state.update('test://watched-resource')
    const { params } = await updates.next(({ method }) => method === 'notifications/resources/updated')
    t.equal(params?.['uri'], 'test://watched-resource')
    updates.close()
  })

  await t.test('a session belongs to its caller on every replica', async (t) => {
    const issuer = await startTokenIssuer()
    const backend = await startRawBackend()
    const more = { ...storage(redis), incomingAuth: issuer.incomingAuth }
    const [a, b] = await Promise.all([1, 2].map(() => startTestVmcp({ raw: backend.url }, more, { env })))
    t.teardown(() => Promise.all([a?.close(), b?.close(), backend.close(), issuer.close()]))
    if (!a || !b) throw new Error('no replicas')
    const ada = { authorization: `Bearer ${await issuer.token('ada')}` }
    const eve = { authorization: `Bearer ${await issuer.token('eve')}` }
    const session = await openSession(a.url, { headers: ada })
    const stolen = { ...session, headers: { ...session.headers, ...eve } }
    t.equal((await at(b.url, stolen, 'tools/list')).status, 404)
    t.equal((await at(b.url, session, 'tools/list')).status, 200)
    t.notMatch(
      redis.cli('-n', '3', 'get', `team-a:${session.id}`),
      ada.authorization.slice(7),
      'no token is stored',
    )
  })

  await t.test('state of a stateless client is valid on every replica', async (t) => {
    const fixture = await startFixture({ era: 'stateless' })
    const more = { ...storage(redis), aggregation: bareNames('fixture') }
    const [a, b] = await Promise.all([1, 2].map(() => startTestVmcp({ fixture: fixture.url }, more, { env })))
    t.teardown(() => Promise.all([a?.close(), b?.close(), fixture.close()]))
    if (!a || !b) throw new Error('no replicas')
    const call = { name: 'test_input_required_result_request_state', arguments: {} }
    const capabilities = { elicitation: {} }
    await stateless(b.url, 'tools/list')
    const asked = await stateless(a.url, 'tools/call', call, { capabilities })
    const { requestState } = asked.response?.result ?? {}
    const inputResponses = { confirm: { action: 'accept', content: { ok: true } } }
    const done = await stateless(
      b.url,
      'tools/call',
      { ...call, requestState, inputResponses },
      { capabilities },
    )
    t.match(done.response?.result, { resultType: 'complete' })
  })

  await t.test('with shared key material, stored data is unreadable', async (t) => {
    const backend = await startRawBackend()
    const vmcp = await startTestVmcp({ raw: backend.url }, storage(redis), {
      env: { ...env, VMCP_SESSION_HMAC_SECRET: 'c2hhcmVkLWtleS1tYXRlcmlhbC1vZi10aGlydHktdHdvLWJ5dGVz' },
    })
    t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
    const session = await openSession(vmcp.url)
    t.equal((await session.request('ping')).status, 200)
    t.notMatch(redis.cli('-n', '3', 'get', `team-a:${session.id}`), 'owner')
  })
})

t.test(
  'the store fails and comes back: 503 in the meantime, and no session is lost',
  { skip: missingRedis },
  async (t) => {
    const redis = await startRedis()
    const backend = await startRawBackend()
    const more = { sessionStorage: { provider: 'redis', address: redis.addr } }
    const vmcp = await startTestVmcp({ raw: backend.url }, more)
    t.teardown(() => Promise.all([vmcp.close(), backend.close(), redis.stop()]))
    const session = await openSession(vmcp.url)
    await session.request('tools/call', { name: 'raw_echo' })
    const known = [...backend.sessions]
    redis.freeze()
    const refused = await session.request('tools/call', { name: 'raw_echo' })
    t.equal(refused.status, 503)
    t.notMatch(refused.text, redis.addr)
    t.equal((await session.end()).status, 503, 'a session that cannot be read cannot be ended')
    redis.thaw()
    await until(async () => (await session.request('ping')).status === 200)
    t.match((await session.request('tools/call', { name: 'raw_echo' })).text, 'content')
    t.same([...backend.sessions], known, 'the session at the backend is the same')
  },
)

t.test(
  'the store restarts empty: old sessions are unknown, new ones work',
  { skip: missingRedis },
  async (t) => {
    const redis = await startRedis()
    const backend = await startRawBackend()
    const more = { sessionStorage: { provider: 'redis', address: redis.addr } }
    const vmcp = await startTestVmcp({ raw: backend.url }, more)
    const session = await openSession(vmcp.url)
    await redis.stop()
    t.equal((await session.request('ping')).status, 503)
    const again = await startRedis({ port: redis.port })
    t.teardown(() => Promise.all([vmcp.close(), backend.close(), again.stop()]))
    await until(async () => (await session.request('ping')).status === 404)
    const fresh = await openSession(vmcp.url)
    t.match((await fresh.request('tools/call', { name: 'raw_echo' })).text, 'content')
  },
)

/**
 * A restart by an orchestrator: a new replica starts, gets the requests of the old one, and the old one closes while
 * long calls are in flight. Clients never repeat a request.
 */
t.test(
  'two replicas restarted in turn under load: no session and no call is lost',
  { skip: missingRedis },
  async (t) => {
    const redis = await startRedis()
    let held: (() => void)[] = []
    let onHeld: (() => void) | undefined
    const backend = await startRawBackend({
      responses: {
        'tools/call': async ({ headers, params }) => {
          const args = params['arguments'] as { n: number; long?: boolean }
          if (args.long) {
            await new Promise<void>((resolve) => {
              held.push(resolve)
              onHeld?.()
            })
          }
          return textResult(`${String(headers['mcp-session-id'])} ${args.n}`)
        },
      },
    })
    const more = { sessionStorage: { provider: 'redis', address: redis.addr } }
    const start = () => startTestVmcp({ raw: backend.url }, more, { graceMs: 5_000 })
    const replicas = await Promise.all([start(), start()])
    t.teardown(async () => {
      await Promise.all(replicas.map((replica) => replica.close()))
      await Promise.all([backend.close(), redis.stop()])
    })
    const sessions = await Promise.all(
      Array.from({ length: 10 }, (_, i) => openSession(replicas[i % 2]?.url ?? '')),
    )
    const violations: string[] = []
    let calls = 0
    const call = async (
      url: string,
      session: WireSession,
      n: number,
      { long = false }: { readonly long?: boolean } = {},
    ): Promise<void> => {
      const params = { name: 'raw_echo', arguments: { n, long } }
      const body = JSON.stringify({ jsonrpc: '2.0', id: n, method: 'tools/call', params })
      const response = await post(url, body, session.headers).catch((error: unknown) => String(error))
      const text = typeof response === 'string' ? response : response.text
      if (/"text":"\S+ (\d+)"/.exec(text)?.[1] === String(n)) calls++
      else violations.push(text)
    }
    const onTheWay = new Map<string, Set<Promise<void>>>(replicas.map(({ url }) => [url, new Set()]))
    const stop = new AbortController()
    let turn = 0
    const load = sessions.map(async (session) => {
      for (let n = 0; !stop.signal.aborted && violations.length === 0; n++) {
        const url = replicas[turn++ % replicas.length]?.url ?? ''
        const pending = onTheWay.get(url)
        const done = call(url, session, n)
        pending?.add(done)
        await done
        pending?.delete(done)
      }
    })
    for (const place of [0, 1]) {
      const old = replicas[place]
      if (!old) throw new Error('no replica')
      const allHeld = new Promise<void>((resolve) => {
        onHeld = () => {
          if (held.length === sessions.length) resolve()
        }
      })
      const long = sessions.map((session, i) => call(old.url, session, 1_000_000 + i, { long: true }))
      await allHeld
      const fresh = await start()
      onTheWay.set(fresh.url, new Set())
      replicas[place] = fresh
      await Promise.all([...(onTheWay.get(old.url) ?? [])])
      const closed = old.close()
      for (const release of held) release()
      held = []
      await Promise.all(long)
      await closed
    }
    stop.abort()
    await Promise.all(load)
    t.same(violations, [])
    t.ok(calls > 40, `${calls} calls`)
    for (const session of sessions) t.equal((await at(replicas[0]?.url ?? '', session, 'ping')).status, 200)
  },
)

/** Repeats the check until it holds. The test's own timeout is the limit. */
async function until(so: () => Promise<boolean>): Promise<void> {
  while (!(await so())) await new Promise((resolve) => setTimeout(resolve, 50))
}

t.test(
  'while the store is down, sessions are rejected and stateless requests are served',
  { skip: missingRedis },
  async (t) => {
    const redis = await startRedis()
    const backend = await startRawBackend()
    const more = { sessionStorage: { provider: 'redis', address: redis.addr } }
    const vmcp = await startTestVmcp({ raw: backend.url }, more)
    t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
    const session = await openSession(vmcp.url)
    t.match(redis.cli('keys', '*'), `gatehouse:vmcp:session:test-group:test-vmcp:${session.id}`)
    await redis.stop()
    t.match(await session.request('ping'), { status: 503 })
    t.equal((await stateless(vmcp.url, 'tools/list')).status, 200)
    t.equal((await fetch(`${vmcp.origin}/readyz`)).status, 200)
    await t.rejects(openSession(vmcp.url), /503/)
  },
)
