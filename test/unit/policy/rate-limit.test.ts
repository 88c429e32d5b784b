/** Token buckets: keys, all-or-nothing, waiting times, outages. The same cases run on memory and on a real Redis. */
import t, { type Test } from 'tap'
import type { RateLimitConfig } from '../../../schemas/index.ts'
import { JsonObject } from '../../../runtime/mcp/index.ts'
import { makeCaller } from '../../../runtime/net/index.ts'
import { makeRateLimiter, rateLimitError, type RateLimiter } from '../../../runtime/policy/index.ts'
import { type RateLimiterOptions, type RateLimitEvent } from '../../../runtime/policy/limits/rate-limit.ts'
import { makeMemoryStore, makeRedisStore, type Store } from '../../../runtime/store/index.ts'
import { proves } from '../../helpers/proves.ts'
import { freePort } from '../../helpers/gatehouse.ts'
import { missingRedis, startRedis, until } from '../../helpers/redis.ts'

const caller = (subject: string, issuer = 'https://idp.example') =>
  makeCaller({ issuer, subject, claims: { sub: subject } })
const ada = caller('ada')
const bob = caller('bob')
const paramsOf = (value: unknown): JsonObject => new JsonObject(Buffer.from(JSON.stringify(value)))

const limiterOf = (
  store: Store,
  config: RateLimitConfig,
  more: Partial<RateLimiterOptions> = {},
): RateLimiter => makeRateLimiter({ config, store, namespace: 'team', server: 'front', ...more })

const call = (limiter: RateLimiter, who = ada, tool = 'echo') =>
  limiter.take(who, 'tools/call', paramsOf({ name: tool }))

/** Returns the number of consecutive calls that are allowed, at most `most`. */
async function letThrough(limiter: RateLimiter, who = ada, tool = 'echo', most = 20): Promise<number> {
  for (let count = 0; count < most; count++) if (await call(limiter, who, tool)) return count
  return most
}

const hour = (maxTokens: number) => ({ maxTokens, refillPeriod: '1h' })

/** Registers the tests for every kind of store. No bucket refills noticeably during a test. */
function contract(t: Test, storeOf: () => Store): void {
  t.test('shared: one bucket for all callers and tools', async (t) => {
    proves('3.config.rateLimiting', '3.config.rateLimiting.shared', '3.config.rateLimiting.bucket.maxTokens')
    const limiter = limiterOf(storeOf(), { shared: hour(3) })
    t.equal(await call(limiter, ada, 'a'), undefined)
    t.equal(await call(limiter, bob, 'b'), undefined)
    t.equal(await call(limiter, ada, 'b'), undefined)
    t.match(await call(limiter, bob, 'a'), { scope: 'shared', operationType: 'server' })
  })

  t.test('perUser: one bucket for each pair of issuer and subject', async (t) => {
    proves('3.config.rateLimiting.perUser')
    const limiter = limiterOf(storeOf(), { perUser: hour(2) })
    t.equal(await letThrough(limiter, ada), 2)
    t.equal(await letThrough(limiter, bob), 2)
    t.equal(await letThrough(limiter, caller('ada', 'https://other.example')), 2, 'the same name elsewhere')
    t.match(await call(limiter, ada), { scope: 'per_user', operationType: 'server' })
  })

  t.test('tools: buckets of one tool, shared and for each user', async (t) => {
    proves(
      '3.config.rateLimiting.tools',
      '3.config.rateLimiting.tools.shared',
      '3.config.rateLimiting.tools.perUser',
    )
    const limiter = limiterOf(storeOf(), {
      tools: [
        { name: 'a', shared: hour(3) },
        { name: 'b', perUser: hour(1) },
      ],
    })
    t.equal(await letThrough(limiter, ada, 'a'), 3)
    t.match(await call(limiter, bob, 'a'), { scope: 'shared', operationType: 'tool' })
    t.equal(await letThrough(limiter, ada, 'b'), 1)
    t.equal(await letThrough(limiter, bob, 'b'), 1)
    t.match(await call(limiter, bob, 'b'), { scope: 'per_user', operationType: 'tool' })
    t.equal(await letThrough(limiter, ada, 'c'), 20, 'a tool without limits')
  })

  t.test('buckets: a call takes a token from all buckets or from none', async (t) => {
    const limiter = limiterOf(storeOf(), { shared: hour(5), tools: [{ name: 'a', perUser: hour(1) }] })
    t.equal(await letThrough(limiter, ada, 'a'), 1)
    for (let i = 0; i < 10; i++) t.ok(await call(limiter, ada, 'a'))
    t.equal(await letThrough(limiter, ada, 'b'), 4, 'rejected calls took no token of the server')
  })

  t.test('bucket: concurrent calls get exactly the available tokens', async (t) => {
    const limiter = limiterOf(storeOf(), { shared: hour(7), perUser: hour(50) })
    const responses = await Promise.all(Array.from({ length: 40 }, () => call(limiter)))
    t.equal(responses.filter((response) => response === undefined).length, 7)
  })

  t.test('requests: only tools/call counts', async (t) => {
    const limiter = limiterOf(storeOf(), { shared: hour(1) })
    for (const method of [
      'tools/list',
      'resources/read',
      'prompts/get',
      'completion/complete',
      'ping',
      'initialize',
    ])
      t.equal(await limiter.take(ada, method, paramsOf({ name: 'echo' })), undefined, method)
    t.equal(await limiter.take(ada, 'tools/call', paramsOf({})), undefined, 'a call without a name counts')
    t.ok(await call(limiter))
  })

  t.test('servers: do not share buckets', async (t) => {
    const store = storeOf()
    t.equal(await letThrough(limiterOf(store, { shared: hour(2) })), 2)
    t.equal(await letThrough(limiterOf(store, { shared: hour(2) }, { server: 'other' })), 2)
    t.equal(await letThrough(limiterOf(store, { shared: hour(2) }, { namespace: 'other' })), 2)
    t.equal(await letThrough(limiterOf(store, { shared: hour(2) })), 0, 'another replica')
  })

  t.test(
    'decisions: reported for each bucket of an allowed call, and for the bucket that rejects a call',
    async (t) => {
      const events: RateLimitEvent[] = []
      const limiter = limiterOf(
        storeOf(),
        { shared: hour(9), tools: [{ name: 'echo', perUser: hour(1) }] },
        { observe: (event) => void (event.kind === 'decision' && events.push(event)) },
      )
      await call(limiter)
      await call(limiter)
      t.strictSame(events, [
        { kind: 'decision', decision: 'allowed', scope: 'shared', operationType: 'server' },
        { kind: 'decision', decision: 'allowed', scope: 'per_user', operationType: 'tool' },
        { kind: 'decision', decision: 'rejected', scope: 'per_user', operationType: 'tool' },
      ])
    },
  )
}

t.test('rate limits in memory', (t) => {
  contract(t, () => makeMemoryStore())

  t.test('refill: is continuous, and the waiting time is exact', async (t) => {
    proves('3.config.rateLimiting.bucket.refillPeriod')
    let now = 1_000_000
    const limiter = limiterOf(makeMemoryStore({ now: () => now }), {
      shared: { maxTokens: 4, refillPeriod: '1m' },
    })
    t.equal(await letThrough(limiter), 4)
    t.strictSame(await call(limiter), { retryAfterSeconds: 15, scope: 'shared', operationType: 'server' })
    now += 5_500
    t.match(await call(limiter), { retryAfterSeconds: 10 }, 'rounded up')
    now += 9_500
    t.equal(await letThrough(limiter), 1)
    now += 3_600_000
    t.equal(await letThrough(limiter), 4, 'never more than its capacity')
  })

  t.test('wait: at least a second, and the longest of all buckets', async (t) => {
    const now = 1_000_000
    const store = () => makeMemoryStore({ now: () => now })
    const fast = limiterOf(store(), { shared: { maxTokens: 10, refillPeriod: '100ms' } })
    await letThrough(fast)
    t.match(await call(fast), { retryAfterSeconds: 1 })
    const both = limiterOf(store(), {
      shared: { maxTokens: 1, refillPeriod: '10s' },
      perUser: { maxTokens: 1, refillPeriod: '30s' },
    })
    await call(both)
    t.strictSame(await call(both), { retryAfterSeconds: 30, scope: 'per_user', operationType: 'server' })
  })
  t.end()
})

t.test('rejection: the error has the waiting time in its data and in Retry-After', async (t) => {
  const error = rateLimitError({ retryAfterSeconds: 7, scope: 'shared', operationType: 'server' })
  t.match(error, {
    code: 'RATE_LIMITED',
    status: 429,
    rpcCode: 429,
    message: 'Rate limit exceeded',
    data: { retryAfterSeconds: 7 },
    headers: { 'retry-after': '7' },
  })
})

t.test('rate limits on Redis', { skip: missingRedis }, async (t) => {
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  let prefixes = 0
  const stores: Store[] = []
  t.teardown(() => Promise.all(stores.map((store) => store.close())))
  function open(keyPrefix: string): Store {
    const store = makeRedisStore({ addr: redis.addr, keyPrefix })
    stores.push(store)
    return store
  }

  await t.test('contract', (t) => {
    contract(t, () => open(`prefix${prefixes++}:`))
    t.end()
  })

  await t.test('replicas: share the remaining tokens, even with concurrent calls', async (t) => {
    proves('3.config.rateLimiting.store')
    const config = { shared: hour(9), perUser: hour(100) }
    const replicas = Array.from({ length: 3 }, () => limiterOf(open('shared:'), config))
    const responses = await Promise.all(
      Array.from({ length: 20 }, () => replicas.map((replica) => call(replica))).flat(),
    )
    t.equal(responses.filter((response) => response === undefined).length, 9)
  })

  await t.test('keys: have the prefix, one slot per server, and do not contain the user', async (t) => {
    const limiter = limiterOf(open('gh:own:'), {
      shared: hour(9),
      perUser: hour(9),
      tools: [{ name: 'echo', shared: hour(9), perUser: hour(9) }],
    })
    await call(limiter)
    const keys = redis.cli('keys', 'gh:own:*').split('\n').sort()
    const user = /[\w-]{43}$/
    t.strictSame(
      keys.map((key) => key.replace(user, 'USER')),
      [
        'gh:own:rl:{team:front}:shared',
        'gh:own:rl:{team:front}:shared:tool:echo',
        'gh:own:rl:{team:front}:user-tool:echo:USER',
        'gh:own:rl:{team:front}:user:USER',
      ],
    )
    t.notMatch(keys.join(), /ada|idp/)
  })

  await t.test('keys: expire after twice the refill period', async (t) => {
    proves('3.config.rateLimiting.key-expiry')
    const limiter = limiterOf(open('gh:life:'), { perUser: { maxTokens: 2, refillPeriod: '100s' } })
    await call(limiter)
    const key = redis.cli('keys', 'gh:life:*')
    const life = Number(redis.cli('pttl', key))
    t.ok(life > 190_000 && life <= 200_000, `${life} ms`)
  })

  await t.test('refill: uses the clock of Redis', async (t) => {
    const never = limiterOf(
      open('gh:refill:'),
      { shared: { maxTokens: 1, refillPeriod: '50ms' } },
      { now: () => 0 },
    )
    t.equal(await call(never), undefined)
    await until(async () => (await call(never)) === undefined)
    t.pass('a token came back although the clock here stands still')
  })
})

interface Outage {
  readonly limiter: RateLimiter
  readonly events: RateLimitEvent[]
  readonly tick: (ms: number) => void
}

function outage(store: Store, more: Partial<RateLimiterOptions> = {}): Outage {
  let now = 0
  const events: RateLimitEvent[] = []
  const limiter = limiterOf(
    store,
    { shared: hour(1) },
    { now: () => now, observe: (event) => events.push(event), timeoutMs: 200, ...more },
  )
  return { limiter, events, tick: (ms) => void (now += ms) }
}

const kinds = (events: readonly RateLimitEvent[]) =>
  events.map((event) => (event.kind === 'store_error' ? event.errorType : event.kind))

t.test(
  'outage: calls continue uncounted and are reported, and limits work again once Redis is back',
  { skip: missingRedis },
  async (t) => {
    const redis = await startRedis()
    t.teardown(() => redis.stop())
    const store = makeRedisStore({ addr: redis.addr, keyPrefix: 'gh:' })
    t.teardown(() => store.close())
    const { limiter, events, tick } = outage(store)
    t.equal(await call(limiter), undefined)
    // On a busy machine, the first connection may take longer than the timeout of a call.
    await until(async () => {
      tick(1_001)
      return (await call(limiter)) !== undefined
    })
    t.pass('limited while Redis is available')
    events.length = 0
    redis.freeze()
    t.equal(await call(limiter), undefined)
    t.strictSame(kinds(events), ['store_down', 'timeout', 'fail_open'])
    t.equal(await call(limiter), undefined, 'the next call does not wait for it')
    t.strictSame(kinds(events), ['store_down', 'timeout', 'fail_open', 'fail_open'])
    redis.thaw()
    tick(1_001)
    await until(async () => {
      tick(1_001)
      return (await call(limiter)) !== undefined
    })
    t.pass('limited again')
    events.length = 0
    await redis.stop()
    t.equal(await call(limiter), undefined)
    t.equal(events.at(-1)?.kind, 'fail_open')
  },
)

t.test('outage: calls are rejected if configured', { skip: missingRedis }, async (t) => {
  const store = makeRedisStore({ addr: `127.0.0.1:${await freePort()}`, keyPrefix: 'gh:' })
  t.teardown(() => store.close())
  const { limiter, events } = outage(store, { whenStoreDown: 'refuse' })
  await t.rejects(call(limiter), {
    code: 'STORE_DOWN',
    message: 'rate limits cannot be checked at the moment',
  })
  await t.rejects(call(limiter), { code: 'STORE_DOWN' }, 'at once')
  t.notOk(events.some(({ kind }) => kind === 'fail_open'))
})

t.test('outage: a wrong password has its own reason', { skip: missingRedis }, async (t) => {
  const redis = await startRedis({ auth: { username: 'narrow', password: 'right' }, keys: 'elsewhere:*' })
  t.teardown(() => redis.stop())
  const store = makeRedisStore({ addr: redis.addr, username: 'narrow', password: 'right', keyPrefix: 'gh:' })
  t.teardown(() => store.close())
  const { limiter, events } = outage(store, { timeoutMs: 5_000 })
  t.equal(await call(limiter), undefined)
  t.strictSame(kinds(events), ['store_down', 'auth', 'fail_open'])
})
