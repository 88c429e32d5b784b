import t from 'tap'
import { makeRedisStore } from '../../../runtime/store/index.ts'
import { freePort } from '../../helpers/gatehouse.ts'
import { missingRedis, startRedis, until } from '../../helpers/redis.ts'
import { proves } from '../../helpers/proves.ts'

proves(
  '2.storage.redis.dialTimeout',
  '2.storage.redis.readTimeout',
  '2.storage.redis.writeTimeout',
  '2.error.exclusive.addr-sentinelConfig',
)

const short = { keyPrefix: 'p:', dialTimeoutMs: 2000, readTimeoutMs: 1000, writeTimeoutMs: 1000 }

t.test('redis outage: a server that starts later is found', { skip: missingRedis }, async (t) => {
  const port = await freePort()
  const changes: boolean[] = []
  const store = makeRedisStore(
    { addr: `127.0.0.1:${port}`, ...short },
    { onChange: ({ up }) => changes.push(up) },
  )
  t.teardown(() => store.close())
  await t.rejects(store.ping(), { code: 'STORE_DOWN', status: 503, message: 'the store is unavailable' })
  await t.rejects(store.get('key'), { code: 'STORE_DOWN', headers: { 'retry-after': '5' } })
  const redis = await startRedis({ port })
  t.teardown(() => redis.stop())
  await until(() =>
    store.ping().then(
      () => true,
      () => false,
    ),
  )
  t.same(changes, [false, true], 'reported once down, once up')
})

t.test(
  'redis outage: a server that stops causes STORE_DOWN, and is used again after its restart',
  { skip: missingRedis },
  async (t) => {
    const redis = await startRedis()
    const store = makeRedisStore({ addr: redis.addr, ...short })
    t.teardown(() => store.close())
    await store.set('key', 'v')
    await redis.stop()
    await t.rejects(store.set('key', 'w'), { code: 'STORE_DOWN' })
    await t.rejects(store.swap('key', undefined, 'w'), { code: 'STORE_DOWN' })
    const again = await startRedis({ port: redis.port })
    t.teardown(() => again.stop())
    await until(() =>
      store.ping().then(
        () => true,
        () => false,
      ),
    )
    t.equal(await store.set('key', 'x'), true)
  },
)

t.test(
  'redis outage: a server that does not respond to commands is dropped',
  { skip: missingRedis },
  async (t) => {
    const redis = await startRedis()
    const store = makeRedisStore({ addr: redis.addr, ...short })
    t.teardown(async () => {
      await store.close()
      await redis.stop()
    })
    await store.set('key', 'v')
    redis.freeze()
    await t.rejects(store.get('key'), { code: 'STORE_DOWN' })
    await t.rejects(store.get('key'), { code: 'STORE_DOWN' })
    redis.thaw()
    await until(() =>
      store.ping().then(
        () => true,
        () => false,
      ),
    )
    t.equal(await store.get('key'), 'v')
  },
)

t.test(
  'redis outage: a command that failed is not sent after the server returns',
  { skip: missingRedis },
  async (t) => {
    const redis = await startRedis()
    const store = makeRedisStore({ addr: redis.addr, ...short })
    t.teardown(() => store.close())
    await store.ping()
    await redis.stop()
    // Commands in quick succession share the signal that drops them.
    const late = ['a', 'b', 'c'].map((key) => t.rejects(store.set(key, 'late'), { code: 'STORE_DOWN' }))
    await Promise.all(late)
    const again = await startRedis({ port: redis.port })
    t.teardown(() => again.stop())
    await until(() =>
      store.ping().then(
        () => true,
        () => false,
      ),
    )
    for (const key of ['a', 'b', 'c']) t.equal(await store.get(key), undefined)
  },
)

t.test(
  'redis: a thousand commands at once succeed, and Node reports no leak',
  { skip: missingRedis },
  async (t) => {
    const redis = await startRedis()
    const store = makeRedisStore({ addr: redis.addr, ...short })
    t.teardown(async () => {
      await store.close()
      await redis.stop()
    })
    const warnings: Error[] = []
    const onWarning = (warning: Error): void => void warnings.push(warning)
    process.on('warning', onWarning)
    t.teardown(() => void process.off('warning', onWarning))
    const keys = Array.from({ length: 1_000 }, (_, i) => `key-${i}`)
    t.ok((await Promise.all(keys.map((key) => store.set(key, key)))).every(Boolean))
    t.same(await Promise.all(keys.map((key) => store.get(key))), keys)
    t.same(warnings, [])
  },
)

t.test('redis outage: a closed store rejects commands at once', { skip: missingRedis }, async (t) => {
  const store = makeRedisStore({ addr: `127.0.0.1:${await freePort()}`, ...short })
  await store.close()
  await t.rejects(store.get('key'), { code: 'STORE_DOWN' })
})

t.test('redis config: every error is reported at once, without passwords', async (t) => {
  const config = { clusterMode: true, db: 2, sentinelTls: {}, username: 'u', keyPrefix: 'p:' }
  t.throws(() => makeRedisStore(config), {
    code: 'INVALID_CONFIG',
    message:
      /one of addr and sentinelConfig.*clusterMode requires addr.*db cannot.*sentinelTls requires.*username/,
  })
  const both = { addr: 'nonsense', sentinel: { masterName: 'm', addrs: ['[::1]:1', 'a:0'] }, keyPrefix: 'p:' }
  t.throws(() => makeRedisStore({ ...both, password: 'hunter2' }), {
    message: /exactly one of addr and sentinelConfig.*"nonsense".*"a:0"/,
  })
  t.throws(
    () => makeRedisStore({ sentinel: { masterName: 'm', addrs: [] }, keyPrefix: '' }),
    /requires an address/,
  )
})
