/** Forged and misused tokens: algorithm tricks, other kinds of tokens, wrong audience, time. */
import { createHash, createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import t from 'tap'
import { accessTokenTypes, localKeys, verifyIdToken, verifyJwt } from '../../runtime/oauth/index.ts'

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const other = generateKeyPairSync('rsa', { modulusLength: 2048 })
const ed = generateKeyPairSync('ed25519')
const jwk = (key: KeyObject, more: object) => ({ ...key.export({ format: 'jwk' }), ...more })
const keys = localKeys(() => keySet)
const keySet = {
  keys: [
    jwk(rsa.publicKey, { kid: 'rs', alg: 'RS256', use: 'sig' }),
    jwk(other.publicKey, { kid: 'enc', use: 'enc' }),
    jwk(ed.publicKey, { kid: 'ed' }),
  ],
}
const now = 1_700_000_000_000
const nowSec = now / 1000
const claims = { iss: 'https://idp.example', aud: 'me', sub: 'a', exp: nowSec + 60 }
const rules = { keys, issuer: 'https://idp.example', audience: 'me', types: accessTokenTypes, now: () => now }

type Signer = (input: string) => Buffer
const rs256 =
  (key: KeyObject): Signer =>
  (input) =>
    sign('sha256', Buffer.from(input), key)

/** A handmade token, because libraries refuse to create an invalid one. */
function forge(header: object, payload: object, signer: Signer): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const input = `${part(header)}.${part(payload)}`
  return `${input}.${signer(input).toString('base64url')}`
}

const refusal = (reason: string) => ({ name: 'TokenRefused', reason })
const good = { alg: 'RS256', kid: 'rs' }

await t.test('verifyJwt: a valid token is accepted, with every accepted typ', async (t) => {
  for (const typ of [undefined, 'JWT', 'at+jwt', 'application/at+jwt'])
    t.match(await verifyJwt(forge({ ...good, typ }, claims, rs256(rsa.privateKey)), rules), { sub: 'a' })
  const eddsa: Signer = (input) => sign(null, Buffer.from(input), ed.privateKey)
  t.match(await verifyJwt(forge({ alg: 'EdDSA', kid: 'ed' }, claims, eddsa), rules), { sub: 'a' })
})

await t.test('verifyJwt: an unsigned token is rejected', async (t) => {
  for (const alg of ['none', 'None', 'NONE', ''])
    await t.rejects(
      verifyJwt(
        forge({ alg, kid: 'rs' }, claims, () => Buffer.alloc(0)),
        rules,
      ),
      { name: 'TokenRefused' },
    )
})

await t.test('verifyJwt: the public key as HMAC secret is rejected', async (t) => {
  const pem = rsa.publicKey.export({ format: 'pem', type: 'spki' })
  const hmac: Signer = (input) => createHmac('sha256', pem).update(input).digest()
  await t.rejects(verifyJwt(forge({ alg: 'HS256', kid: 'rs' }, claims, hmac), rules), refusal('algorithm'))
})

await t.test('verifyJwt: the algorithm is pinned to the key', async (t) => {
  const rs384: Signer = (input) => sign('sha384', Buffer.from(input), rsa.privateKey)
  await t.rejects(verifyJwt(forge({ alg: 'RS384', kid: 'rs' }, claims, rs384), rules), refusal('key'))
  await t.rejects(
    verifyJwt(forge({ alg: 'RS256', kid: 'ed' }, claims, rs256(rsa.privateKey)), rules),
    refusal('key'),
  )
})

await t.test('verifyJwt: an encryption key does not verify signatures', async (t) => {
  await t.rejects(
    verifyJwt(forge({ alg: 'RS256', kid: 'enc' }, claims, rs256(other.privateKey)), rules),
    refusal('key'),
  )
})

await t.test('verifyJwt: keys inside the token are ignored', async (t) => {
  const header = {
    alg: 'RS256',
    jwk: jwk(other.publicKey, {}),
    jku: 'https://evil.example/k',
    x5u: 'https://evil.example/c',
  }
  await t.rejects(verifyJwt(forge(header, claims, rs256(other.privateKey)), rules), refusal('signature'))
})

await t.test('verifyJwt: another signature or changed claims are rejected', async (t) => {
  await t.rejects(verifyJwt(forge(good, claims, rs256(other.privateKey)), rules), refusal('signature'))
  const [header, , signature] = forge(good, claims, rs256(rsa.privateKey)).split('.')
  const changed = Buffer.from(JSON.stringify({ ...claims, sub: 'root' })).toString('base64url')
  await t.rejects(verifyJwt(`${header}.${changed}.${signature}`, rules), refusal('signature'))
})

await t.test('verifyJwt: other kinds of token are not access tokens', async (t) => {
  for (const typ of [
    'logout+jwt',
    'dpop+jwt',
    'oauth-id-jag+jwt',
    'secevent+jwt',
    'client-authentication+jwt',
    7,
  ])
    await t.rejects(verifyJwt(forge({ ...good, typ }, claims, rs256(rsa.privateKey)), rules), refusal('type'))
})

await t.test('verifyJwt: unknown critical headers are rejected', async (t) => {
  const header = { ...good, crit: ['exp2'], exp2: 1 }
  await t.rejects(verifyJwt(forge(header, claims, rs256(rsa.privateKey)), rules), refusal('malformed'))
})

await t.test('verifyJwt: issuer, audience and time are checked', async (t) => {
  const check = (change: object) =>
    verifyJwt(forge(good, { ...claims, ...change }, rs256(rsa.privateKey)), rules)
  await t.rejects(check({ aud: 'another' }), refusal('audience'))
  await t.rejects(check({ aud: [] }), refusal('audience'))
  await t.rejects(check({ aud: undefined }), refusal('audience'))
  await t.rejects(check({ iss: 'https://idp.example/' }), refusal('issuer'))
  await t.rejects(check({ iss: undefined }), refusal('issuer'))
  await t.rejects(check({ exp: undefined }), refusal('claims'))
  await t.rejects(check({ exp: nowSec - 61 }), refusal('expired'))
  await t.rejects(check({ nbf: nowSec + 61 }), refusal('not_yet_valid'))
  t.ok(await check({ aud: ['x', 'me'], exp: nowSec - 59, nbf: nowSec + 59 }), 'a minute of skew')
})

await t.test('verifyJwt: junk is rejected with the same kind of error', async (t) => {
  for (const junk of ['', 'a', 'a.b', 'a.b.c', '..', 'e30.e30.', `${'a'.repeat(9000)}.b.c`])
    await t.rejects(verifyJwt(junk, rules), { name: 'TokenRefused' }, junk.slice(0, 10))
})

await t.test('verifyJwt: a token without kid is verified with the matching keys', async (t) => {
  const twin = localKeys(() => twins)
  const twins = { keys: [jwk(other.publicKey, { alg: 'RS256' }), jwk(rsa.publicKey, { alg: 'RS256' })] }
  const token = forge({ alg: 'RS256' }, claims, rs256(rsa.privateKey))
  t.match(await verifyJwt(token, { ...rules, keys: twin }), { sub: 'a' })
  const forged = forge(
    { alg: 'RS256' },
    claims,
    rs256(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey),
  )
  await t.rejects(verifyJwt(forged, { ...rules, keys: twin }), refusal('signature'))
})

await t.test(
  'verifyIdToken: nonce, authorized party and the hash of the access token are checked',
  async (t) => {
    const half = createHash('sha256').update('at').digest().subarray(0, 16).toString('base64url')
    const base = { ...claims, nonce: 'n', at_hash: half }
    const idRules = {
      keys,
      issuer: 'https://idp.example',
      clientId: 'me',
      nonce: 'n',
      accessToken: 'at',
      now: () => now,
    }
    const check = (change: object) =>
      verifyIdToken(forge({ ...good, typ: 'JWT' }, { ...base, ...change }, rs256(rsa.privateKey)), idRules)
    t.match(await check({}), { sub: 'a' })
    t.match(await check({ aud: ['me', 'x'], azp: 'me' }), { sub: 'a' })
    t.match(await check({ at_hash: undefined }), { sub: 'a' })
    for (const change of [
      { nonce: 'm' },
      { nonce: undefined },
      { azp: 'x' },
      { aud: ['me', 'x'] },
      { at_hash: 'x' },
      { sub: '' },
    ])
      await t.rejects(check(change), refusal('claims'), JSON.stringify(change))
    const accessToken = forge({ ...good, typ: 'at+jwt' }, base, rs256(rsa.privateKey))
    await t.rejects(
      verifyIdToken(accessToken, idRules),
      refusal('type'),
      'an access token is not an ID token',
    )
  },
)
