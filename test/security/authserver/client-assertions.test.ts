/** Attacks with client assertions (private_key_jwt). Each is rejected, and no URL in it is fetched. */
import { createHmac, createPublicKey, randomUUID } from 'node:crypto'
import t from 'tap'
import { makeMemoryStore } from '../../../runtime/store/index.ts'
import {
  refusal,
  type Rig,
  type RigOptions,
  startAuthServer,
  tokenRequest,
} from '../../helpers/authserver/authserver.ts'
import {
  assertionType,
  declared,
  makeKey,
  newSecret,
  requestWithAssertion,
  signAssertion,
  type TestKey,
} from '../../helpers/authserver/declared-client.ts'

const key = await makeKey()
const other = await makeKey()
const rsa = await makeKey('RS256')
const secret = newSecret()

type Assertion = Parameters<typeof signAssertion>[2]

function start(t: Parameters<typeof startAuthServer>[0], options: RigOptions = {}): Promise<Rig> {
  return startAuthServer(t, {
    ...options,
    config: (issuer) => ({
      upstreams: [],
      clients: [
        declared('signer', [`${issuer}/mcp`], { jwks: { keys: [key.jwk] } }),
        declared('rsa', [`${issuer}/mcp`], { jwks: { keys: [rsa.jwk] }, signingAlg: 'PS256' }),
        declared('neighbour', [`${issuer}/mcp`], { jwks: { keys: [other.jwk] } }),
        declared('secretive', [`${issuer}/mcp`], { secrets: [() => secret] }),
      ],
    }),
  })
}

const sign = (rig: Rig, assertion: Assertion = {}, by: TestKey = key, clientId = 'signer') =>
  signAssertion(by, { clientId, issuer: rig.issuer, nowMs: rig.now() }, assertion)

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

t.test(
  'each forged or misdirected assertion is invalid_client, with the reason in the audit log',
  async (t) => {
    let fetched = 0
    const rig = await start(t, {
      documentFetch: async () => {
        fetched += 1
        return new Response('{}')
      },
    })
    const now = Math.floor(rig.now() / 1000)
    const good = { iss: 'signer', sub: 'signer', aud: rig.issuer, jti: 'x', iat: now, exp: now + 60 }
    const token = `${rig.issuer}/oauth/token`
    const pem = createPublicKey({ key: key.jwk, format: 'jwk' })
      .export({ type: 'spki', format: 'pem' })
      .toString()
    const hs256 = (keyText: string): string => {
      const input = `${encode({ alg: 'HS256', kid: key.jwk.kid })}.${encode(good)}`
      return `${input}.${createHmac('sha256', keyText).update(input).digest('base64url')}`
    }
    const claims = (members: Record<string, unknown>): Promise<string> => sign(rig, { claims: members })
    const header = (members: Record<string, unknown>): Promise<string> => sign(rig, { header: members })
    const notAudience = /only audience must be this issuer/
    const algorithm = /algorithm is not allowed/
    const ownKey = /contains a key or a key URL/
    const rows: readonly (readonly [string, string | Promise<string>, RegExp])[] = [
      ['the token endpoint as audience', claims({ aud: token }), notAudience],
      ['an additional audience', claims({ aud: [rig.issuer, 'https://other.example'] }), notAudience],
      ['another server as audience', claims({ aud: 'https://other.example' }), notAudience],
      ['the issuer with a slash', claims({ aud: `${rig.issuer}/` }), notAudience],
      ['a resource as audience', claims({ aud: rig.resource }), notAudience],
      ['no audience', claims({ aud: undefined }), /aud claim/],
      ['an empty list as audience', claims({ aud: [] }), notAudience],
      ['alg none', `${encode({ alg: 'none' })}.${encode(good)}.`, algorithm],
      ['HS256 with the public key', hs256(pem), algorithm],
      ['HS256 with the key as JSON', hs256(JSON.stringify(key.jwk)), algorithm],
      ['a key of another type', sign(rig, {}, rsa), algorithm],
      ['its own key', header({ jwk: other.jwk }), ownKey],
      ['the address of a key', header({ jku: 'https://keys.example/jwks' }), ownKey],
      ['the address of a certificate', header({ x5u: 'https://keys.example/cert' }), ownKey],
      ['a certificate', header({ x5c: ['AAAA'] }), ownKey],
      [
        'a critical header',
        `${encode({ alg: 'ES256', crit: ['x'], x: 1 })}.${encode(good)}.AAAA`,
        /malformed/,
      ],
      ['an access token as type', header({ typ: 'at+jwt' }), /unsupported typ/],
      ['an ID-JAG as type', header({ typ: 'oauth-id-jag+jwt' }), /unsupported typ/],
      ['a proof as type', header({ typ: 'dpop+jwt' }), /unsupported typ/],
      ['the key of another client', sign(rig, {}, other), /none of the client's keys matches/],
      ['its key under our kid', sign(rig, { header: { kid: key.jwk.kid } }, other), /signature/],
      [
        'a changed payload',
        claims({}).then((text) => text.replace(/\.[^.]+\./, `.${encode(good)}.`)),
        /signature/,
      ],
      ['another issuer', claims({ iss: 'neighbour' }), /iss claim/],
      ['another subject', claims({ sub: 'neighbour' }), /sub claim/],
      ['no jti', claims({ jti: undefined }), /jti claim/],
      ['an empty jti', claims({ jti: '' }), /no jti/],
      ['a jti that is not a string', claims({ jti: 7 }), /no jti/],
      ['no exp', claims({ exp: undefined }), /exp claim/],
      ['an exp in the past', claims({ iat: now - 200, exp: now - 61 }), /expired/],
      ['an exp that is not a number', claims({ exp: 'tomorrow' }), /exp claim/],
      ['a life of more than five minutes', claims({ iat: now, exp: now + 301 }), /more than 5 minutes/],
      ['the same with an old iat', claims({ iat: now - 250, exp: now + 60 }), /more than 5 minutes/],
      ['the same without iat', claims({ iat: undefined, exp: now + 600 }), /more than 5 minutes/],
      ['an iat in the future', claims({ iat: now + 200, exp: now + 260 }), /in the future/],
      ['an iat that is not a number', claims({ iat: 'now' }), /./],
      ['an nbf in the future', claims({ nbf: now + 200, exp: now + 260 }), /nbf claim/],
      ['more than 16 KiB', claims({ padding: 'x'.repeat(16_384) }), /larger than 16 KiB/],
      ['no JWT', 'not-a-jwt', /not a signed JWT/],
      ['five parts', 'a.b.c.d.e', /not a signed JWT/],
    ]
    for (const [name, assertion, reason] of rows) {
      const response = await requestWithAssertion(rig, await assertion, { client_id: 'signer' })
      t.equal(await refusal(response), '401 invalid_client', name)
      t.match(
        rig.events.at(-1),
        { type: 'client_rejected', outcome: 'denied', clientId: 'signer', reason },
        name,
      )
    }
    const pinned = await requestWithAssertion(rig, await sign(rig, {}, rsa, 'rsa'))
    t.equal(await refusal(pinned), '401 invalid_client', 'RS256 with a key that is declared for PS256')
    t.equal(fetched, 0)
    t.notMatch(rig.logged(), /eyJ/, 'no assertion is logged')
  },
)

t.test('an assertion is accepted in every form that the rules allow', async (t) => {
  const rig = await start(t)
  const now = Math.floor(rig.now() / 1000)
  const rows: readonly (readonly [string, Assertion])[] = [
    ['typ client-authentication+jwt', {}],
    ['typ JWT', { header: { typ: 'JWT' } }],
    ['typ with its media type', { header: { typ: 'application/client-authentication+jwt' } }],
    ['no typ', { header: { typ: undefined } }],
    ['no kid', { header: { kid: undefined } }],
    ['a list with the issuer alone', { claims: { aud: [rig.issuer] } }],
    ['exactly five minutes', { claims: { iat: now, exp: now + 300 } }],
    ['no iat', { claims: { iat: undefined } }],
    ['a clock that is behind', { claims: { iat: now - 90, exp: now - 30 } }],
    ['a clock that is ahead', { claims: { iat: now + 50, nbf: now + 50, exp: now + 110 } }],
  ]
  for (const [name, assertion] of rows)
    t.equal((await requestWithAssertion(rig, await sign(rig, assertion))).status, 200, name)
})

t.test('an assertion is accepted once, until it can no longer be presented', async (t) => {
  const rig = await start(t)
  const now = Math.floor(rig.now() / 1000)
  const assertion = await sign(rig, { claims: { jti: 'once', iat: now, exp: now + 300 } })
  t.equal((await requestWithAssertion(rig, assertion)).status, 200)
  t.equal(await refusal(await requestWithAssertion(rig, assertion)), '401 invalid_client')
  t.match(rig.events.at(-1), { clientId: 'signer', reason: 'the assertion has already been used' })
  const again = await sign(rig, { claims: { jti: 'once', iat: now, exp: now + 200 } })
  t.equal(await refusal(await requestWithAssertion(rig, again)), '401 invalid_client', 'the jti counts')
  const foreign = await sign(rig, { claims: { jti: 'once' } }, other, 'neighbour')
  t.equal((await requestWithAssertion(rig, foreign)).status, 200, 'each client has its own jti values')
  for (const endpoint of ['revoke', 'introspect']) {
    const body = { client_assertion: assertion, client_assertion_type: assertionType, token: 'x' }
    const response = await fetch(`${rig.issuer}/oauth/${endpoint}`, {
      method: 'POST',
      body: new URLSearchParams(body),
    })
    t.equal(await refusal(response), '401 invalid_client', `rejected a second time at ${endpoint}`)
  }
  const many = await sign(rig)
  const outcomes = await Promise.all(
    Array.from({ length: 10 }, async () => (await requestWithAssertion(rig, many)).status),
  )
  t.equal(outcomes.filter((status) => status === 200).length, 1, 'one of ten simultaneous requests')
})

t.test('a rejected assertion can be used again, but not one whose request was rejected later', async (t) => {
  const rig = await start(t)
  const assertion = await sign(rig)
  const rejected = await requestWithAssertion(rig, assertion, { client_id: 'neighbour' })
  t.equal(await refusal(rejected), '401 invalid_client')
  t.equal(
    await refusal(await requestWithAssertion(rig, assertion, { scope: 'tools:admin' })),
    '400 invalid_scope',
  )
  t.equal(await refusal(await requestWithAssertion(rig, assertion)), '401 invalid_client')
})

t.test(
  'a client with a secret cannot use an assertion, and a client with keys cannot use a secret',
  async (t) => {
    const rig = await start(t)
    const assertion = await sign(rig, {}, key, 'secretive')
    t.equal(await refusal(await requestWithAssertion(rig, assertion)), '401 invalid_client')
    const form = { grant_type: 'client_credentials', client_id: 'signer' }
    t.equal(await refusal(await tokenRequest(rig, { ...form, client_secret: secret })), '401 invalid_client')
    t.equal(await refusal(await tokenRequest(rig, form)), '401 invalid_client', 'nor the method none')
  },
)

t.test('a flood of assertions is limited, and other clients keep working', async (t) => {
  // The buckets do not refill, because the clock of the store stands still.
  const rig = await start(t, { store: makeMemoryStore({ now: () => 0 }) })
  const outcomes = new Map<number, number>()
  for (let batch = 0; batch < 31; batch++) {
    const responses = await Promise.all(
      Array.from({ length: 20 }, async () => requestWithAssertion(rig, await sign(rig))),
    )
    for (const { status } of responses) outcomes.set(status, (outcomes.get(status) ?? 0) + 1)
  }
  t.strictSame(Object.fromEntries(outcomes), { 200: 600, 429: 20 })
  const limited = await requestWithAssertion(rig, await sign(rig))
  t.ok(Number(limited.headers.get('retry-after')) > 0)
  t.equal((await requestWithAssertion(rig, await sign(rig, {}, other, 'neighbour'))).status, 200)
  let keys = 0
  for await (const page of rig.store.scan()) keys += page.length
  t.ok(keys < 620, `one mark per accepted assertion: ${keys} keys`)
  const form = { grant_type: 'client_credentials', client_id: 'signer' }
  const forged = await requestWithAssertion(rig, 'x.y.z', form)
  t.equal(await refusal(forged), '401 invalid_client', 'the limit reveals nothing without a valid assertion')
})

t.test('a replayed assertion does not use up the limit of its client', async (t) => {
  const rig = await start(t, { store: makeMemoryStore({ now: () => 0 }) })
  const used = await sign(rig)
  t.equal((await requestWithAssertion(rig, used)).status, 200)
  for (let batch = 0; batch < 31; batch++) {
    const replays = await Promise.all(Array.from({ length: 20 }, () => requestWithAssertion(rig, used)))
    t.ok(replays.every(({ status }) => status === 401))
  }
  t.equal((await requestWithAssertion(rig, await sign(rig))).status, 200)
})

t.test('an access token, an identity assertion or an ID token is not a client assertion', async (t) => {
  const rig = await start(t)
  const form = { grant_type: 'client_credentials', client_id: 'secretive', client_secret: secret }
  const response = await tokenRequest(rig, form)
  const { access_token: token } = (await response.json()) as { access_token: string }
  t.equal(
    await refusal(await requestWithAssertion(rig, token, { client_id: 'secretive' })),
    '401 invalid_client',
  )
  const asBearer = await fetch(`${rig.issuer}/oauth/introspect`, {
    method: 'POST',
    headers: { authorization: `Bearer ${await sign(rig, { claims: { jti: randomUUID() } })}` },
    body: new URLSearchParams({ token }),
  })
  t.equal(await refusal(asBearer), '401 invalid_token', 'an assertion is not an access token')
})
