/**
 * Quotas on a real Redis, standalone and cluster: shared by replicas, kept over a restart, and the effect of an outage.
 */
import t, { type Test } from 'tap'
import { makeRedisStore, type RedisStoreConfig, type Store } from '../../../../runtime/store/index.ts'
import { missingRedis, startRedis, startRedisCluster, until } from '../../../helpers/redis.ts'
import { callerOf, quota, quotasOn } from './rig.ts'

function opener(t: Test, config: Omit<RedisStoreConfig, 'keyPrefix'>): (keyPrefix: string) => Promise<Store> {
  const stores: Store[] = []
  t.teardown(() => Promise.all(stores.map((store) => store.close())))
  return async (keyPrefix) => {
    const store = makeRedisStore({ ...config, keyPrefix })
    stores.push(store)
    await store.ping()
    return store
  }
}

const unhurried = { timeoutMs: 10_000 }

t.test('Redis', { skip: missingRedis }, async (t) => {
  const redis = await startRedis()
  t.teardown(() => redis.stop())
  const open = opener(t, { addr: redis.addr })

  await t.test('replicas share the remaining budget, even with concurrent calls', async (t) => {
    const replicas = await Promise.all(
      Array.from({ length: 3 }, async () =>
        quotasOn(await open('shared:'), [quota({ limit: 9 })], unhurried),
      ),
    )
    const all = await Promise.all(Array.from({ length: 10 }, () => replicas.map(({ call }) => call())).flat())
    t.equal(all.filter((code) => code === undefined).length, 9)
  })

  await t.test('a restart keeps the counts', async (t) => {
    const before = await open('restart:')
    const { call } = quotasOn(before, [quota({ unit: 'resultBytes', limit: 100 })], unhurried)
    await call({ bytes: 150 })
    // The result of a call is sent to Redis before the next call.
    t.equal(await call(), 'QUOTA_EXCEEDED')
    await before.close()
    const after = quotasOn(await open('restart:'), [quota({ unit: 'resultBytes', limit: 100 })], unhurried)
    t.equal(await after.call(), 'QUOTA_EXCEEDED')
  })

  await t.test('keys: have the prefix, share one slot, do not contain the user, and expire', async (t) => {
    const quotas = [
      quota(),
      quota({ name: 'g', per: 'group', window: 'month' }),
      quota({ name: 's', per: 'server' }),
    ]
    const now = () => Date.parse('2026-11-23T23:00:00Z')
    const { call } = quotasOn(await open('keys:'), quotas, { ...unhurried, now })
    await call({}, callerOf('ada', { groups: ['dev'] }))
    const keys = redis.cli('keys', 'keys:*').split('\n').sort()
    t.strictSame(
      keys.map((key) => key.replace(/[\w-]{43}$/, 'HASH')),
      [
        'keys:quota:{team:front}:g:group:calls:2026-11:HASH',
        'keys:quota:{team:front}:q:user:calls:2026-11-23:HASH',
        'keys:quota:{team:front}:s:server:calls:2026-11-23:all',
      ],
    )
    t.notMatch(keys.join(), /ada|dev|idp/)
    const life = Number(redis.cli('pttl', keys[1] ?? ''))
    t.ok(life > 3_600_000 && life <= 2 * 3_600_000, `${life} ms: an hour longer than its day`)
  })

  await t.test('one round trip per call, and a second one if an amount is added afterwards', async (t) => {
    const store = await open('trips:')
    let trips = 0
    const counting = (inner: Store): Store => ({
      ...inner,
      namespace: (prefix) => counting(inner.namespace(prefix)),
      count(counters) {
        trips++
        return inner.count(counters)
      },
    })
    const many = Array.from({ length: 5 }, (_, i) => quota({ name: `q${i}`, limit: 100 }))
    const calls = quotasOn(counting(store), many, unhurried)
    await calls.call({ bytes: 5 })
    await calls.settled()
    t.equal(trips, 1)
    const bytes = quotasOn(counting(store), [...many, quota({ unit: 'resultBytes', limit: 100 })], unhurried)
    await bytes.call({ bytes: 5 })
    await bytes.settled()
    t.equal(trips, 3)
    t.equal(await quotasOn(counting(store), [], unhurried).reserve(), undefined)
    t.equal(trips, 3)
  })
})

t.test('cluster: all counters of a call are in one slot', { skip: missingRedis }, async (t) => {
  const cluster = await startRedisCluster()
  t.teardown(() => cluster.stop())
  const open = opener(t, { addr: cluster.nodes[0]?.addr ?? '', clusterMode: true })
  const quotas = [
    quota({ limit: 3 }),
    quota({ name: 'g', per: 'group', limit: 100 }),
    quota({ name: 's', per: 'server', window: 'month', limit: 100 }),
  ]
  const caller = callerOf('ada', { groups: Array.from({ length: 20 }, (_, i) => `group ${i}`) })
  for (const prefix of ['plain:', 'tagged:{mine}:']) {
    const [a, b] = await Promise.all([open(prefix), open(prefix)])
    const one = quotasOn(a, quotas, unhurried)
    const two = quotasOn(b, quotas, unhurried)
    t.equal(await one.call({}, caller), undefined)
    t.equal(await two.call({}, caller), undefined)
    t.equal(await two.call({ sent: false }, caller), undefined)
    await two.settled()
    t.equal(await one.call({}, caller), undefined)
    t.equal(await two.call({}, caller), 'QUOTA_EXCEEDED')
    t.notOk([...one.kinds(), ...two.kinds()].includes('fail_open'))
  }
})

t.test(
  'outage: calls continue uncounted and are reported, and quotas work again once Redis is back',
  { skip: missingRedis },
  async (t) => {
    const redis = await startRedis()
    t.teardown(() => redis.stop())
    const store = await opener(t, { addr: redis.addr })('outage:')
    let now = Date.parse('2026-11-23T10:00:00Z')
    const { call, events, kinds } = quotasOn(store, [quota({ limit: 1 })], {
      now: () => now,
      timeoutMs: 2_000,
    })
    t.equal(await call(), undefined)
    t.equal(await call(), 'QUOTA_EXCEEDED')
    events.length = 0
    redis.freeze()
    t.equal(await call(), undefined)
    t.same(kinds(), ['store_down', 'store_error', 'fail_open'])
    t.equal(await call(), undefined, 'the next call does not wait for it')
    redis.thaw()
    await until(async () => {
      now += 1_001
      return (await call()) === 'QUOTA_EXCEEDED'
    })
    t.ok(kinds().includes('store_up'))
  },
)
