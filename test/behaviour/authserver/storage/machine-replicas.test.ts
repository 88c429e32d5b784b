/** Declared clients with two servers on one Redis: replay, rotation, revocation, and an outage. */
import t, { type Test } from 'tap'
import type { DeclaredClientSettings } from '../../../../runtime/config/index.ts'
import { GatehouseError } from '../../../../schemas/index.ts'
import { makeMemoryStore, makeRedisStore, type Store } from '../../../../runtime/store/index.ts'
import {
  listenFor,
  refusal,
  type Rig,
  startAuthServer,
  tokenRequest,
  tokensOf,
} from '../../../helpers/authserver/authserver.ts'
import {
  assertionType,
  declared,
  makeKey,
  newSecret,
  requestWithAssertion,
  signAssertion,
} from '../../../helpers/authserver/declared-client.ts'
import { callerOf } from '../../../helpers/authserver/test-client.ts'
import { missingRedis, startRedis, until } from '../../../helpers/redis.ts'

const key = await makeKey()
const rotation = { secrets: [newSecret()] }

const clients = (issuer: string): readonly DeclaredClientSettings[] => [
  declared('signer', [`${issuer}/mcp`], { jwks: { keys: [key.jwk] } }),
  declared('job', [`${issuer}/mcp`], {
    secrets: [() => rotation.secrets[0] ?? '', () => rotation.secrets.at(-1) ?? ''],
  }),
]

const start = (t: Test, store: Store): Promise<Rig> =>
  startAuthServer(t, { store, config: (issuer) => ({ upstreams: [], clients: clients(issuer) }) })

const sign = (rig: Rig, claims: Record<string, unknown> = {}): Promise<string> =>
  signAssertion(key, { clientId: 'signer', issuer: rig.issuer, nowMs: rig.now() }, { claims })

const askJob = (rig: Pick<Rig, 'issuer'>, secret = ''): Promise<Response> =>
  tokenRequest(rig, { grant_type: 'client_credentials', client_id: 'job', client_secret: secret })

t.test('two replicas accept an assertion once, and a token everywhere', { skip: missingRedis }, async (t) => {
  const redis = await startRedis()
  const store = makeRedisStore({ addr: redis.addr, keyPrefix: 'gh:as:' })
  t.teardown(async () => {
    await store.close()
    await redis.stop()
  })
  const rig = await start(t, store)
  const other = await rig.replica()
  const second = await listenFor(t, other)

  const assertion = await sign(rig)
  const { access_token: token } = await tokensOf(await requestWithAssertion(rig, assertion))
  t.equal(await refusal(await requestWithAssertion(second, assertion)), '401 invalid_client')
  t.match(other.events.at(-1), { reason: 'the assertion has already been used' })
  const raced = await sign(rig)
  const outcomes = await Promise.all(
    Array.from(
      { length: 12 },
      async (_, index) => (await requestWithAssertion(index % 2 === 0 ? rig : second, raced)).status,
    ),
  )
  t.equal(outcomes.filter((status) => status === 200).length, 1)

  const keys = redis.cli('keys', '*').split('\n')
  const dump = keys.map((name) => `${name} ${redis.cli('get', name)}`).join('\n')
  t.notMatch(dump, token)
  t.notMatch(dump, 'signer', 'keys in the store do not name clients')
  for (const name of keys) {
    const leftMs = Number(redis.cli('pttl', name))
    t.ok(leftMs > 0, `${name} expires`)
    if (name.startsWith('gh:as:assertion:'))
      t.ok(leftMs > 150_000 && leftMs <= 180_000, 'a mark lasts as long as its assertion plus twice the skew')
  }

  t.equal(await other.server.isLive(callerOf(token)), true)
  const form = { token, client_assertion: await sign(rig), client_assertion_type: assertionType }
  const revoked = await fetch(`${rig.issuer}/oauth/revoke`, {
    method: 'POST',
    body: new URLSearchParams(form),
  })
  t.equal(revoked.status, 200)
  t.equal(await rig.server.isLive(callerOf(token)), false)
  // Another replica may accept the token for five seconds.
  other.pass(5_000)
  t.equal(await other.server.isLive(callerOf(token)), false)
})

t.test('a secret rotates while replicas reload it one after another', async (t) => {
  const rig = await start(t, makeMemoryStore())
  const other = await rig.replica()
  const second = await listenFor(t, other)
  const [old = ''] = rotation.secrets
  const next = newSecret()
  const outcomes = async (secret: string): Promise<readonly number[]> => [
    (await askJob(rig, secret)).status,
    (await askJob(second, secret)).status,
  ]
  t.strictSame(await outcomes(old), [200, 200])
  rotation.secrets = [old, next]
  await rig.server.reload()
  t.strictSame(await outcomes(next), [200, 401])
  await other.server.reload()
  t.strictSame(await outcomes(next), [200, 200])
  t.strictSame(await outcomes(old), [200, 200], 'clients may use either secret')
  rotation.secrets = [next]
  await Promise.all([rig.server.reload(), other.server.reload()])
  t.strictSame(await outcomes(old), [401, 401])
  t.strictSame(await outcomes(next), [200, 200])
})

t.test('tokens from before the removal of a client stay invalid at every replica', async (t) => {
  const memory = makeMemoryStore()
  const outage = { isOn: true }
  const store: Store = {
    ...memory,
    namespace: (prefix) => memory.namespace(prefix),
    set: async (name, value, options) => {
      if (outage.isOn && name.startsWith('removed:')) throw new GatehouseError('STORE_DOWN')
      return memory.set(name, value, options)
    },
  }
  const present: DeclaredClientSettings[] = []
  const rig = await startAuthServer(t, {
    store,
    config(issuer) {
      present.push(...clients(issuer))
      return { upstreams: [], clients: present }
    },
  })
  const other = await rig.replica()
  const { access_token: token } = await tokensOf(await askJob(rig, rotation.secrets[0]))
  for (const { server } of [rig, other]) t.equal(await server.isLive(callerOf(token)), true)

  const removed = present.splice(1)
  await rig.server.reload()
  present.push(...removed)
  await rig.server.reload()
  t.equal(await rig.server.isLive(callerOf(token)), false, 'even if the removal cannot be stored')
  outage.isOn = false
  await rig.server.reload()
  t.equal(await rig.server.isLive(callerOf(token)), false)
  // The other replica has not seen the removal. It may accept the token for five seconds.
  other.pass(5_000)
  t.equal(await other.server.isLive(callerOf(token)), false)
  const restarted = await rig.replica()
  t.equal(await restarted.server.isLive(callerOf(token)), false)
  rig.pass(2_000)
  const { access_token: next } = await tokensOf(await askJob(rig, rotation.secrets[0]))
  for (const { server } of [rig, other, restarted]) t.equal(await server.isLive(callerOf(next)), true)
})

t.test('a store outage causes 503, and no token is issued', { skip: missingRedis }, async (t) => {
  const redis = await startRedis()
  const store = makeRedisStore({
    addr: redis.addr,
    keyPrefix: 'gh:as:',
    readTimeoutMs: 1_000,
    writeTimeoutMs: 1_000,
  })
  t.teardown(() => store.close())
  const rig = await start(t, store)
  const { access_token: token } = await tokensOf(await requestWithAssertion(rig, await sign(rig)))
  rig.pass(5_000)
  await redis.stop()
  const issued = rig.events.length
  const assertion = await sign(rig, { exp: Math.floor(rig.now() / 1000) + 290 })
  const down = await requestWithAssertion(rig, assertion)
  t.match(down.headers.get('retry-after'), /^\d+$/)
  t.equal(await refusal(down), '503 temporarily_unavailable')
  t.equal(rig.events.length, issued)
  await t.rejects(rig.server.isLive(callerOf(token)), { code: 'STORE_DOWN' })

  const again = await startRedis({ port: redis.port })
  t.teardown(() => again.stop())
  await until(async () => (await rig.server.notReady()).length === 0)
  t.equal((await requestWithAssertion(rig, assertion)).status, 200, 'the assertion was not used up')
})

t.test('if the store cannot mark the assertion, no token is issued', async (t) => {
  const memory = makeMemoryStore()
  const failing: Store = {
    ...memory,
    namespace: (prefix) => memory.namespace(prefix),
    set: async (name, value, options) => {
      if (name.startsWith('assertion:')) throw new GatehouseError('STORE_DOWN')
      return memory.set(name, value, options)
    },
  }
  const rig = await start(t, failing)
  t.equal(await refusal(await requestWithAssertion(rig, await sign(rig))), '503 temporarily_unavailable')
  t.notOk(rig.events.some(({ type: name }) => name === 'token_issued'))
})
