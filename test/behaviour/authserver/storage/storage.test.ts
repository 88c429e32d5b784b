/**
 * Runs the same tests on every storage, with real Redis processes: a one-time operation succeeds once under concurrency
 * on any replica, and ended sessions stay ended.
 */
import t, { type Test } from 'tap'
import { makeState } from '../../../../runtime/authserver/storage/state.ts'
import { Sessions } from '../../../../runtime/authserver/tokens/sessions.ts'
import {
  makeMemoryStore,
  makeRedisStore,
  type RedisStoreConfig,
  type Store,
} from '../../../../runtime/store/index.ts'
import {
  authorizeUrl,
  login,
  pkce,
  redeem,
  refresh,
  refusal,
  registerClient,
  startAuthServer,
  tokensOf,
} from '../../../helpers/authserver/authserver.ts'
import { Browser } from '../../../helpers/authserver/cookie-browser.ts'
import { proves } from '../../../helpers/proves.ts'
import {
  makeCertificates,
  missingRedisTls,
  startRedis,
  startRedisCluster,
  startRedisSentinel,
} from '../../../helpers/redis.ts'

proves('2.embeddedAuthServer.storage', '2.storage.type', '2.storage.redis', '2.storage.redis.clusterMode')
proves('2.storage.redis.sentinelConfig', '2.storage.redis.tls', '2.storage.redis.sentinelTls')
t.setTimeout(900_000)

/** A slow machine must not look like an outage. These tests do not cover the Redis timeouts. */
const unhurried = { dialTimeoutMs: 120_000, readTimeoutMs: 120_000, writeTimeoutMs: 120_000 }

const password = 'secret'
const acl = { username: 'gatehouse', password }
const keyPrefix = 'gh:auth:{ns:name}:'

interface Running {
  readonly config: Omit<RedisStoreConfig, 'keyPrefix'>
  readonly stop: () => Promise<void>
}

/** A storage variant: how it starts and how to connect to it. */
const variants: Readonly<Record<string, (t: Test) => Promise<Running>>> = {
  async 'standalone, no password'() {
    const redis = await startRedis()
    return { config: { addr: redis.addr }, stop: redis.stop }
  },
  async 'standalone, password only'() {
    const redis = await startRedis({ auth: { password } })
    return { config: { addr: redis.addr, password }, stop: redis.stop }
  },
  async 'standalone, ACL user with the least rights'() {
    const redis = await startRedis({ auth: acl, keys: `${keyPrefix}*` })
    return { config: { addr: redis.addr, ...acl }, stop: redis.stop }
  },
  async 'standalone, TLS'(t) {
    const tls = certificates(t)
    const redis = await startRedis({ auth: acl, tls })
    return { config: { addr: redis.addr, ...acl, tls: { ca: tls.ca } }, stop: redis.stop }
  },
  async 'cluster, ACL user'() {
    const cluster = await startRedisCluster({ auth: acl, keys: `${keyPrefix}*` })
    return { config: { addr: cluster.nodes[0]?.addr ?? '', clusterMode: true, ...acl }, stop: cluster.stop }
  },
  async 'cluster, TLS'(t) {
    const tls = certificates(t)
    const cluster = await startRedisCluster({ auth: { password }, tls })
    const addr = cluster.nodes[2]?.addr ?? ''
    return { config: { addr, clusterMode: true, password, tls: { ca: tls.ca } }, stop: cluster.stop }
  },
  async 'sentinel, ACL user'() {
    const group = await startRedisSentinel({ auth: acl })
    return { config: { sentinel: sentinelOf(group), ...acl }, stop: group.stop }
  },
  async 'sentinel, TLS to nodes and sentinels'(t) {
    const [tls, sentinelTls] = [certificates(t), certificates(t)]
    const group = await startRedisSentinel({ auth: { password }, tls, sentinelTls })
    const trust = { tls: { ca: tls.ca }, sentinelTls: { ca: sentinelTls.ca } }
    return { config: { sentinel: sentinelOf(group), password, ...trust }, stop: group.stop }
  },
}

function certificates(t: Test) {
  const made = makeCertificates()
  t.teardown(() => made.remove())
  return made
}

function sentinelOf(group: Awaited<ReturnType<typeof startRedisSentinel>>) {
  return { masterName: group.masterName, addrs: group.sentinels.map(({ addr }) => addr) }
}

/** `open` opens another connection to the same records. */
async function suite(t: Test, open: () => Store): Promise<void> {
  const rig = await startAuthServer(t, { store: open() })
  const others = await Promise.all([rig.replica(), rig.replica()])
  const clientId = await registerClient(rig)

  await t.test('only one of many responses to a login succeeds', async (t) => {
    const browser = new Browser()
    const page = await browser.open(
      authorizeUrl(rig, { client_id: clientId, code_challenge: pkce().challenge }),
    )
    const atProvider = await browser.press(page, 'approve', rig.provider.issuer)
    const back = await browser.open(atProvider.url, `${rig.issuer}/oauth/callback`)
    const responses = await Promise.all(Array.from({ length: 6 }, () => browser.request(back.url)))
    t.same(
      responses.map(({ status }) => status).toSorted((a, b) => a - b),
      [303, 400, 400, 400, 400, 400],
    )
  })

  await t.test(
    'only one of many redemptions of a code succeeds, and then the grant is revoked',
    async (t) => {
      const done = await login(rig, { client_id: clientId })
      const responses = await Promise.all(Array.from({ length: 12 }, () => redeem(rig, done)))
      const good = responses.filter(({ status }) => status === 200)
      t.ok(good.length <= 1, `${good.length} succeeded`)
      for (const response of responses) {
        if (response.status !== 200) t.equal(await refusal(response), '400 invalid_grant')
      }
      t.ok(rig.events.some(({ type }) => type === 'code_reused'))
      for (const response of good) {
        const tokens = await tokensOf(response)
        t.equal(await refusal(await refresh(rig, clientId, tokens.refresh_token)), '400 invalid_grant')
      }
    },
  )

  await t.test(
    'simultaneous refreshes all get the same successor, and an old token revokes the family',
    async (t) => {
      const done = await login(rig, { client_id: clientId })
      const first = await tokensOf(await redeem(rig, done))
      const responses = await Promise.all(
        Array.from({ length: 12 }, () => refresh(rig, clientId, first.refresh_token).then(tokensOf)),
      )
      const successors = new Set(responses.map((tokens) => tokens.refresh_token))
      t.equal(successors.size, 1)
      for (const replica of [rig, ...others]) replica.pass(61_000)
      t.equal(await refusal(await refresh(rig, clientId, first.refresh_token)), '400 invalid_grant')
      const [successor = ''] = successors
      t.equal(await refusal(await refresh(rig, clientId, successor)), '400 invalid_grant')
    },
  )

  await t.test('simultaneous logins on several replicas share one session', async (t) => {
    const secret = new Uint8Array(32).fill(1)
    const replicas = Array.from(
      { length: 3 },
      () => new Sessions({ state: makeState(open(), () => [secret]), now: Date.now }),
    )
    const alice = { userId: 'alice', authTimeSec: 0 }
    const opened = await Promise.all(
      [...replicas, ...replicas, ...replicas].map((sessions) =>
        sessions.open({
          user: alice,
          clientId: 'https://notes.example/client',
          obtained: [],
          endsAtMs: Date.now() + 600_000,
        }),
      ),
    )
    const ids = new Set(opened.map(({ sessionId }) => sessionId))
    t.equal(ids.size, 1)
    const listed = (await replicas[0]?.of('alice')) ?? []
    t.same(
      listed.map(({ id, grants }) => [id, grants.length]),
      [...ids].map((id) => [id, 9]),
    )
  })

  await t.test('a revocation on one replica takes effect on all replicas', async (t) => {
    const done = await login(rig, { client_id: clientId })
    const tokens = await tokensOf(await redeem(rig, done))
    const body = new URLSearchParams({ token: tokens.refresh_token, client_id: clientId })
    t.equal((await fetch(`${rig.issuer}/oauth/revoke`, { method: 'POST', body })).status, 200)
    const info = await fetch(`${rig.issuer}/oauth/userinfo`, {
      headers: { authorization: `Bearer ${tokens.access_token}` },
    })
    t.equal(info.status, 401)
    t.same(await Promise.all(others.map(({ server }) => server.notReady())), [[], []])
  })
}

t.test('storage: memory', async (t) => {
  const store = makeMemoryStore()
  await suite(t, () => store)
})

for (const [name, start] of Object.entries(variants)) {
  t.test(`storage: ${name}`, { skip: missingRedisTls, timeout: 600_000 }, async (t) => {
    const { config, stop } = await start(t)
    const stores: Store[] = []
    t.teardown(async () => {
      await Promise.all(stores.map((store) => store.close()))
      await stop()
    })
    await suite(t, () => {
      const store = makeRedisStore({ ...config, ...unhurried, keyPrefix })
      stores.push(store)
      return store
    })
  })
}
