import t from 'tap'
import { makeRedisStore, type Store } from '../../../runtime/store/index.ts'
import { makeCertificates, missingRedis, missingRedisTls, startRedis } from '../../helpers/redis.ts'
import { storeContract } from './contract.ts'
import { proves } from '../../helpers/proves.ts'

proves(
  '2.storage.redis.addr',
  '2.storage.redis.tls',
  '2.storage.redis.tls.insecureSkipVerify',
  '2.storage.redis.sentinelConfig.db',
  '2.storage.redis.aclUserConfig.usernameSecretRef',
)

const pass = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms + 5))

t.test(
  'redis standalone: the contract, with an ACL user that has only the required permissions',
  { skip: missingRedis },
  async (t) => {
    const auth = { username: 'gatehouse', password: 'pass word"\'' }
    const redis = await startRedis({ auth, keys: 'gh:auth:{ns:name}:*' })
    const store = makeRedisStore({ addr: redis.addr, keyPrefix: 'gh:auth:{ns:name}:', ...auth })
    t.teardown(async () => {
      await store.close()
      await redis.stop()
    })
    storeContract(t, () => ({ store, pass }))
  },
)

t.test(
  'redis standalone: password-only AUTH over TLS, another database',
  { skip: missingRedisTls },
  async (t) => {
    const tls = makeCertificates()
    const redis = await startRedis({ auth: { password: 'secret' }, tls })
    const stores: Store[] = []
    t.teardown(async () => {
      for (const store of stores) await store.close()
      await redis.stop()
      tls.remove()
    })
    const open = (more: object): Store => {
      const store = makeRedisStore({
        addr: redis.addr,
        password: 'secret',
        keyPrefix: 'p:',
        ...more,
      })
      stores.push(store)
      return store
    }
    /** Waits only briefly, because no attempt succeeds. */
    const failedPing = (more: object) => open({ writeTimeoutMs: 300, ...more }).ping()
    const good = open({ tls: { ca: tls.ca }, db: 3 })
    await good.set('key', 'v')
    t.equal(redis.cli('-n', '3', 'get', 'p:key'), 'v', 'in the configured database')

    await t.resolves(open({ tls: { insecureSkipVerify: true } }).ping(), 'verification can be switched off')
    await t.rejects(failedPing({ tls: {} }), { code: 'STORE_DOWN' }, 'an unknown CA is rejected')
    await t.rejects(failedPing({}), { code: 'STORE_DOWN' }, 'plaintext to a TLS port is an outage')
    await t.rejects(failedPing({ tls: { ca: tls.ca }, password: 'wrong' }), { code: 'STORE_DOWN' })
  },
)

t.test('redis standalone: a flushed script cache is filled again', { skip: missingRedis }, async (t) => {
  const redis = await startRedis()
  const store = makeRedisStore({ addr: redis.addr, keyPrefix: 'p:' })
  t.teardown(async () => {
    await store.close()
    await redis.stop()
  })
  t.equal(await store.swap('key', undefined, 'a'), true)
  redis.cli('script', 'flush')
  t.equal(await store.swap('key', await store.read('key'), 'b'), true)
})

t.test(
  'redis standalone: a server without memory rejects writes as STORE_FULL',
  { skip: missingRedis },
  async (t) => {
    const redis = await startRedis({ args: ['--maxmemory-policy', 'noeviction'] })
    const store = makeRedisStore({ addr: redis.addr, keyPrefix: 'p:' })
    t.teardown(async () => {
      await store.close()
      await redis.stop()
    })
    await store.set('key', 'v')
    redis.cli('config', 'set', 'maxmemory', '1')
    await t.rejects(store.set('other', 'v'), { code: 'STORE_FULL' })
    await t.rejects(store.swap('key', await store.read('key'), 'w'), { code: 'STORE_FULL' })
    t.equal(await store.get('key'), 'v')
  },
)
