/**
 * Sessions belong to their owner: another caller with the id can neither use nor end one, and no caller can use up all
 * sessions.
 */
import t from 'tap'
import { openSession, post, stream } from '../../helpers/mcp/wire.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { startTokenIssuer } from '../../helpers/authserver/token-issuer.ts'
import { startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

t.test('a foreign session id is unknown for every kind of request', async (t) => {
  const issuer = await startTokenIssuer()
  const backend = await startRawBackend()
  const vmcp = await startTestVmcp({ raw: backend.url }, { incomingAuth: issuer.incomingAuth })
  t.teardown(() => Promise.all([vmcp.close(), backend.close(), issuer.close()]))
  const ada = { authorization: `Bearer ${await issuer.token('ada')}` }
  const eve = { authorization: `Bearer ${await issuer.token('eve')}` }
  const session = await openSession(vmcp.url, { headers: ada })
  const stolen = { ...session.headers, ...eve }
  for (const method of [
    'ping',
    'tools/list',
    'tools/call',
    'prompts/list',
    'resources/list',
    'logging/setLevel',
    'completion/complete',
  ]) {
    const response = await post(
      vmcp.url,
      JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { name: 'raw_echo' } }),
      stolen,
    )
    t.equal(response.status, 404, method)
    t.equal(response.response?.error?.code, -32001, method)
  }
  t.equal(
    (await post(vmcp.url, '{"jsonrpc":"2.0","method":"notifications/initialized"}', stolen)).status,
    404,
  )
  t.equal((await post(vmcp.url, '{"jsonrpc":"2.0","id":1,"result":{}}', stolen)).status, 404)
  const listening = await stream(vmcp.url, { headers: stolen })
  t.equal(listening.status, 404)
  listening.close()
  t.equal((await fetch(vmcp.url, { method: 'DELETE', headers: stolen })).status, 404)
  t.equal((await session.request('ping')).status, 200, 'the owner is not disturbed')
  const bare = await post(vmcp.url, '{"jsonrpc":"2.0","id":1,"method":"ping"}', {
    'mcp-session-id': session.id,
  })
  t.equal(bare.status, 401)
  t.match(bare.headers.get('www-authenticate'), /^Bearer /)
})

t.test('a new token of the same caller continues the session', async (t) => {
  const issuer = await startTokenIssuer()
  const backend = await startRawBackend()
  const vmcp = await startTestVmcp({ raw: backend.url }, { incomingAuth: issuer.incomingAuth })
  t.teardown(() => Promise.all([vmcp.close(), backend.close(), issuer.close()]))
  const session = await openSession(vmcp.url, {
    headers: { authorization: `Bearer ${await issuer.token('ada')}` },
  })
  const renewed = { authorization: `Bearer ${await issuer.token('ada', { jti: 'other' })}` }
  t.equal((await session.request('ping', {}, renewed)).status, 200)
})

t.test('the caller’s own token never reaches a backend', async (t) => {
  const issuer = await startTokenIssuer()
  const backend = await startRawBackend()
  const vmcp = await startTestVmcp(
    { raw: backend.url },
    { incomingAuth: issuer.incomingAuth, passthroughHeaders: ['X-Team'] },
  )
  t.teardown(() => Promise.all([vmcp.close(), backend.close(), issuer.close()]))
  const token = await issuer.token('ada')
  const session = await openSession(vmcp.url, {
    headers: { authorization: `Bearer ${token}`, cookie: 'c=1', 'x-team': 'red' },
  })
  await session.request('tools/call', { name: 'raw_echo' })
  t.ok(backend.requests.length > 3)
  for (const { headers } of backend.requests) {
    t.equal(headers['authorization'], undefined)
    t.equal(headers['cookie'], undefined)
  }
  t.equal(backend.requests.findLast(({ method }) => method === 'tools/call')?.headers['x-team'], 'red')
})

t.test('a full table: idle sessions make space, busy ones do not', async (t) => {
  const backend = await startRawBackend()
  let now = 1_000_000
  const clock = { now: () => now, after: () => () => {} }
  const vmcp = await startTestVmcp({ raw: backend.url }, {}, { maxSessions: 3, clock })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const first = await openSession(vmcp.url)
  await openSession(vmcp.url)
  await openSession(vmcp.url)
  await t.rejects(openSession(vmcp.url), /503/, 'recently active sessions are kept')
  now += 120_000
  await openSession(vmcp.url)
  t.equal((await first.request('ping')).status, 404, 'the session that was idle longest ends')
})

t.test('an unused session expires, a used one does not', async (t) => {
  const backend = await startRawBackend()
  let now = 1_000_000
  const clock = { now: () => now, after: () => () => {} }
  const vmcp = await startTestVmcp({ raw: backend.url }, {}, { sessionTtlMs: 60_000, clock })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const [used, unused] = [await openSession(vmcp.url), await openSession(vmcp.url)]
  now += 40_000
  t.equal((await used.request('ping')).status, 200)
  now += 40_000
  t.equal((await used.request('ping')).status, 200)
  t.equal((await unused.request('ping')).status, 404)
})

t.test('requests in flight of one session are bounded', async (t) => {
  const release: (() => void)[] = []
  const backend = await startRawBackend({
    responses: {
      'tools/call': () => new Promise((resolve) => release.push(() => resolve('{"content":[]}'))),
    },
  })
  const vmcp = await startTestVmcp({ raw: backend.url })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  const calls = Array.from({ length: 257 }, () => session.request('tools/call', { name: 'raw_echo' }))
  const refused = await Promise.race(calls)
  t.equal(refused.response?.error?.code, -32600)
  const timer = setInterval(() => {
    for (const each of release.splice(0)) each()
  }, 5)
  const responses = await Promise.all(calls)
  clearInterval(timer)
  t.equal(responses.filter(({ response }) => response?.error).length, 1)
})

t.test('a forbidden request is rejected as such, whether or not the session exists', async (t) => {
  const issuer = await startTokenIssuer()
  const backend = await startRawBackend()
  const authz = {
    type: 'cedar',
    policies: ['permit(principal == Client::"ada", action, resource == Tool::"raw_echo");'],
  }
  const vmcp = await startTestVmcp({ raw: backend.url }, { incomingAuth: { ...issuer.incomingAuth, authz } })
  t.teardown(() => Promise.all([vmcp.close(), backend.close(), issuer.close()]))
  const call = async (subject: string) =>
    post(vmcp.url, '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"raw_echo"}}', {
      authorization: `Bearer ${await issuer.token(subject)}`,
      'mcp-session-id': 'no-such-session',
    })
  t.match(await call('eve'), { status: 403, response: { id: 7, error: { code: 403 } } })
  t.match(await call('ada'), { status: 404, response: { id: 7, error: { code: -32001 } } })
})
