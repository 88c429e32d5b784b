/**
 * Rotation of HMAC secrets: every stored record survives the removal of the old secret, whether it was used in the
 * meantime or not. One replica does the work, and the server reports when the old secret is no longer needed.
 */
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { type Rotation, watchRotation } from '../../../../runtime/authserver/storage/rotation.ts'
import { makeState, type Repository, type State } from '../../../../runtime/authserver/storage/state.ts'
import { silentLog } from '../../../../runtime/net/index.ts'
import { makeMemoryStore, makeRedisStore, type Store } from '../../../../runtime/store/index.ts'
import { keepingLog } from '../../../helpers/authserver/authserver.ts'
import { proves } from '../../../helpers/proves.ts'
import { missingRedis, startRedis, startRedisCluster, until } from '../../../helpers/redis.ts'

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

const login = { provider: 'p', codeVerifier: 'v', nonce: 'n', browser: 'b' }

const waiting = { request, chosen: ['p'], browser: 'b', obtained: [tokens] }

/** A valid record for every repository. A missing record is a type error. */
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
  upstreamSteps: { ...waiting, ...login, startedAtMs: 1 },
  connections: { ...login, sessionId: 's', userId: 'u' },
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

/** Returns the records that these secrets can read. */
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
  const rotation = watchRotation({ store, sealed, secrets, now, log, everyMs: 10, isSettled: () => true })
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
    await t.test('records that were read during the rotation', async (t) => {
      await writeAll(store, [h1])
      t.same(await readable(store, [h3, h1]), names)
      t.same(await readable(store, [h3]), names)
    })
    await t.test('records that were not read during the rotation', async (t) => {
      await writeAll(store, [h1])
      const { log, text } = keepingLog()
      const rotation = watch(t, store, () => [h3, h1], log)
      t.equal(rotation.uses(), undefined, 'not counted yet')
      await until(() => rotation.uses() !== undefined)
      t.same(await readable(store, [h3]), names)
      t.match(rotation.uses(), [{ position: 1, records: 0 }])
      t.match(
        text(),
        new RegExp(`resealed records under the current HMAC secret","records":${names.length}\\b`),
      )
    })
    await t.test('records that were already unreadable are not counted', async (t) => {
      await writeAll(store, [h2])
      const rotation = watch(t, store, () => [h1, h3])
      await until(() => rotation.uses() !== undefined)
      t.match(rotation.uses(), [{ position: 1, records: 0 }])
      t.same(await readable(store, [h1, h3]), [])
    })
  })
}

t.test('pass: one replica reseals, and the other replicas use its result', async (t) => {
  const store = makeMemoryStore()
  const state = makeState(store, () => [h1])
  await Promise.all(Array.from({ length: 2_000 }, (_, n) => state.links.put(`${n}`, 'session', 60 * minute)))
  const logs = [keepingLog(), keepingLog(), keepingLog()]
  const replicas = logs.map(({ log }) => watch(t, store, () => [h3, h1], log))
  await until(() => replicas.every((rotation) => rotation.uses() !== undefined))
  const done = logs.map(({ text }) => (text().includes('resealed records under') ? 1 : 0))
  t.equal(
    done.reduce<number>((sum, one) => sum + one, 0),
    1,
  )
  t.ok(
    logs.every(({ text }) => text().includes('no longer needed')),
    'every rotation reports it',
  )
  const locks: string[] = []
  for await (const keys of store.scan()) locks.push(...keys.filter((key) => key.startsWith('lock:')))
  t.same(locks, [], 'the lock is released')
})

t.test('pass: starts after a delay, and starts again when the secrets change', async (t) => {
  const nowMs = 1_000_000
  let settled = false
  let secrets = [h3, h1]
  const store = makeMemoryStore()
  await makeState(store, () => [h1]).links.put('id', 'session', 60 * minute)
  const { sealed } = makeState(store, () => secrets)
  let looks = 0
  const rotation = watchRotation({
    store,
    sealed,
    secrets: () => secrets,
    now: () => nowMs,
    log: silentLog,
    everyMs: 5,
    isSettled() {
      looks += 1
      return settled
    },
  })
  t.teardown(() => rotation.close())
  await until(() => looks > 3)
  t.equal(rotation.uses(), undefined, 'other replicas may not have the new secret yet')
  settled = true
  await until(() => rotation.uses() !== undefined)
  settled = false
  secrets = [h2, h3]
  t.equal(rotation.uses(), undefined, 'another rotation')
  const seen = looks
  await until(() => looks > seen + 3)
  settled = true
  await until(() => rotation.uses() !== undefined)
  t.same(await makeState(store, () => [h2]).links.get('id'), 'session')
  secrets = [h2]
  t.same(rotation.uses(), [], 'the old result is gone')
})
