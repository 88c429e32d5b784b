/**
 * Requests that a backend may treat differently (other scopes, another client, another passed-through header) share no
 * backend session, no list and no failure. Requests of one login do, whatever their token.
 */
import t, { type Test } from 'tap'
import { identityOf, makeCaller } from '../../../runtime/net/index.ts'
import { credentialKey, requesterIdentity } from '../../../runtime/vmcp/model/identity.ts'
import { startTokenIssuer, type TokenIssuer } from '../../helpers/authserver/token-issuer.ts'
import { textResult } from '../../helpers/mcp/raw-backend.ts'
import { openSession, post, stateless, type WireSession } from '../../helpers/mcp/wire.ts'
import { missingRedis, startRedis } from '../../helpers/redis.ts'
import { sessionIn, startKeyed, toolsIn } from '../../helpers/vmcp/isolation/keyed-backend.ts'
import { type NamedExchange, startNamedExchange } from '../../helpers/vmcp/isolation/named-exchange.ts'
import { startTestVmcp, vmcpConfig } from '../../helpers/vmcp/vmcp.ts'

t.setTimeout(60_000)

function callerWith(claims: Record<string, unknown>, token = 'x') {
  return makeCaller({ issuer: 'https://idp', subject: 'ada', claims: { sub: 'ada', ...claims }, token })
}

t.test('identity: claims that grant access count, and those of a single token do not', async (t) => {
  const base = { scope: 'read write', client_id: 'app', roles: ['a', 'b'], nested: { x: 1, y: [2] } }
  const identity = (claims: Record<string, unknown>): string => identityOf(callerWith({ ...base, ...claims }))
  const first = identity({})
  for (const same of [
    { iat: 1, exp: 2, nbf: 3, jti: 'j', auth_time: 4, nonce: 'n', at_hash: 'h', c_hash: 'h', expires_in: 9 },
    { scope: 'write read' },
    { roles: ['b', 'a'] },
    { nested: { y: [2], x: 1 } },
  ])
    t.equal(identity(same), first, JSON.stringify(same))
  for (const other of [
    { scope: 'read' },
    { scp: ['read'] },
    { client_id: 'other' },
    { azp: 'other' },
    { roles: ['a'] },
    { roles: 'a' },
    { groups: ['admins'] },
    { tsid: 'another login' },
    { nested: { x: 1, y: [3] } },
    { act: { sub: 'agent' } },
    { tenant: 't1' },
  ])
    t.not(identity(other), first, JSON.stringify(other))
  t.not(identityOf(makeCaller({ issuer: 'https://idp', subject: 'bob', claims: base })), first)
  t.not(identityOf(makeCaller({ issuer: 'https://other', subject: 'ada', claims: base })), first)
  // Values cannot move from one claim to another.
  t.not(identity({ a: 'x', b: 'y' }), identity({ a: 'x"b="y' }))
  t.match(first, /^[\w-]{43}$/, 'a digest of fixed length')
})

t.test('identity: passed-through values count, and per-request headers do not', async (t) => {
  const caller = callerWith({})
  const of = (headers: Record<string, string>): string => requesterIdentity({ caller, headers })
  t.equal(of({}), identityOf(caller))
  t.equal(of({ 'x-request-id': '1', traceparent: '00-1' }), identityOf(caller))
  t.equal(of({ 'x-api-key': 'k', 'x-request-id': '1' }), of({ 'x-api-key': 'k', 'x-request-id': '2' }))
  t.not(of({ 'x-api-key': 'k' }), of({ 'x-api-key': 'l' }))
  t.not(of({ 'x-a': 'k' }), of({ 'x-b': 'k' }))
  t.notMatch(of({ 'x-api-key': 'plainsecret' }), /plainsecret/)
  const [old, renewed] = [callerWith({ iat: 1 }, 'old'), callerWith({ iat: 2 }, 'new')]
  t.equal(
    requesterIdentity({ caller: old, headers: {} }),
    requesterIdentity({ caller: renewed, headers: {} }),
  )
  t.not(credentialKey({ caller: old, headers: {} }), credentialKey({ caller: renewed, headers: {} }))
  const headers = { 'x-api-key': 'k' }
  const own = requesterIdentity({ caller, headers })
  t.not(
    requesterIdentity({ caller: callerWith({ scope: 'other' }), headers }),
    own,
    'the same object, another caller',
  )
})

t.test('passed-through headers: one client session, and clients without a session', async (t) => {
  const backend = await startKeyed(t)
  const vmcp = await startTestVmcp(
    { raw: backend.url },
    { passthroughHeaders: ['X-Api-Key', 'X-Request-Id'] },
  )
  t.teardown(() => vmcp.close())
  const session = await openSession(vmcp.url, { headers: { 'x-api-key': 'k1' } })
  const inSession = (key: string, method = 'tools/call') =>
    session.request(method, { name: 'raw_echo' }, { 'x-api-key': key, 'x-request-id': String(Math.random()) })
  const without = (key: string, method = 'tools/call') =>
    stateless(vmcp.url, method, { name: 'raw_echo' }, { headers: { 'x-api-key': key } })
  for (const call of [inSession, without]) {
    t.same(toolsIn(await call('k1', 'tools/list')), ['of-k1'])
    t.same(toolsIn(await call('k2', 'tools/list')), ['of-k2'])
    const first = sessionIn(await call('k1'))
    const second = sessionIn(await call('k2'))
    t.not(first, second)
    t.equal(sessionIn(await call('k1')), first)
    t.equal(sessionIn(await call('k2')), second)
  }
  // Every request carries the headers that its session was opened with.
  const keys = new Map<unknown, unknown>()
  for (const { headers } of backend.requests) {
    const id = headers['mcp-session-id']
    if (id === undefined) continue
    t.equal(keys.get(id) ?? headers['x-api-key'], headers['x-api-key'])
    keys.set(id, headers['x-api-key'])
  }
})

t.test(
  "passed-through headers: a client's sessions at a backend are bounded, and all end with it",
  async (t) => {
    const backend = await startKeyed(t)
    const vmcp = await startTestVmcp({ raw: backend.url }, { passthroughHeaders: ['X-Api-Key'] })
    t.teardown(() => vmcp.close())
    const session = await openSession(vmcp.url, { headers: { 'x-api-key': 'k0' } })
    const sessions = new Set<string>()
    for (let n = 0; n < 20; n++)
      sessions.add(
        sessionIn(await session.request('tools/call', { name: 'raw_echo' }, { 'x-api-key': `k${n}` })),
      )
    t.equal(sessions.size, 20)
    const alive = (): number => [...sessions].filter((id) => backend.sessions.has(id)).length
    while (alive() > 8) await new Promise(setImmediate)
    await session.end()
    while (alive() > 0) await new Promise(setImmediate)
    t.pass('every session at the backend has ended')
  },
)

async function startExchange(t: Test): Promise<NamedExchange> {
  const exchange = await startNamedExchange()
  t.teardown(() => exchange.close())
  return exchange
}

async function startIssuer(t: Test): Promise<TokenIssuer> {
  const issuer = await startTokenIssuer()
  t.teardown(() => issuer.close())
  return issuer
}

const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` })

t.test(
  'claims: two tokens of one user with different scopes share nothing, and a refreshed token shares everything',
  async (t) => {
    const backend = await startKeyed(t)
    const [issuer, exchange] = [await startIssuer(t), await startExchange(t)]
    const { outgoingAuth } = exchange
    const vmcp = await startTestVmcp(
      { raw: backend.url },
      { incomingAuth: issuer.incomingAuth, outgoingAuth },
    )
    t.teardown(() => vmcp.close())
    const [narrow, wide, refreshed] = await Promise.all([
      issuer.token('ada', { scope: 'read', jti: '1' }),
      issuer.token('ada', { scope: 'read write', jti: '2' }),
      issuer.token('ada', { scope: 'read', jti: '3' }),
    ])
    const session = await openSession(vmcp.url, { headers: bearer(narrow) })
    const inSession = (token: string, method = 'tools/call') =>
      session.request(method, { name: 'raw_echo' }, bearer(token))
    const without = (token: string, method = 'tools/call') =>
      stateless(vmcp.url, method, { name: 'raw_echo' }, { headers: bearer(token) })
    for (const call of [inSession, without]) {
      t.same(toolsIn(await call(narrow, 'tools/list')), ['of-Beareradaread'])
      t.same(toolsIn(await call(wide, 'tools/list')), ['of-Beareradareadwrite'])
      const first = sessionIn(await call(narrow))
      t.not(sessionIn(await call(wide)), first)
      t.equal(sessionIn(await call(refreshed)), first)
    }
  },
)

t.test('reload: a backend at another address gets no session of the previous one', async (t) => {
  const [old, fresh] = [await startKeyed(t), await startKeyed(t)]
  const vmcp = await startTestVmcp({ raw: old.url })
  t.teardown(() => vmcp.close())
  const session = await openSession(vmcp.url)
  const call = () => session.request('tools/call', { name: 'raw_echo' })
  const first = sessionIn(await call())
  t.ok(old.requests.some(({ headers }) => headers['mcp-session-id'] === first))
  vmcp.reload(vmcpConfig({ raw: fresh.url }))
  const second = sessionIn(await call())
  t.ok(fresh.sessions.has(second))
  t.notOk(fresh.named.has(first))
  // Switches back to an address for which a session may still exist.
  vmcp.reload(vmcpConfig({ raw: old.url }))
  await call()
  t.notOk(old.named.has(second))
})

/** The same session at another address. */
function at(url: string, session: WireSession, headers: Record<string, string> = {}) {
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'raw_echo' } }
  return post(url, JSON.stringify(body), { ...session.headers, ...headers })
}

t.test('stored sessions', { skip: missingRedis }, async (t) => {
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const more = {
    passthroughHeaders: ['X-Api-Key'],
    sessionStorage: { provider: 'redis', address: redis.addr, keyPrefix: 'test:' },
  }

  await t.test('another replica continues the session only for the same address and identity', async (t) => {
    const [backend, moved] = [await startKeyed(t), await startKeyed(t)]
    const [a, b, elsewhere] = await Promise.all([
      startTestVmcp({ raw: backend.url }, more),
      startTestVmcp({ raw: backend.url }, more),
      startTestVmcp({ raw: moved.url }, more),
    ])
    t.teardown(() => Promise.all([a.close(), b.close(), elsewhere.close()]))
    const session = await openSession(a.url, { headers: { 'x-api-key': 'k1' } })
    const first = sessionIn(await at(a.url, session))
    t.equal(sessionIn(await at(b.url, session)), first, 'the session continues')
    t.not(sessionIn(await at(b.url, session, { 'x-api-key': 'k2' })), first)
    const other = sessionIn(await at(elsewhere.url, session))
    t.ok(moved.sessions.has(other))
    t.notOk(moved.named.has(first))
  })

  await t.test('simultaneous requests of one session use their own tokens', async (t) => {
    const seen: string[] = []
    const backend = await startKeyed(t, {
      responses: {
        'tools/call': ({ headers, params }) => {
          const { mark } = params['arguments'] as { mark: string }
          seen.push(`${mark} ${String(headers['authorization'])}`)
          return textResult(mark)
        },
      },
    })
    const [issuer, exchange] = [await startIssuer(t), await startExchange(t)]
    const { outgoingAuth } = exchange
    const vmcp = await startTestVmcp(
      { raw: backend.url },
      { ...more, incomingAuth: issuer.incomingAuth, outgoingAuth },
    )
    t.teardown(() => vmcp.close())
    const tokens = await Promise.all(['one', 'two', 'three'].map((scope) => issuer.token('ada', { scope })))
    const session = await openSession(vmcp.url, { headers: bearer(tokens[0] ?? '') })
    await Promise.all(
      Array.from({ length: 30 }, (_, n) =>
        session.request(
          'tools/call',
          { name: 'raw_echo', arguments: { mark: `${n % 3}` } },
          bearer(tokens[n % 3] ?? ''),
        ),
      ),
    )
    const expected = ['one', 'two', 'three'].map((scope, n) => `${n} Bearer ada.${scope}`)
    t.equal(seen.length, 30)
    t.same([...new Set(seen)].sort(), expected.sort())
  })

  await t.test(
    'a record of an earlier build: the client session continues, and the backend session is reopened',
    async (t) => {
      const backend = await startKeyed(t)
      const [a, b] = await Promise.all([1, 2].map(() => startTestVmcp({ raw: backend.url }, more)))
      if (!a || !b) throw new Error('no replicas')
      t.teardown(() => Promise.all([a.close(), b.close()]))
      const session = await openSession(a.url)
      const first = sessionIn(await at(a.url, session))
      const key = `test:${session.id}`
      const record = JSON.parse(redis.cli('get', key)) as { backends: Record<string, { binding?: string }> }
      t.match(record.backends['raw'], { sessionId: first, binding: /^[\w-]{43}$/ })
      delete record.backends['raw']?.binding
      redis.cli('set', key, JSON.stringify(record))
      const second = sessionIn(await at(b.url, session))
      t.not(second, first)
      t.ok(backend.sessions.has(second))
    },
  )
})
