/** The keys that are tried for an assertion, the names of algorithms, and how long a used assertion is remembered. */
import t from 'tap'
import { makeMemoryStore } from '../../../runtime/store/index.ts'
import { refusal, startAuthServer } from '../../helpers/authserver/authserver.ts'
import {
  declared,
  makeKey,
  requestWithAssertion,
  signAssertion,
} from '../../helpers/authserver/declared-client.ts'

const untried = "only the client's first 4 matching keys were tried; use a unique kid"

t.test('at most four keys are tried for an assertion without a kid', async (t) => {
  const keys = await Promise.all(Array.from({ length: 6 }, () => makeKey()))
  const rig = await startAuthServer(t, {
    config: (issuer) => ({
      upstreams: [],
      clients: [declared('signer', [`${issuer}/mcp`], { jwks: { keys: keys.map(({ jwk }) => jwk) } })],
    }),
  })
  for (const [index, key] of keys.entries()) {
    const client = { clientId: 'signer', issuer: rig.issuer, nowMs: rig.now() }
    const anonymous = await signAssertion(key, client, { header: { kid: undefined } })
    const response = await requestWithAssertion(rig, anonymous)
    if (index < 4) t.equal(response.status, 200, `key ${index}`)
    else {
      t.equal(await refusal(response), '401 invalid_client', `key ${index}`)
      t.match(rig.events.at(-1), { type: 'client_rejected', clientId: 'signer', reason: untried })
    }
    const stranger = await signAssertion(await makeKey(), client, { header: { kid: undefined } })
    t.equal(await refusal(await requestWithAssertion(rig, stranger)), '401 invalid_client')
    const named = await requestWithAssertion(rig, await signAssertion(key, client))
    t.equal(named.status, 200, `key ${index} with its kid`)
  }
})

t.test('Ed25519 is another name for EdDSA, and not for other algorithms', async (t) => {
  const edwards = await makeKey('EdDSA')
  const elliptic = await makeKey()
  const rig = await startAuthServer(t, {
    config: (issuer) => ({
      upstreams: [],
      clients: [
        declared('edwards', [`${issuer}/mcp`], { jwks: { keys: [edwards.jwk] }, signingAlg: 'EdDSA' }),
        declared('elliptic', [`${issuer}/mcp`], { jwks: { keys: [elliptic.jwk] } }),
      ],
    }),
  })
  for (const alg of ['EdDSA', 'Ed25519']) {
    const sign = (clientId: string): Promise<string> =>
      signAssertion(edwards, { clientId, issuer: rig.issuer, nowMs: rig.now() }, { header: { alg } })
    t.equal((await requestWithAssertion(rig, await sign('edwards'))).status, 200, alg)
    const pinned = await requestWithAssertion(rig, await sign('elliptic'))
    t.equal(await refusal(pinned), '401 invalid_client', `${alg} for a client with ES256`)
  }
})

t.test('a used assertion is remembered until a server with a slow clock would reject it', async (t) => {
  const key = await makeKey()
  let aheadMs = 0
  const rig = await startAuthServer(t, {
    store: makeMemoryStore({ now: () => Date.now() + aheadMs }),
    config: (issuer) => ({
      upstreams: [],
      clients: [declared('signer', [`${issuer}/mcp`], { jwks: { keys: [key.jwk] } })],
    }),
  })
  const assertion = await signAssertion(key, { clientId: 'signer', issuer: rig.issuer, nowMs: rig.now() })
  t.equal((await requestWithAssertion(rig, assertion)).status, 200)
  for (const [stepMs, reason] of [
    [90_000, 'the assertion has already been used'],
    [60_000, 'the assertion has expired'],
  ] as const) {
    aheadMs += stepMs
    rig.pass(stepMs)
    t.equal(await refusal(await requestWithAssertion(rig, assertion)), '401 invalid_client')
    t.match(rig.events.at(-1), { clientId: 'signer', reason })
  }
})
