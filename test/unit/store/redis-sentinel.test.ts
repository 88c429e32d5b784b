import t from 'tap'
import { GatehouseError } from '../../../schemas/index.ts'
import { makeRedisStore } from '../../../runtime/store/index.ts'
import { makeCertificates, missingRedisTls, startRedisSentinel, until } from '../../helpers/redis.ts'
import { storeContract } from './contract.ts'
import { proves } from '../../helpers/proves.ts'

proves(
  '2.storage.redis.sentinelConfig',
  '2.storage.redis.sentinelTls',
  '2.storage.redis.sentinelTls.insecureSkipVerify',
  '2.storage.redis.sentinelConfig.masterName',
  '2.storage.redis.sentinelConfig.sentinelAddrs',
  '2.storage.redis.sentinelTls.caCertSecretRef',
)

const pass = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms + 5))

t.test(
  'redis sentinel: the contract, with separate TLS settings for nodes and Sentinels',
  { skip: missingRedisTls },
  async (t) => {
    const [tls, sentinelTls] = [makeCertificates(), makeCertificates()]
    const auth = { password: 'secret' }
    const group = await startRedisSentinel({ tls, sentinelTls, auth })
    const addrs = group.sentinels.map((sentinel) => sentinel.addr)
    const config = { sentinel: { masterName: group.masterName, addrs }, keyPrefix: 'p:', ...auth }
    const store = makeRedisStore({ ...config, tls: { ca: tls.ca }, sentinelTls: { ca: sentinelTls.ca } })
    const swapped = makeRedisStore({
      ...config,
      tls: { ca: sentinelTls.ca },
      sentinelTls: { ca: tls.ca },
      writeTimeoutMs: 300,
    })
    const careless = makeRedisStore({
      ...config,
      tls: { insecureSkipVerify: true },
      sentinelTls: { insecureSkipVerify: true },
    })
    t.teardown(() => careless.close())
    t.teardown(async () => {
      await store.close()
      await swapped.close()
      await group.stop()
      tls.remove()
      sentinelTls.remove()
    })
    storeContract(t, () => ({ store, pass }))
    await t.resolves(careless.ping(), 'verification can be switched off, for each connection')
    await t.rejects(swapped.ping(), { code: 'STORE_DOWN' }, 'each CA is valid only for its own connections')
  },
)

t.test(
  'redis sentinel: after the master stops, writes go to its successor',
  { skip: missingRedisTls },
  async (t) => {
    const group = await startRedisSentinel({ auth: { username: 'gatehouse', password: 'secret' } })
    const changes: boolean[] = []
    const store = makeRedisStore(
      {
        sentinel: { masterName: group.masterName, addrs: group.sentinels.map((sentinel) => sentinel.addr) },
        keyPrefix: 'p:',
        username: 'gatehouse',
        password: 'secret',
        readTimeoutMs: 500,
        writeTimeoutMs: 500,
      },
      { onChange: ({ up }) => changes.push(up) },
    )
    t.teardown(async () => {
      await store.close()
      await group.stop()
    })
    // A store that is briefly down throws, even while the first connection is opened on a busy machine.
    const write = async (value: string): Promise<boolean> => {
      try {
        return await store.set('key', value)
      } catch (error) {
        if (!(error instanceof GatehouseError && error.code === 'STORE_DOWN')) throw error
        return false
      }
    }
    await until(() => write('before'))
    await until(() => group.replica.cli('get', 'p:key') === 'before')
    await group.master.stop()
    await until(() => write('after'))
    t.equal(group.replica.cli('get', 'p:key'), 'after')
    t.equal(changes.at(-1) ?? true, true, 'the last report is that the store is back')
  },
)
