/**
 * The rotation of HMAC secrets from end to end: everything that is stored survives the loss of the old secret, whether it
 * was used in between or not, one replica does the work, and it is known when the old secret can be dropped.
 */
import { randomBytes } from 'node:crypto'
import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import { type Rotation, watchRotation } from '../../../../runtime/authserver/storage/rotation.ts'
import { makeState, type Repository, type State } from '../../../../runtime/authserver/storage/state.ts'
import { resolveProxyConfig } from '../../../../runtime/config/index.ts'
import { makeCaller, silentLog } from '../../../../runtime/net/index.ts'
import { runProxy } from '../../../../runtime/proxy/index.ts'
import { makeMemoryStore, makeRedisStore, type Store } from '../../../../runtime/store/index.ts'
import { startVmcp } from '../../../../runtime/vmcp/index.ts'
import {
  Browser,
  keepingLog,
  login,
  redeem,
  refresh,
  refusal,
  registerClient,
  type Rig,
  startAuthServer,
  tokensOf,
} from '../../../helpers/authserver/authserver.ts'
import { freePort } from '../../../helpers/gatehouse.ts'
import { startLoopback } from '../../../helpers/loopback.ts'
import { upstream } from '../../../helpers/authserver/oauth2-peer.ts'
import { proves } from '../../../helpers/proves.ts'
import { startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { missingRedis, startRedis, startRedisCluster, until } from '../../../helpers/redis.ts'
import { vmcpConfig } from '../../../helpers/vmcp/vmcp.ts'

proves('2.embeddedAuthServer.hmacSecretRefs')

const [h1, h2, h3] = [randomBytes(32), randomBytes(48), randomBytes(32)]
const minute = 60_000

const request = {
  clientId: 'c',
  clientKind: 'dcr',
  redirectUri: 'https://a.example/cb',
  redirectGiven: true,
  codeChallenge: 'x',
  scopes: ['openid'],
  resources: [],
  refreshable: true,
  prompt: [],
} as const
const grant = { ...request, grantId: 'g', sessionId: 's', userId: 'u', authTimeSec: 1 } as const
const user = { userId: 'u', authTimeSec: 1 }
const tokens = { provider: 'p', subject: 'x', accessToken: 'at', obtainedAtMs: 1 }
const leg = { provider: 'p', codeVerifier: 'v', nonce: 'n', browser: 'b' }
const waiting = { request, chosen: ['p'], browser: 'b', obtained: [tokens] }

/** A valid record for every repository; the compiler knows when one is missing. */
const samples: { readonly [K in Exclude<keyof State, 'store' | 'sealed'>]: object | string } = {
  clients: {
    id: 'c',
    kind: 'dcr',
    redirectUris: ['https://a.example/cb'],
    grantTypes: ['authorization_code'],
    scopes: ['openid'],
    authMethod: 'none',
    applicationType: 'web',
    issuedAtSec: 1,
    used: true,
  },
  requests: request,
  upstreamSteps: { ...waiting, ...leg, startedAtMs: 1 },
  connections: { ...leg, sessionId: 's', userId: 'u' },
  connectedClients: { clients: ['c'] },
  confirmations: { ...waiting, user },
  codes: { ...grant, used: false, expiresAtMs: 1 },
  families: { ...grant, generation: 0, rotatedAtMs: 1, expiresAtMs: 1, endsAtMs: 1 },
  sessions: { id: 's', userId: 'u', clientId: 'c', providers: ['p'], grants: [], endsAtMs: 1 },
  links: 'session-id',
  rows: { ...tokens, userId: 'u', clientId: 'c' },
  signIns: { userId: 'u' },
  endings: { provider: 'p' },
  consents: { scopes: [], providers: [], after: '' },
  withdrawals: { id: 'w', atMs: 1 },
  registrations: { clientId: 'upstream-client' },
}

const names = Object.keys(samples) as (keyof typeof samples)[]

function repository(state: State, name: keyof typeof samples): Repository<unknown> {
  return state[name]
}

/** What of all records can be read with these secrets. */
async function readable(store: Store, secrets: readonly Uint8Array[]): Promise<readonly string[]> {
  const state = makeState(store, () => secrets)
  const found = await Promise.all(names.map((name) => repository(state, name).get('id')))
  return names.filter((_, index) => found[index] !== undefined)
}

async function writeAll(store: Store, secrets: readonly Uint8Array[]): Promise<void> {
  const state = makeState(store, () => secrets)
  for (const name of names) await repository(state, name).put('id', samples[name], 60 * minute)
}

function watch(
  t: Test,
  store: Store,
  secrets: () => readonly Uint8Array[],
  log = silentLog,
  now = Date.now,
): Rotation {
  const { sealed } = makeState(store, secrets)
  const rotation = watchRotation({ store, sealed, secrets, now, log, everyMs: 10, settled: () => true })
  t.teardown(() => rotation.close())
  return rotation
}

const stores: readonly (readonly [string, string | false, (t: Test) => Promise<Store>])[] = [
  ['memory', false, async () => makeMemoryStore()],
  [
    'redis',
    missingRedis,
    async (t) => {
      const redis = await startRedis({ auth: { username: 'gatehouse', password: 'x' }, keys: 'gh:as:*' })
      t.teardown(() => redis.stop())
      return makeRedisStore({ addr: redis.addr, keyPrefix: 'gh:as:', username: 'gatehouse', password: 'x' })
    },
  ],
  [
    'redis cluster',
    missingRedis,
    async (t) => {
      const auth = { username: 'gatehouse', password: 'x' }
      const cluster = await startRedisCluster({ auth, keys: '{gh:as:}*' })
      t.teardown(() => cluster.stop())
      const addr = cluster.nodes[1]?.addr ?? ''
      return makeRedisStore({ addr, clusterMode: true, keyPrefix: '{gh:as:}', ...auth })
    },
  ],
]

for (const [where, skip, open] of stores) {
  t.test(`${where}: every kind of record survives [H1], [H3,H1], [H3]`, { skip }, async (t) => {
    const store = await open(t)
    t.teardown(() => store.close())
    await t.test('when it was used in between', async (t) => {
      await writeAll(store, [h1])
      t.same(await readable(store, [h3, h1]), names)
      t.same(await readable(store, [h3]), names)
    })
    await t.test('when it was not', async (t) => {
      await writeAll(store, [h1])
      const { log, text } = keepingLog()
      const rotation = watch(t, store, () => [h3, h1], log)
      t.equal(rotation.uses(), undefined, 'not counted yet')
      await until(() => rotation.uses() !== undefined)
      t.same(await readable(store, [h3]), names)
      t.match(rotation.uses(), [{ position: 1, records: 0 }])
      t.match(text(), new RegExp(`sealed again under the current HMAC secret","records":${names.length}\\b`))
    })
    await t.test('and what was lost before is not taken for something that is still needed', async (t) => {
      await writeAll(store, [h2])
      const rotation = watch(t, store, () => [h1, h3])
      await until(() => rotation.uses() !== undefined)
      t.match(rotation.uses(), [{ position: 1, records: 0 }])
      t.same(await readable(store, [h1, h3]), [])
    })
  })
}

t.test('pass: one replica does it, the others have its result', async (t) => {
  const store = makeMemoryStore()
  const state = makeState(store, () => [h1])
  await Promise.all(Array.from({ length: 2_000 }, (_, n) => state.links.put(`${n}`, 'session', 60 * minute)))
  const logs = [keepingLog(), keepingLog(), keepingLog()]
  const replicas = logs.map(({ log }) => watch(t, store, () => [h3, h1], log))
  await until(() => replicas.every((rotation) => rotation.uses() !== undefined))
  const done = logs.map(({ text }) => (text().includes('sealed again under') ? 1 : 0))
  t.equal(
    done.reduce<number>((sum, one) => sum + one, 0),
    1,
  )
  t.ok(
    logs.every(({ text }) => text().includes('can be dropped')),
    'all of them say so',
  )
  const locks: string[] = []
  for await (const keys of store.scan()) locks.push(...keys.filter((key) => key.startsWith('lock:')))
  t.same(locks, [], 'the lock is given back')
})

t.test('pass: does not begin at once, and begins again when the secrets change', async (t) => {
  const nowMs = 1_000_000
  let settled = false
  let secrets = [h3, h1]
  const store = makeMemoryStore()
  await makeState(store, () => [h1]).links.put('id', 'session', 60 * minute)
  const { sealed } = makeState(store, () => secrets)
  const reads: string[] = []
  const counting: Store = {
    ...store,
    get(key) {
      reads.push(key)
      return store.get(key)
    },
  }
  const rotation = watchRotation({
    store: counting,
    sealed,
    secrets: () => secrets,
    now: () => nowMs,
    log: silentLog,
    everyMs: 5,
    settled: () => settled,
  })
  t.teardown(() => rotation.close())
  await until(() => reads.length > 3)
  t.equal(rotation.uses(), undefined, 'other replicas may not have the new secret yet')
  settled = true
  await until(() => rotation.uses() !== undefined)
  settled = false
  secrets = [h2, h3]
  t.equal(rotation.uses(), undefined, 'another rotation')
  const seen = reads.length
  await until(() => reads.length > seen + 3)
  settled = true
  await until(() => rotation.uses() !== undefined)
  t.same(await makeState(store, () => [h2]).links.get('id'), 'session')
  secrets = [h2]
  t.same(rotation.uses(), [], 'nothing old is held any more')
})

interface Rotating {
  readonly rig: Rig
  /** Registrations of ours that the provider has seen. */
  readonly registered: () => number
  rotate(...secrets: Uint8Array[]): Promise<void>
}

/** A server whose secrets can be changed, with a provider that it registers at. */
async function startRotating(t: Test): Promise<Rotating> {
  let hmacSecrets: readonly Uint8Array[] = [h1]
  const peer = await startLoopback(({ path, query }) => {
    if (path === '/register') return { status: 201, body: { client_id: 'ours', client_secret: 'x' } }
    if (path === '/token')
      return {
        body: {
          access_token: 'at',
          refresh_token: 'rt',
          token_type: 'bearer',
          expires_in: 86_400,
          who: 'alice',
        },
      }
    const back = new URLSearchParams({ code: 'c', state: query.get('state') ?? '' })
    return { status: 302, headers: { location: `${query.get('redirect_uri')}?${back.toString()}` } }
  })
  t.teardown(() => peer.close())
  const rig = await startAuthServer(t, {
    config: { secrets: () => ({ signingKeys: [], hmacSecrets }) },
    reseal: { everyMs: 10, afterMs: 0 },
    upstreams: ({ issuer }) => [
      upstream(issuer, peer.url, {
        dcr: { registrationEndpoint: `${peer.url}/register` },
        identityFromToken: { subjectPath: 'who' },
      }),
    ],
  })
  return {
    rig,
    registered: () => peer.seen.filter(({ path }) => path === '/register').length,
    async rotate(...secrets) {
      hmacSecrets = secrets
      await rig.server.reload()
    },
  }
}

const counted = (rig: Rig): Promise<void> => until(() => rig.server.secretUses() !== undefined)

t.test('server: a client that was used in between goes on as if nothing had happened', async (t) => {
  const { rig, registered, rotate } = await startRotating(t)
  const browser = new Browser()
  const done = await login(rig, {}, browser)
  const first = await tokensOf(await redeem(rig, done))
  await rotate(h3, h1)
  const second = await tokensOf(await refresh(rig, done.clientId, first.refresh_token))
  await counted(rig)
  await rotate(h3)
  const third = await tokensOf(await refresh(rig, done.clientId, second.refresh_token))
  const claims = decodeJwt(third.access_token)
  const caller = makeCaller({ issuer: rig.issuer, subject: claims.sub ?? '', claims })
  t.match(await rig.server.upstreamTokens.get(caller), { accessToken: 'at' })
  t.equal((await browser.open(`${rig.issuer}/oauth/accounts`)).status, 200, 'the browser is still signed in')
  t.match((await login(rig, { client_id: done.clientId })).code, /^gh_ac_/)
  t.equal(registered(), 1, 'nothing was registered again at the provider')
})

t.test(
  'server: nothing is sealed again before every replica has had time to get the new secret',
  async (t) => {
    let hmacSecrets: readonly Uint8Array[] = [h1]
    const store = makeMemoryStore()
    const rig = await startAuthServer(t, {
      store,
      config: { secrets: () => ({ signingKeys: [], hmacSecrets }) },
      reseal: { everyMs: 5, afterMs: 120_000 },
    })
    const clientId = await registerClient(rig)
    const known = async (...secrets: Uint8Array[]): Promise<boolean> =>
      (await makeState(store, () => secrets, { mayReseal: () => false }).clients.get(clientId)) !== undefined
    hmacSecrets = [h3, h1]
    await rig.server.reload()
    await login(rig, { client_id: clientId })
    t.ok(await known(h1), 'a replica that has only the old one can read it')
    rig.pass(120_000)
    await login(rig, { client_id: clientId })
    t.ok(await known(h3))
  },
)

t.test('server: nothing is lost by disuse but refresh tokens, which are counted until then', async (t) => {
  const { rig, registered, rotate } = await startRotating(t)
  const idle = await registerClient(rig)
  const browser = new Browser()
  const done = await login(rig, {}, browser)
  const first = await tokensOf(await redeem(rig, done))
  await rotate(h3, h1)
  t.equal(rig.server.secretUses(), undefined)
  await counted(rig)
  t.same(rig.server.secretUses(), [{ position: 1, records: 0, refreshTokens: 1 }])
  t.match(rig.logged(), /an old HMAC secret is still needed.*"records":0,"refreshTokens":1/)

  await rotate(h3)
  t.equal(await refusal(await refresh(rig, done.clientId, first.refresh_token)), '400 invalid_grant')
  t.match((await login(rig, { client_id: done.clientId }, browser)).code, /^gh_ac_/, 'its client is known')
  t.match((await login(rig, { client_id: idle })).code, /^gh_ac_/, 'and one that was never used')
  t.equal((await browser.open(`${rig.issuer}/oauth/accounts`)).status, 200)
  t.equal(registered(), 1)
  t.same(rig.server.secretUses(), [])
})

t.test('server: once the refresh token was used, the old secret can be dropped', async (t) => {
  const { rig, rotate } = await startRotating(t)
  const done = await login(rig)
  const first = await tokensOf(await redeem(rig, done))
  await rotate(h3, h1)
  await counted(rig)
  await tokensOf(await refresh(rig, done.clientId, first.refresh_token))
  // A result counts for ten minutes.
  rig.pass(11 * minute)
  await until(() => rig.server.secretUses()?.[0]?.refreshTokens === 0)
  t.match(rig.logged(), /an old HMAC secret can be dropped.*hmacSecretRefs\[1\]/)
})

t.test('hosts: /readyz and the metrics say whether an old secret can be dropped', async (t) => {
  const { rig, rotate } = await startRotating(t)
  const done = await login(rig)
  await tokensOf(await redeem(rig, done))
  const backend = await startRawBackend()
  const authServer = { ...rig.server, config: rig.config }
  const oidc = { issuer: rig.issuer, audience: rig.resource, resource: rig.resource }
  const vmcp = await startVmcp(
    vmcpConfig(
      { one: backend.url },
      {
        incomingAuth: { type: 'oidc', oidc },
        telemetry: { enablePrometheusMetricsPath: true, metricsEnabled: false, tracingEnabled: false },
      },
    ),
    { port: 0, graceMs: 200, authServer },
  )
  const metricsPort = await freePort()
  const settings = {
    targetUri: new URL(backend.url).origin,
    oidcIssuer: rig.issuer,
    oidcAudience: rig.resource,
    resourceUrl: rig.resource,
    metricsPort: String(metricsPort),
  }
  const proxy = await runProxy(resolveProxyConfig('x', settings, {}), {
    log: silentLog,
    notify: () => {},
    authServer,
  })
  t.teardown(() => Promise.all([vmcp.close(), proxy.close({ graceMs: 0 }), backend.close()]))
  const notes = async (url: string): Promise<unknown> => {
    const body: unknown = await (await fetch(`${url}/readyz`)).json()
    return typeof body === 'object' && body !== null && 'notes' in body ? body.notes : undefined
  }
  const hosts = [vmcp.origin, proxy.url]
  for (const url of hosts) t.equal(await notes(url), undefined, 'with one secret there is nothing to say')

  await rotate(h3, h1)
  await counted(rig)
  const needed = 'hmacSecretRefs[1] is still needed by 0 stored records and 1 refresh tokens'
  for (const url of hosts) t.same(await notes(url), [needed])
  const scraped = async (url: string): Promise<string> => (await fetch(`${url}/metrics`)).text()
  const uses = /gatehouse_authserver_old_secret_uses\{[^}]*kind="refresh_tokens"[^}]*\} 1\b/
  t.match(await scraped(`http://127.0.0.1:${metricsPort}`), uses)
  await until(async () => uses.test(await scraped(vmcp.origin)))
})
