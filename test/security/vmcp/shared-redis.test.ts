/**
 * Servers that share one Redis: each has its own sessions, keys and limits, and an upgrade either keeps or drops
 * sessions cleanly.
 */
import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { openSession, post, stateless, type WireSession } from '../../helpers/mcp/wire.ts'
import { missingRedis, type RedisProcess, startRedis, until } from '../../helpers/redis.ts'
import { startAskingBackend } from '../../helpers/vmcp/asking-backend.ts'
import { bareNames, startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

t.setTimeout(120_000)

const recorded = JSON.parse(
  readFileSync(new URL('../../fixtures/previous-build.json', import.meta.url), 'utf8'),
)

function storage(redis: RedisProcess, more: Readonly<Record<string, unknown>> = {}) {
  return { sessionStorage: { provider: 'redis', address: redis.addr, ...more } }
}

async function ping(url: string, session: Pick<WireSession, 'headers'>): Promise<number> {
  return (await post(url, '{"jsonrpc":"2.0","id":1,"method":"ping"}', session.headers)).status
}

async function sharedRedis(t: Test): Promise<RedisProcess> {
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  return redis
}

t.test('shared Redis', { skip: missingRedis }, async (t) => {
  const redis = await sharedRedis(t)
  const backend = await startRawBackend()
  t.teardown(() => backend.close())
  const start = async (
    t: Test,
    more: Readonly<Record<string, unknown>>,
    env: Readonly<Record<string, string>> = {},
  ) => {
    const vmcp = await startTestVmcp({ raw: backend.url }, { ...storage(redis), ...more }, { env })
    t.teardown(() => vmcp.close())
    return vmcp
  }

  await t.test('a session belongs to the server that opened it, and to all of its replicas', async (t) => {
    const orders = await start(t, { name: 'orders' })
    const replica = await start(t, { name: 'orders' })
    const billing = await start(t, { name: 'billing' })
    const staging = await start(t, { name: 'orders', groupRef: 'staging' })
    const session = await openSession(orders.url)
    t.equal(await ping(replica.url, session), 200)
    t.equal(await ping(billing.url, session), 404)
    t.equal(await ping(staging.url, session), 404)
    t.match(redis.cli('keys', '*'), `gatehouse:vmcp:session:test-group:orders:${session.id}`)
  })

  await t.test('in a cluster, namespace and name identify the server', async (t) => {
    const one = await start(t, { name: 'orders' }, { VMCP_NAMESPACE: 'team-a' })
    const replica = await start(t, { name: 'orders', groupRef: 'moved' }, { VMCP_NAMESPACE: 'team-a' })
    const other = await start(t, { name: 'orders' }, { VMCP_NAMESPACE: 'team-b' })
    const session = await openSession(one.url)
    t.equal(await ping(replica.url, session), 200)
    t.equal(await ping(other.url, session), 404)
  })

  await t.test(
    'one explicit prefix for two servers is used as given, and sessions stay separate',
    async (t) => {
      const prefix = storage(redis, { keyPrefix: 'team:' })
      const orders = await start(t, { ...prefix, name: 'orders' })
      const billing = await start(t, { ...prefix, name: 'billing' })
      const session = await openSession(orders.url)
      t.match(redis.cli('keys', 'team:*'), `team:${session.id}`)
      t.equal(await ping(billing.url, session), 404)
      t.equal(await ping(orders.url, session), 200)
    },
  )

  await t.test('a name with a colon cannot reach the keys of another server', async (t) => {
    const one = await start(t, { name: 'a:b', groupRef: 'g' })
    const other = await start(t, { name: 'b', groupRef: 'g:a' })
    const session = await openSession(one.url)
    t.equal(await ping(other.url, session), 404)
  })

  await t.test('rate limits of servers with one name in two groups are separate', async (t) => {
    const rateLimiting = { shared: { maxTokens: 1, refillPeriod: '1h' } }
    const one = await start(t, { name: 'limited', rateLimiting })
    const replica = await start(t, { name: 'limited', rateLimiting })
    const other = await start(t, { name: 'limited', groupRef: 'staging', rateLimiting })
    const call = async (url: string): Promise<string> =>
      (await stateless(url, 'tools/call', { name: 'raw_echo', arguments: {} })).text
    t.match(await call(one.url), '"content"')
    t.match(await call(replica.url), /rate limit/i)
    t.match(await call(other.url), '"content"')
  })

  await t.test(
    'request state without a configured key is shared by replicas, and useless elsewhere',
    async (t) => {
      const asking = await startAskingBackend('a')
      t.teardown(() => asking.close())
      const prefix = storage(redis, { keyPrefix: 'states:' })
      const named = async (name: string) => {
        const more = { ...prefix, name, aggregation: bareNames('a') }
        const vmcp = await startTestVmcp({ a: asking.url }, more)
        t.teardown(() => vmcp.close())
        return vmcp
      }
      const [orders, replica, billing] = [
        await named('orders'),
        await named('orders'),
        await named('billing'),
      ]
      const call = { name: 'say', arguments: {} }
      const capabilities = { elicitation: { form: {} } }
      const inputResponses = { color: { action: 'accept', content: { color: 'red' } } }
      const finishAt = async (url: string) => {
        const asked = await stateless(orders.url, 'tools/call', call, { capabilities })
        const requestState = asked.response?.result?.['requestState']
        return stateless(url, 'tools/call', { ...call, requestState, inputResponses }, { capabilities })
      }
      // The servers read the key from the store once they are connected.
      await until(async () => (await finishAt(replica.url)).text.includes('a got'))
      t.match((await finishAt(orders.url)).response?.result, { content: [{ text: /^a got/ }] })
      t.match((await finishAt(billing.url)).response?.error, { code: -32602 })
    },
  )

  await t.test(
    'a session id that names another kind of value is unknown and does not change it',
    async (t) => {
      const vmcp = await start(t, { ...storage(redis, { keyPrefix: 'kinds:' }) })
      await openSession(vmcp.url)
      await until(() => redis.cli('pttl', 'kinds:request-state-key') === '-1')
      t.equal(await ping(vmcp.url, { headers: { 'mcp-session-id': 'request-state-key' } }), 404)
      t.equal(redis.cli('pttl', 'kinds:request-state-key'), '-1', 'it got no expiry')
    },
  )

  for (const kind of ['plain', 'sealed'] as const) {
    const { session, redis: values } = recorded[`vmcp-${kind}`]
    const env = kind === 'sealed' ? { VMCP_SESSION_HMAC_SECRET: recorded.secret } : {}
    const headers = { 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' }
    await t.test(`a ${kind} session of the previous build, default prefix: not found`, async (t) => {
      redis.cli('flushall')
      for (const [key, value] of Object.entries<string>(values)) redis.cli('set', key, value)
      const vmcp = await start(t, {}, env)
      t.equal(await ping(vmcp.url, { headers }), 404)
      t.equal(await ping(vmcp.url, await openSession(vmcp.url)), 200, 'the client opens another one')
    })

    await t.test(`a ${kind} session of the previous build, explicit prefix: continues`, async (t) => {
      redis.cli('flushall')
      for (const [key, value] of Object.entries<string>(values)) redis.cli('set', key, value)
      const vmcp = await start(t, storage(redis, { keyPrefix: 'gatehouse:vmcp:session' }), env)
      t.equal(await ping(vmcp.url, { headers }), 200)
      const call =
        '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"raw_echo","arguments":{}}}'
      t.match((await post(vmcp.url, call, headers)).text, '"content"', 'with another backend session')
    })
  }
})
