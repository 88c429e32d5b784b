/**
 * Rate limits of a virtual server, over HTTP and with a real Redis: responses for callers, and state shared by
 * replicas.
 */
import t from 'tap'
import { openSession, stateless, type WireAnswer } from '../../helpers/mcp/wire.ts'
import { proves } from '../../helpers/proves.ts'
import { type RawBackend, startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { missingRedis, type RedisProcess, startRedis } from '../../helpers/redis.ts'
import { startTokenIssuer } from '../../helpers/authserver/token-issuer.ts'
import { bareNames, startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

proves(
  '3.config.rateLimiting',
  '3.config.rateLimiting.store',
  '3.config.rateLimiting.shared',
  '3.config.rateLimiting.perUser',
  '3.config.rateLimiting.tools',
)

const PASSWORD = 'limits-redis-password'
const hour = (maxTokens: number) => ({ maxTokens, refillPeriod: '1h' })
const tool = (name: string) => `{"name":"${name}","inputSchema":{"type":"object"}}`

t.test('rate limits', { skip: missingRedis }, async (t) => {
  const redis = await startRedis({ auth: { password: PASSWORD } })
  const issuer = await startTokenIssuer()
  const backend: RawBackend = await startRawBackend({ tools: () => [tool('echo'), tool('costly')] })
  t.teardown(() => Promise.all([redis.stop(), issuer.close(), backend.close()]))
  let prefixes = 0
  const start = (
    rateLimiting: unknown,
    keyPrefix = `prefix${prefixes++}:`,
    from: RedisProcess = redis,
    authz?: unknown,
  ) =>
    startTestVmcp(
      { raw: backend.url },
      {
        aggregation: bareNames('raw'),
        incomingAuth: { ...issuer.incomingAuth, ...(authz === undefined ? {} : { authz }) },
        sessionStorage: { provider: 'redis', address: from.addr, keyPrefix },
        rateLimiting,
      },
      { env: { GATEHOUSE_SESSION_REDIS_PASSWORD: PASSWORD, VMCP_NAMESPACE: 'team' } },
    )
  const headersOf = async (subject: string) => ({ authorization: `Bearer ${await issuer.token(subject)}` })

  await t.test('a session-era client gets a result that its model can read', async (t) => {
    const vmcp = await start({ shared: hour(2) })
    t.teardown(() => vmcp.close())
    const session = await openSession(vmcp.url, { headers: await headersOf('ada') })
    const call = () => session.request('tools/call', { name: 'echo' })
    const before = backend.requests.length
    await call()
    await call()
    const reached = backend.requests.length
    const refused = await call()
    t.equal(refused.status, 200)
    t.strictSame(refused.response?.result, {
      content: [{ type: 'text', text: 'Rate limit exceeded' }],
      isError: true,
      structuredContent: {
        code: 429,
        message: 'Rate limit exceeded',
        data: { retryAfterSeconds: 1800 },
      },
    })
    t.ok(reached > before)
    t.equal(backend.requests.length, reached, 'the backend got no request')
    t.ok((await session.request('tools/list')).response?.result?.['tools'], 'lists cost nothing')
  })

  await t.test('a stateless client gets an error, with HTTP 200', async (t) => {
    const vmcp = await start({ shared: hour(1) })
    t.teardown(() => vmcp.close())
    const headers = await headersOf('ada')
    const call = () => stateless(vmcp.url, 'tools/call', { name: 'echo' }, { headers })
    t.ok((await call()).response?.result)
    const refused = await call()
    t.equal(refused.status, 200)
    t.strictSame(refused.response?.error, {
      code: 429,
      message: 'Rate limit exceeded',
      data: { retryAfterSeconds: 3600 },
    })
  })

  await t.test('users and tools have separate buckets, shared by replicas', async (t) => {
    const limits = { perUser: hour(3), tools: [{ name: 'costly', perUser: hour(1) }] }
    const [a, b] = await Promise.all([start(limits, 'twins:'), start(limits, 'twins:')])
    t.teardown(() => Promise.all([a.close(), b.close()]))
    const [ada, bob] = await Promise.all([headersOf('ada'), headersOf('bob')])
    const call = async (url: string, headers: Record<string, string>, name: string) =>
      limited(await stateless(url, 'tools/call', { name }, { headers })) ? 'limited' : 'done'
    t.equal(await call(a.url, ada, 'costly'), 'done')
    t.equal(await call(b.url, ada, 'costly'), 'limited')
    t.equal(await call(b.url, ada, 'echo'), 'done')
    t.equal(await call(a.url, ada, 'echo'), 'done', 'the rejected call cost nothing')
    t.equal(await call(b.url, ada, 'echo'), 'limited')
    t.equal(await call(b.url, bob, 'echo'), 'done')
    t.match(redis.cli('keys', 'twins:rl:*'), /^twins:rl:\{team:test-vmcp\}:user/m)
  })

  await t.test('denied, unknown and malformed calls do not use up a shared bucket', async (t) => {
    const vmcp = await start({ shared: hour(1) }, undefined, redis, {
      type: 'cedar',
      policies: [
        'permit(principal == Client::"ada", action, resource);',
        'permit(principal == Client::"bob", action, resource == Tool::"echo");',
      ],
    })
    t.teardown(() => vmcp.close())
    const [ada, bob, eve] = await Promise.all(['ada', 'bob', 'eve'].map(headersOf))
    const call = async (headers: Record<string, string> | undefined, params: Record<string, unknown>) =>
      (await stateless(vmcp.url, 'tools/call', params, { headers: headers ?? {} })).response
    for (let i = 0; i < 3; i++) {
      t.equal((await call(eve, { name: 'echo' }))?.error?.code, 403)
      t.equal((await call(bob, { name: 'costly' }))?.error?.code, 403)
      t.equal((await call(ada, { name: 'no-such-tool' }))?.error?.code, -32602)
      t.equal((await call(ada, { name: 'echo', arguments: [] }))?.error?.code, -32602)
    }
    t.ok((await call(bob, { name: 'echo' }))?.result, 'the only token is still available')
    t.equal((await call(bob, { name: 'echo' }))?.error?.code, 429)
    t.equal(
      (await call(eve, { name: 'echo' }))?.error?.code,
      403,
      'a rejection reveals nothing about the bucket',
    )
    t.equal((await call(ada, { name: 'no-such-tool' }))?.error?.code, -32602)
  })

  await t.test('calls continue while Redis is down', async (t) => {
    const own = await startRedis({ auth: { password: PASSWORD } })
    const vmcp = await start({ shared: hour(1) }, 'away:', own)
    t.teardown(() => Promise.all([vmcp.close(), own.stop()]))
    const headers = await headersOf('ada')
    const call = () => stateless(vmcp.url, 'tools/call', { name: 'echo' }, { headers })
    await call()
    t.ok(limited(await call()))
    await own.stop()
    t.ok((await call()).response?.result)
    t.ok((await call()).response?.result)
  })
})

function limited(response: WireAnswer): boolean {
  return response.response?.error?.code === 429
}
