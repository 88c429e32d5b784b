import { readFileSync } from 'node:fs'
import t from 'tap'
import { makeRedisStore } from '../../../runtime/store/index.ts'
import { makeCertificates, missingRedis, missingRedisTls, startRedisCluster } from '../../helpers/redis.ts'
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
  await t.test(
    'redis cluster: a prefix without a hash tag gets one, so that all keys share a slot',
    async (t) => {
      await store.set('one', '1')
      await store.set('two', '2')
      const holders = cluster.nodes.filter((node) => node.cli('keys', 'gh:auth:ns:name:*') !== '')
      t.equal(holders.length, 1)
      t.equal(cluster.nodes.flatMap((node) => node.cli('keys', '{*').split('\n')).join(''), '')
    },
  )
})

t.test('redis cluster: a prefix with a hash tag is not changed', { skip: missingRedisTls }, async (t) => {
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

/** Returns the ACL that the documentation contains for a cluster, with `|` unescaped. */
function documentedAcl(): string {
  const page = readFileSync('docs/guides/authorization-server.md', 'utf8')
  const [, commands] = /^\| cluster \| `~<key prefix>\* ([^`]+)` \|$/m.exec(page) ?? []
  if (commands === undefined) throw new Error('the page prints no ACL for a cluster')
  return commands.replaceAll('\\|', '|')
}

const prefixes = {
  'as the hooks write it': '{gatehouse:authserver:virtualmcpserver:team:door:}',
  'with a hash tag inside': 'gh:auth:{ns:name}:',
  'without a hash tag': 'gh:auth:ns:name:',
  'with a brace that is not closed': 'gh:{auth:',
}

t.test('redis cluster: the documented ACL suffices for each prefix', { skip: missingRedis }, async (t) => {
  const auth = { username: 'gatehouse', password: 'secret' }
  const cluster = await startRedisCluster({ auth, commands: documentedAcl() })
  t.teardown(() => cluster.stop())
  for (const [what, keyPrefix] of Object.entries(prefixes)) {
    await t.test(`a prefix ${what}`, async (t) => {
      for (const node of cluster.nodes)
        node.cli('acl', 'setuser', auth.username, 'resetkeys', `~${keyPrefix}*`)
      const addr = cluster.nodes[2]?.addr ?? ''
      const store = makeRedisStore({ addr, clusterMode: true, keyPrefix, ...auth })
      t.teardown(() => store.close())
      storeContract(t, () => ({ store, pass }))
    })
  }
})

t.test('redis cluster: a prefix that cannot be extended with a tag is rejected', async (t) => {
  t.throws(() => makeRedisStore({ addr: '127.0.0.1:1', clusterMode: true, keyPrefix: 'gh:{}:' }), {
    code: 'INVALID_CONFIG',
    message: /keyPrefix must not contain an empty hash tag/,
  })
})
