/** Key sets: rotation, one fetch at a time, cooldown, outage and recovery; all with the test's own clock. */
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import t, { type Test } from 'tap'
import { makeFetch } from '../../../runtime/net/index.ts'
import { localKeys, RemoteKeys, verifyJwt } from '../../../runtime/oauth/index.ts'
import { keySetTimes } from '../../../runtime/oauth/keys.ts'
import { type PeerResponse, startLoopback } from '../../helpers/loopback.ts'

const fetch = makeFetch()
t.teardown(() => fetch.close())

async function pair(kid: string) {
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  const jwk: JWK = { ...(await exportJWK(publicKey)), kid, alg: 'ES256', use: 'sig' }
  const sign = () =>
    new SignJWT({ sub: 'a' })
      .setProtectedHeader({ alg: 'ES256', kid })
      .setAudience('aud')
      .setExpirationTime('1y')
      .sign(privateKey)
  return { jwk, token: await sign() }
}

const one = await pair('one')
const two = await pair('two')

async function rig(t: Test) {
  const state: { response: PeerResponse; now: number; hold: Promise<void> | undefined } = {
    response: { body: { keys: [one.jwk] } },
    now: Date.now(),
    hold: undefined,
  }
  const server = await startLoopback(async () => {
    await state.hold
    return state.response
  })
  t.teardown(() => server.close())
  const keys = new RemoteKeys({ fetch, now: () => state.now, locate: async () => server.url })
  const verify = (token: string) => verifyJwt(token, { keys, audience: 'aud', types: ['jwt'] })
  return { state, server, keys, verify }
}

const unreachable = { name: 'OAuthClientError', kind: 'unreachable' }
const unknownKey = { name: 'TokenRefused', reason: 'key' }

await t.test('RemoteKeys: a hundred first tokens cause one fetch', async (t) => {
  const { server, verify } = await rig(t)
  await Promise.all(Array.from({ length: 100 }, () => verify(one.token)))
  t.equal(server.seen.length, 1)
})

await t.test('RemoteKeys: an unknown key is looked up at once, but only once per cooldown', async (t) => {
  const { state, server, keys, verify } = await rig(t)
  await verify(one.token)
  const before = keys.version
  state.response = { body: { keys: [two.jwk] } }
  await t.rejects(verify(two.token), unknownKey, 'too early')
  t.equal(server.seen.length, 1)
  state.now += keySetTimes.cooldownMs
  await Promise.all([verify(two.token), verify(two.token)])
  t.equal(server.seen.length, 2)
  t.ok(keys.version > before, 'the change is visible')
  await t.rejects(verify(one.token), unknownKey, 'the withdrawn key is rejected')
  state.now += keySetTimes.cooldownMs
  const seen = server.seen.length
  for (let i = 0; i < 5; i++) await t.rejects(verify(one.token), unknownKey)
  t.equal(server.seen.length, seen + 1, 'an untrusted client cannot cause repeated fetches')
})

await t.test(
  'RemoteKeys: an issuer that is down at the start is an outage, is retried after a pause, and then works',
  async (t) => {
    const { state, server, verify } = await rig(t)
    state.response = { status: 503 }
    await t.rejects(verify(one.token), unreachable)
    await t.rejects(verify(one.token), unreachable)
    t.equal(server.seen.length, 1, 'no second try within the pause')
    state.response = { body: { keys: [one.jwk] } }
    state.now += keySetTimes.retryMs
    await verify(one.token)
  },
)

await t.test(
  'RemoteKeys: known keys stay valid for an hour of an outage, unknown keys cannot be checked',
  async (t) => {
    const { state, verify } = await rig(t)
    await verify(one.token)
    state.response = 'cut'
    state.now += keySetTimes.maxAgeMs - 1
    await verify(one.token)
    await t.rejects(verify(two.token), unreachable)
    state.now += 2
    await t.rejects(verify(one.token), unreachable, 'not for ever')
  },
)

await t.test('RemoteKeys: an old set is refreshed in the background', async (t) => {
  const { state, server, keys, verify } = await rig(t)
  await verify(one.token)
  const before = keys.version
  state.response = { body: { keys: [one.jwk, two.jwk] } }
  state.now += keySetTimes.freshMs + 1
  let release = () => {}
  state.hold = new Promise<void>((resolve) => {
    release = resolve
  })
  await verify(one.token)
  release()
  await verify(two.token)
  t.equal(server.seen.length, 2, 'the unknown key waited for the renewal in flight')
  t.ok(keys.version > before)
})

await t.test('RemoteKeys: fetching the same set again changes no version', async (t) => {
  const { state, keys, verify } = await rig(t)
  await verify(one.token)
  const before = keys.version
  state.now += keySetTimes.maxAgeMs + 1
  await verify(one.token)
  t.equal(keys.version, before)
})

await t.test('RemoteKeys: an invalid key set is an error, and symmetric keys are dropped', async (t) => {
  for (const body of [
    {},
    { keys: 'x' },
    { keys: [1] },
    { keys: Array.from({ length: 101 }, () => one.jwk) },
  ]) {
    const { state, verify } = await rig(t)
    state.response = { body }
    await t.rejects(verify(one.token), { name: 'OAuthClientError', kind: 'protocol' })
  }
  const { state, verify } = await rig(t)
  state.response = { body: { keys: [{ kty: 'oct', k: 'c2VjcmV0', kid: 'one' }] } }
  await t.rejects(verify(one.token), unknownKey)
})

await t.test('localKeys: a different key set object has a different version', async (t) => {
  let set = { keys: [one.jwk] }
  const keys = localKeys(() => set)
  const verify = (token: string) => verifyJwt(token, { keys, audience: 'aud', types: ['jwt'] })
  await verify(one.token)
  const before = keys.version
  t.equal(keys.version, before)
  set = { keys: [two.jwk] }
  t.ok(keys.version > before)
  await t.rejects(verify(one.token), unknownKey)
  await verify(two.token)
})

await t.test('keys: the content type of a key set is ignored', async (t) => {
  for (const type of ['application/jwk-set+json', 'text/plain', 'application/octet-stream', '']) {
    const { state, verify } = await rig(t)
    state.response = { headers: { 'content-type': type }, body: { keys: [one.jwk] } }
    t.ok(await verify(one.token), type)
  }
  const { state, verify } = await rig(t)
  state.response = { headers: { 'content-type': 'text/html' }, body: '<p>sign in</p>' }
  await t.rejects(verify(one.token), { code: 'OAUTH_PROTOCOL' })
})
