/**
 * The server on a real Redis: two replicas act as one server, stored data is unreadable, and an outage ends cleanly.
 */
import { createServer } from 'node:http'
import { decodeJwt } from 'jose'
import t from 'tap'
import { Exchange, makeCaller } from '../../../../runtime/net/index.ts'
import { makeRedisStore } from '../../../../runtime/store/index.ts'
import {
  authorizeUrl,
  login,
  pkce,
  redeem,
  redirectUri,
  refresh,
  refusal,
  registerClient,
  type Rig,
  startAuthServer,
  tokensOf,
  upstreamSecret,
} from '../../../helpers/authserver/authserver.ts'
import { Browser } from '../../../helpers/authserver/cookie-browser.ts'
import { missingRedis, startRedis, startRedisCluster, until } from '../../../helpers/redis.ts'
import { proves } from '../../../helpers/proves.ts'

proves(
  '2.storage.type',
  '2.storage.redis',
  '2.storage.redis.addr',
  '2.storage.redis.aclUserConfig.usernameSecretRef',
)
proves(
  '2.storage.redis.aclUserConfig.passwordSecretRef',
  '2.embeddedAuthServer.storage',
  '2.limit.store-timeouts',
)

const keyPrefix = 'gh:auth:{ns:name}:'
const auth = { username: 'gatehouse', password: 'secret' }

/** Another process with the same store. Its routes are served on their own port. */
async function serve(rig: Rig): Promise<{ url: string; close: () => void }> {
  const host = createServer((req, res) => {
    const exchange = new Exchange(req, res)
    void rig.server.routes(exchange.path)?.(exchange)
  })
  await new Promise<void>((resolve) => host.listen(0, '127.0.0.1', resolve))
  const address = host.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return { url: `http://127.0.0.1:${port}`, close: () => void host.close() }
}

t.test(
  'redis: a login that starts on one replica can be finished, redeemed and refreshed on other replicas',
  { skip: missingRedis },
  async (t) => {
    const redis = await startRedis({ auth, keys: `${keyPrefix}*` })
    const store = makeRedisStore({ addr: redis.addr, keyPrefix, ...auth })
    t.teardown(async () => {
      await store.close()
      await redis.stop()
    })
    const rig = await startAuthServer(t, { store })
    const other = await rig.replica()
    const second = await serve(other)
    t.teardown(second.close)

    const done = await login(rig)
    const form = {
      grant_type: 'authorization_code',
      code: done.code,
      code_verifier: done.verifier,
      client_id: done.clientId,
      redirect_uri: redirectUri,
    }
    const redeemed = await fetch(`${second.url}/oauth/token`, {
      method: 'POST',
      body: new URLSearchParams(form),
    })
    const tokens = await tokensOf(redeemed)
    const again = await Promise.all(
      [rig.issuer, second.url, rig.issuer, second.url].map((url) =>
        fetch(`${url}/oauth/token`, {
          method: 'POST',
          body: new URLSearchParams({
            grant_type: 'refresh_token',
            refresh_token: tokens.refresh_token,
            client_id: done.clientId,
          }),
        }).then(tokensOf),
      ),
    )
    t.equal(
      new Set(again.map((one) => one.refresh_token)).size,
      1,
      'one successor, whichever replica rotated',
    )
    const claims = decodeJwt(again[1]?.access_token ?? '')
    const caller = makeCaller({ issuer: rig.issuer, subject: claims.sub ?? '', claims })
    t.ok((await other.server.upstreamTokens.get(caller))?.accessToken)
    t.equal(
      await refusal(await redeem(rig, done)),
      '400 invalid_grant',
      'the code was used on the other replica',
    )
    // Another replica may use its cached state for five seconds.
    other.pass(5_000)
    t.equal(await other.server.isLive(caller), false, 'and its reuse ended the grant on every replica')
  },
)

t.test(
  "redis cluster: a complete login works with an ACL limited to the server's own keys",
  { skip: missingRedis },
  async (t) => {
    const own = '{gatehouse:authserver:virtualmcpserver:team:door:}'
    const cluster = await startRedisCluster({ auth, keys: `${own}*` })
    const store = makeRedisStore({
      addr: cluster.nodes[0]?.addr ?? '',
      clusterMode: true,
      keyPrefix: own,
      ...auth,
    })
    t.teardown(async () => {
      await store.close()
      await cluster.stop()
    })
    const rig = await startAuthServer(t, { store })
    const done = await login(rig)
    const tokens = await tokensOf(await redeem(rig, done))
    t.match(await tokensOf(await refresh(rig, done.clientId, tokens.refresh_token)), {
      refresh_token: /^gh_rt_/,
    })
  },
)

t.test(
  'redis: stored data contains no usable secret, and every key expires',
  { skip: missingRedis },
  async (t) => {
    const redis = await startRedis()
    const store = makeRedisStore({ addr: redis.addr, keyPrefix })
    t.teardown(async () => {
      await store.close()
      await redis.stop()
    })
    const rig = await startAuthServer(t, {
      store,
      config: { registration: { enabled: true, confidentialClients: true } },
    })
    const waiting = await new Browser().open(
      authorizeUrl(rig, {
        client_id: await registerClient(rig),
        code_challenge: pkce().challenge,
        state: 'client-state-value',
      }),
    )
    const done = await login(rig, {
      redirect_uri: 'https://app.example.com/cb',
      client_id: await registerClient(rig, { redirect_uris: ['https://app.example.com/cb'] }),
    })
    const tokens = await tokensOf(await redeem(rig, done, { redirect_uri: 'https://app.example.com/cb' }))
    const claims = decodeJwt(tokens.access_token)
    const caller = makeCaller({ issuer: rig.issuer, subject: claims.sub ?? '', claims })
    const upstream = await rig.server.upstreamTokens.get(caller)

    const keys = redis.cli('keys', '*').split('\n')
    const dump = keys.map((key) => `${key} ${redis.cli('get', key)}`).join('\n')
    t.ok(keys.length > 8)
    t.ok(keys.every((key) => key.startsWith(keyPrefix)))
    const secrets = {
      code: done.code,
      'code id': done.code.slice(6, 49),
      'access token': tokens.access_token,
      'refresh token': tokens.refresh_token,
      family: tokens.refresh_token.slice(6, 49),
      session: String(claims['tsid']),
      'upstream access token': upstream?.accessToken ?? '',
      'upstream ID token': upstream?.idToken ?? '',
      'upstream secret': upstreamSecret,
      handle: waiting.url.searchParams.get('request') ?? '',
      state: 'client-state-value',
      browser: [...done.browser.cookies(rig.issuer).values()].join().slice(0, 43),
      person: 'alice@example.test',
      client: 'app.example.com',
    }
    for (const [name, secret] of Object.entries(secrets)) {
      t.ok(secret.length > 8, name)
      t.notOk(dump.includes(secret), `the ${name} is not readable`)
    }
    for (const key of keys) t.ok(Number(redis.cli('pttl', key)) > 0, `${key} expires`)
  },
)

t.test(
  'redis: during an outage clients get 503 with Retry-After and users get a page',
  { skip: missingRedis },
  async (t) => {
    const redis = await startRedis()
    const store = makeRedisStore({ addr: redis.addr, keyPrefix, readTimeoutMs: 200, writeTimeoutMs: 200 })
    t.teardown(() => store.close())
    const rig = await startAuthServer(t, { store })
    const done = await login(rig)
    const tokens = await tokensOf(await redeem(rig, done))
    const claims = decodeJwt(tokens.access_token)
    const caller = makeCaller({ issuer: rig.issuer, subject: claims.sub ?? '', claims })
    await redis.stop()

    const refused = await refresh(rig, done.clientId, tokens.refresh_token)
    t.match(refused.headers.get('retry-after'), /^\d+$/)
    t.equal(await refusal(refused), '503 temporarily_unavailable')
    const page = await new Browser().open(
      authorizeUrl(rig, { client_id: done.clientId, code_challenge: pkce().challenge }),
    )
    t.equal(page.status, 503)
    t.match(page.text, /temporarily unavailable/)
    await t.rejects(rig.server.upstreamTokens.get(caller), { code: 'STORE_DOWN' })
    await t.rejects(rig.server.isLive(caller), { code: 'STORE_DOWN' })
    t.match(await rig.server.notReady(), [/store/])
    t.equal((await fetch(`${rig.issuer}/.well-known/jwks.json`)).status, 200, 'keys need no store')

    const again = await startRedis({ port: redis.port })
    t.teardown(() => again.stop())
    await until(async () => (await rig.server.notReady()).length === 0)
    t.match((await login(rig)).code, /^gh_ac_/)
  },
)
