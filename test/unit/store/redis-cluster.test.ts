import t from 'tap'
import { makeRedisStore } from '../../../runtime/store/index.ts'
import { makeCertificates, missingRedisTls, startRedisCluster } from '../../helpers/redis.ts'
import { storeContract } from './contract.ts'
import { proves } from '../../helpers/proves.ts'

proves('2.storage.redis.clusterMode', '2.storage.redis.tls', '2.storage.redis.tls.caCertSecretRef')

const pass = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms + 5))

t.test('redis cluster: the contract, over TLS with a password', { skip: missingRedisTls }, async (t) => {
  const tls = makeCertificates()
  const auth = { password: 'secret' }
  const cluster = await startRedisCluster({ tls, auth })
  const [first] = cluster.nodes
  const store = makeRedisStore({
    addr: first?.addr ?? '',
    clusterMode: true,
    keyPrefix: 'gh:auth:ns:name:',
    tls: { ca: tls.ca },
    ...auth,
  })
  t.teardown(async () => {
    await store.close()
    await cluster.stop()
    tls.remove()
  })
  storeContract(t, () => ({ store, pass }))
  await t.test('a prefix without a hash tag becomes one, so that all keys share a slot', async (t) => {
    await store.set('one', '1')
    await store.set('two', '2')
    const holders = cluster.nodes.filter((node) => node.cli('keys', '{gh:auth:ns:name:}*') !== '')
    t.equal(holders.length, 1)
  })
})

t.test('redis cluster: a prefix with a hash tag stays as it is', { skip: missingRedisTls }, async (t) => {
  const cluster = await startRedisCluster()
  const store = makeRedisStore({
    addr: cluster.nodes[1]?.addr ?? '',
    clusterMode: true,
    keyPrefix: 'gh:{ns:name}:',
  })
  t.teardown(async () => {
    await store.close()
    await cluster.stop()
  })
  t.equal(await store.set('key', 'v'), true)
  const found = cluster.nodes.map((node) => node.cli('keys', '*')).filter(Boolean)
  t.same(found, ['gh:{ns:name}:key'])
})
