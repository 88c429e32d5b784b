/** Access tokens that are bound to a key: proofs, nonces, replay, and every attempt to use such a token without its key. */
import t from 'tap'
import { makeAuthenticator } from '../../../runtime/incoming/index.ts'
import { makeReplayCheck, maxMarks, maxMarksPerOwner } from '../../../runtime/oauth/dpop/replay.ts'
import { makeMemoryStore, type Store } from '../../../runtime/store/index.ts'
import { startIssuer } from '../../helpers/authserver/several-issuers.ts'
import { startLoopback } from '../../helpers/loopback.ts'
import { makeDpopClient, type ProofChanges } from '../../helpers/oauth/dpop-client.ts'
import { resource, rig, type Rig, usual } from '../../helpers/oauth/dpop-rig.ts'

await t.test('a bound token is never a bearer token', async (t) => {
  const client = await makeDpopClient()
  const other = await startIssuer(t)
  for (const dpop of [undefined, { mode: 'off' }, { mode: 'optional' }, { mode: 'required' }] as const) {
    const { idp, send } = await rig(t, dpop, { issuers: [other] })
    for (const issuer of [idp, other]) {
      for (const cnf of [client.cnf, { 'x5t#S256': 'abc' }, { jwk: client.jwk }, {}, 'text', []]) {
        const token = await issuer.token('alice', { cnf })
        const answer = await send({ authorization: `Bearer ${token}` })
        t.match(answer, { status: 401, error: 'invalid_token' }, JSON.stringify({ dpop, cnf }))
      }
    }
    const unbound = await send({ authorization: `Bearer ${await idp.token('alice', { cnf: null })}` })
    t.equal(unbound.status, dpop?.mode === 'required' ? 401 : 200)
  }
})

await t.test('a bound token from introspection is not a bearer token either', async (t) => {
  const client = await makeDpopClient()
  const host = await startLoopback(() => ({
    body: { active: true, sub: 'alice', aud: resource, cnf: client.cnf },
  }))
  t.teardown(() => host.close())
  const authenticator = makeAuthenticator(
    { type: 'oidc', oidc: { introspectionUrl: `${host.url}/introspect`, audience: resource, dpop: usual } },
    { dpop: { store: makeMemoryStore() } },
  )
  t.teardown(() => authenticator.close())
  await t.rejects(async () => authenticator.authenticate('Bearer opaque'), { code: 'INVALID_TOKEN' })
  const proof = await client.proof('POST', resource, 'opaque')
  const request = { method: 'POST', path: '/mcp', proof }
  t.match(await authenticator.authenticate('DPoP opaque', request), { subject: 'alice' })
  await t.rejects(async () => authenticator.authenticate('DPoP opaque'), { code: 'DPOP_PROOF_INVALID' })
})

await t.test('each method and each URL of the endpoint can be proved', async (t) => {
  for (const alg of ['ES256', 'ES384', 'ES512', 'EdDSA']) {
    const client = await makeDpopClient(alg)
    const { idp, send } = await rig(t, { mode: 'required' })
    const token = await idp.token('alice', { cnf: client.cnf })
    const rows: readonly (readonly [string, string, string])[] = [
      ['POST', resource, '/mcp'],
      ['GET', resource, '/mcp'],
      ['DELETE', resource, '/mcp'],
      ['POST', 'HTTPS://MCP.example:443/mcp', '/mcp'],
      ['POST', 'https://mcp.example/mcp/', '/mcp'],
      ['POST', 'https://mcp.example/mcp?x=1#y', '/mcp?x=1'],
      ['GET', 'https://mcp.example/sse', '/sse'],
      ['POST', 'https://mcp.example/mcp', '/internal'],
    ]
    for (const [method, url, path] of rows) {
      const proof = await client.proof(method, url, token)
      const answer = await send({ authorization: `DPoP ${token}`, dpop: proof }, method, path)
      t.equal(answer.status, 200, `${alg} ${method} ${url} at ${path}`)
    }
    t.equal((await send({ authorization: `dpop ${token}` })).status, 401, 'a request without a proof')
  }
})

await t.test('a proof that does not fit the request is rejected', async (t) => {
  const client = await makeDpopClient()
  const thief = await makeDpopClient()
  const { idp, send, reasons } = await rig(t, {})
  const token = await idp.token('alice', { cnf: client.cnf })
  const otherToken = await idp.token('bob', { cnf: client.cnf })
  const { privateKey } = { privateKey: { ...client.jwk, d: 'AAAA' } }
  const nowSec = Math.floor(Date.now() / 1000)
  const changed = (changes: ProofChanges) => client.proof('POST', resource, token, changes)
  const valid = await changed({})
  const [header = '', payload = '', signature = ''] = valid.split('.')
  const rows: readonly (readonly [string, string | Promise<string>, string])[] = [
    ['no proof', '', 'missing'],
    ['text', 'abc', 'malformed'],
    ['no signature', `${header}.${payload}.`, 'signature'],
    ['another payload', `${header}.${Buffer.from('{}').toString('base64url')}.${signature}`, 'signature'],
    ['two proofs', `${valid}, ${valid}`, 'malformed'],
    ['large', `${valid}${'A'.repeat(8_192)}`, 'malformed'],
    ['another key', thief.proof('POST', resource, token), 'key'],
    ['another method', client.proof('GET', resource, token), 'method'],
    ['lower-case method', client.proof('post', resource, token), 'method'],
    ['another path', client.proof('POST', 'https://mcp.example/other', token), 'target'],
    ['another host', client.proof('POST', 'https://evil.example/mcp', token), 'target'],
    ['another scheme', client.proof('POST', 'http://mcp.example/mcp', token), 'target'],
    ['another port', client.proof('POST', 'https://mcp.example:8443/mcp', token), 'target'],
    ['a user', client.proof('POST', 'https://a@mcp.example/mcp', token), 'target'],
    ['a relative URL', client.proof('POST', '/mcp', token), 'target'],
    ['the address of the listener', client.proof('POST', 'http://127.0.0.1/mcp', token), 'target'],
    ['another token', client.proof('POST', resource, otherToken), 'token'],
    ['no hash of the token', client.proof('POST', resource), 'token'],
    ['no jti', changed({ claims: { jti: undefined } }), 'claims'],
    ['empty jti', changed({ claims: { jti: '' } }), 'claims'],
    ['long jti', changed({ claims: { jti: 'j'.repeat(257) } }), 'claims'],
    ['jti as number', changed({ claims: { jti: 1 } }), 'claims'],
    ['no iat', changed({ claims: { iat: undefined } }), 'claims'],
    ['iat as text', changed({ claims: { iat: String(nowSec) } }), 'claims'],
    ['no htm', changed({ claims: { htm: undefined } }), 'claims'],
    ['no htu', changed({ claims: { htu: undefined } }), 'claims'],
    ['old', changed({ claims: { iat: nowSec - 65 } }), 'time'],
    ['from the future', changed({ claims: { iat: nowSec + 65 } }), 'time'],
    ['expired', changed({ claims: { exp: nowSec - 120 } }), 'time'],
    ['typ JWT', changed({ header: { typ: 'JWT' } }), 'claims'],
    ['no typ', changed({ header: { typ: undefined } }), 'claims'],
    ['no jwk', changed({ header: { jwk: undefined } }), 'header'],
    ['private key', changed({ header: { jwk: privateKey } }), 'header'],
    ['symmetric key', changed({ header: { jwk: { kty: 'oct', k: 'AAAA' } } }), 'header'],
    ['jwk of another key', changed({ header: { jwk: thief.jwk } }), 'signature'],
    ['jku', changed({ header: { jku: 'https://evil.example/keys' } }), 'header'],
    ['x5u', changed({ header: { x5u: 'https://evil.example/cert' } }), 'header'],
    ['x5c', changed({ header: { x5c: ['AAAA'] } }), 'header'],
    ['no curve', changed({ header: { jwk: { ...client.jwk, crv: undefined } } }), 'header'],
    ['alg none', `${headerOf({ alg: 'none', typ: 'dpop+jwt', jwk: client.jwk })}.${payload}.`, 'header'],
    [
      'HS256',
      `${headerOf({ alg: 'HS256', typ: 'dpop+jwt', jwk: client.jwk })}.${payload}.${signature}`,
      'header',
    ],
    ['RSA', (await makeDpopClient('RS256')).proof('POST', resource, token), 'header'],
  ]
  for (const [name, proof, reason] of rows) {
    const headers = { authorization: `DPoP ${token}`, dpop: await proof }
    t.match(await send(headers), { status: 401, error: 'invalid_dpop_proof' }, name)
    t.equal(reasons.at(-1), `proof_${reason}`, name)
  }
  const twice = await send({ authorization: `DPoP ${token}`, dpop: [valid, await changed({})] })
  t.match(twice, { status: 401, error: 'invalid_dpop_proof' }, 'two headers')
  const ok = await send({ authorization: `DPoP ${token}`, dpop: await changed({}) })
  t.equal(ok.status, 200)
})

function headerOf(header: object): string {
  return Buffer.from(JSON.stringify(header)).toString('base64url')
}

await t.test('a token is rejected when it is unbound or bound in another way', async (t) => {
  const client = await makeDpopClient()
  const { idp, send, reasons } = await rig(t, {})
  const rows: readonly (readonly [Record<string, unknown>, string])[] = [
    [{}, 'unbound'],
    [{ cnf: {} }, 'confirmation'],
    [{ cnf: { ...client.cnf, 'x5t#S256': 'abc' } }, 'certificate'],
    [{ cnf: { 'x5t#S256': 'abc' } }, 'unbound'],
    [{ cnf: { ...client.cnf, kid: 'abc' } }, 'confirmation'],
    [{ cnf: { ...client.cnf, 'x5t#S256': 1 } }, 'confirmation'],
    [{ cnf: { jkt: 1 } }, 'confirmation'],
    [{ cnf: { jkt: '' } }, 'confirmation'],
    [{ cnf: 'text' }, 'confirmation'],
  ]
  for (const [claims, reason] of rows) {
    const token = await idp.token('alice', claims)
    const proof = await client.proof('POST', resource, token)
    const answer = await send({ authorization: `DPoP ${token}`, dpop: proof })
    t.match(answer, { status: 401, error: 'invalid_token' }, JSON.stringify(claims))
    t.match(answer.challenge, /DPoP [^,]+,.* error="invalid_token"/)
    t.equal(reasons.at(-1), reason)
  }
})

await t.test('the challenge names the schemes that the server accepts', async (t) => {
  const algs = 'algs="ES256 ES384 ES512 EdDSA Ed25519"'
  const metadata = 'resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp"'
  for (const [mode, expected] of [
    ['off', (realm: string) => `Bearer ${realm}, ${metadata}`],
    ['optional', (realm: string) => `Bearer ${realm}, ${metadata}, DPoP ${realm}, ${metadata}, ${algs}`],
    ['required', (realm: string) => `DPoP ${realm}, ${metadata}, ${algs}`],
  ] as const) {
    const { idp, send } = await rig(t, { mode })
    const answer = await send({})
    t.equal(answer.challenge, expected(`realm="${idp.issuer}"`), mode)
    const document = await send({}, 'GET', '/.well-known/oauth-protected-resource/mcp')
    t.equal(document.status, 200)
  }
  const { send } = await rig(t, { mode: 'off' })
  t.match(await send({ authorization: 'DPoP abc', dpop: 'x' }), { status: 401, error: 'invalid_request' })
})

await t.test('a proof is accepted once, on every replica that shares the store', async (t) => {
  const client = await makeDpopClient()
  const store = makeMemoryStore()
  const one = await rig(t, {}, { parts: { store } })
  const two = await rig(t, {}, { idp: one.idp, parts: { store } })
  const token = await one.idp.token('alice', { cnf: client.cnf })
  const headers = { authorization: `DPoP ${token}`, dpop: await client.proof('POST', resource, token) }
  t.equal((await one.send(headers)).status, 200)
  for (const { send, reasons } of [one, two]) {
    t.match(await send(headers), { status: 401, error: 'invalid_dpop_proof' })
    t.equal(reasons.at(-1), 'proof_replayed')
  }
  const off = await rig(t, { replay: 'none' }, { idp: one.idp, parts: { store: brokenStore() } })
  t.equal((await off.send(headers)).status, 200, 'replay: none')
  t.equal((await off.send(headers)).status, 200, 'replay: none')
})

await t.test('a mark lives as long as a slow replica accepts the proof', async (t) => {
  const client = await makeDpopClient()
  let nowMs = Date.now()
  const store = makeMemoryStore({ now: () => nowMs })
  const { idp, send } = await rig(t, { proofMaxAge: '5m' }, { parts: { store }, now: () => nowMs })
  const token = await idp.token('alice', { cnf: client.cnf }, 3_600)
  const iat = Math.floor(nowMs / 1000) + 290
  const proof = await client.proof('POST', resource, token, { claims: { iat } })
  t.equal((await send({ authorization: `DPoP ${token}`, dpop: proof })).status, 200)
  nowMs = (iat + 300 + 59) * 1000
  const slow = await rig(t, { proofMaxAge: '5m' }, { idp, parts: { store }, now: () => nowMs - 60_000 })
  const answer = await slow.send({ authorization: `DPoP ${token}`, dpop: proof })
  t.match(answer, { status: 401, error: 'invalid_dpop_proof' })
  t.equal(slow.reasons.at(-1), 'proof_replayed')
})

await t.test('the maximum age is a setting', async (t) => {
  const client = await makeDpopClient()
  const { idp, send } = await rig(t, { proofMaxAge: '10s' })
  const token = await idp.token('alice', { cnf: client.cnf })
  for (const [ageSec, status] of [
    [5, 200],
    [15, 401],
    [-5, 200],
    [-15, 401],
  ] as const) {
    const claims = { iat: Math.floor(Date.now() / 1000) - ageSec }
    const proof = await client.proof('POST', resource, token, { claims })
    t.equal((await send({ authorization: `DPoP ${token}`, dpop: proof })).status, status, `${ageSec} s`)
  }
})

function brokenStore(): Store {
  const store = makeMemoryStore()
  void store.close()
  return new Proxy(store, {
    get(target, name) {
      if (name === 'kind') return target.kind
      return () => Promise.reject(Object.assign(new Error('down'), { code: 'X' }))
    },
  })
}

await t.test('if the store is down, no proof is accepted', async (t) => {
  const client = await makeDpopClient()
  const { idp, send } = await rig(t, {}, { parts: { store: brokenStore() } })
  const token = await idp.token('alice', { cnf: client.cnf })
  const proof = await client.proof('POST', resource, token)
  t.ok((await send({ authorization: `DPoP ${token}`, dpop: proof })).status >= 500)
})

await t.test('one caller cannot fill the memory for used proofs', async (t) => {
  let nowMs = Date.now()
  const now = () => nowMs
  const store = makeMemoryStore({ now, maxEntries: maxMarks })
  const mark = makeReplayCheck({ store, maxAgeMs: 60_000, now })
  const proof = (jti: number) => ({ jkt: 'k', jti: String(jti), iat: nowMs / 1000, nonce: undefined })
  for (let i = 0; i < maxMarksPerOwner; i++) await mark(proof(i), 'mallory')
  await t.rejects(mark(proof(-1), 'mallory'), { code: 'RATE_LIMITED', headers: { 'retry-after': '180' } })
  await mark(proof(-2), 'alice')
  nowMs += 180_000
  await mark(proof(-3), 'mallory')
})

await t.test('nonces: required, shared by replicas, renewed, and limited to their purpose', async (t) => {
  const client = await makeDpopClient()
  let nowMs = Date.now()
  const now = () => nowMs
  const store = makeMemoryStore()
  const one = await rig(t, { requireNonce: true }, { parts: { store }, now })
  const two = await rig(t, { requireNonce: true }, { idp: one.idp, parts: { store }, now })
  const token = await one.idp.token('alice', { cnf: client.cnf }, 3_600)
  const send = async (to: Rig, nonce?: string) =>
    to.send({
      authorization: `DPoP ${token}`,
      dpop: await client.proof('POST', resource, token, { nonce, nowMs }),
    })
  const first = await send(one)
  t.match(first, { status: 401, error: 'use_dpop_nonce', cache: 'no-store' })
  t.match(first.challenge, /DPoP .*error="use_dpop_nonce"/)
  const nonce = first.nonce ?? ''
  t.match(nonce, /^[\w-]{48}$/)
  t.match(await send(one, nonce), { status: 200, nonce: null })
  t.match(await send(two, nonce), { status: 200, nonce: null }, 'another replica')
  for (const wrong of [
    'x',
    `${nonce}A`,
    `${nonce.startsWith('A') ? 'B' : 'A'}${nonce.slice(1)}`,
    `${nonce.slice(0, -4)}AAAA`,
    nonce.slice(0, 20),
  ])
    t.match(await send(one, wrong), { status: 401, error: 'use_dpop_nonce' }, wrong)
  nowMs += 160_000
  const renewed = await send(one, nonce)
  t.match(renewed, { status: 200, nonce: /^[\w-]{48}$/, cache: 'no-store' }, 'after half of its life')
  t.not(renewed.nonce, nonce)
  nowMs += 141_000
  t.match(await send(one, nonce), { status: 401, error: 'use_dpop_nonce' }, 'after five minutes')
  t.match(await send(one, renewed.nonce ?? ''), { status: 200 })
  const stranger = await rig(t, { requireNonce: true }, { idp: one.idp, now })
  t.match(await send(stranger, renewed.nonce ?? ''), { status: 401 }, 'a nonce from another server')
})

await t.test('nonces survive the rotation of their secret', async (t) => {
  const client = await makeDpopClient()
  const [old, fresh] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
  let secrets: readonly Uint8Array[] = [old]
  const parts = { store: makeMemoryStore(), nonceSecrets: () => secrets }
  const { idp, send } = await rig(t, { requireNonce: true }, { parts })
  const token = await idp.token('alice', { cnf: client.cnf })
  const call = async (nonce?: string) =>
    send({ authorization: `DPoP ${token}`, dpop: await client.proof('POST', resource, token, { nonce }) })
  const nonce = (await call()).nonce ?? ''
  secrets = [fresh, old]
  t.equal((await call(nonce)).status, 200)
  secrets = [fresh]
  const answer = await call(nonce)
  t.equal(answer.error, 'use_dpop_nonce')
  t.equal((await call(answer.nonce ?? '')).status, 200)
})

await t.test('DPoP requires the URL of the server', async (t) => {
  const oidc = { issuer: 'https://idp.example', audience: 'mcp', dpop: usual }
  t.throws(() => makeAuthenticator({ type: 'oidc', oidc }), {
    message: /oidc\.resource: must be set for DPoP/,
  })
})
