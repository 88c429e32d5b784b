/** Signing keys and HMAC secrets: formats, errors, rotation, ephemeral keys. */
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { calculateJwkThumbprint, createLocalJWKSet, exportJWK, jwtVerify, SignJWT } from 'jose'
import t from 'tap'
import { makeKeyRing } from '../../../runtime/authserver/tokens/key-ring.ts'
import {
  makeCode,
  makeRefreshToken,
  readCode,
  readRefreshToken,
} from '../../../runtime/authserver/tokens/opaque-tokens.ts'
import { proves } from '../../helpers/proves.ts'

proves('2.embeddedAuthServer.signingKeySecretRefs', '2.embeddedAuthServer.signingKeySecretRefs.ephemeral')
proves('2.embeddedAuthServer.hmacSecretRefs', '2.embeddedAuthServer.hmacSecretRefs.length')
proves('2.embeddedAuthServer.hmacSecretRefs.ephemeral', '2.limit.hmac-secret', '2.version.rotation')

const rsa = (bits: number, type: 'pkcs1' | 'pkcs8' = 'pkcs8'): string =>
  generateKeyPairSync('rsa', { modulusLength: bits }).privateKey.export({ type, format: 'pem' }).toString()
const ec = (namedCurve: string, type: 'sec1' | 'pkcs8' = 'pkcs8'): string =>
  generateKeyPairSync('ec', { namedCurve }).privateKey.export({ type, format: 'pem' }).toString()
const ed = (): string =>
  generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

t.test('keys: every accepted format signs with its algorithm, and the published key verifies', async (t) => {
  const forms: readonly (readonly [string, string])[] = [
    [rsa(2048), 'RS256'],
    [rsa(2048, 'pkcs1'), 'RS256'],
    [ec('P-256'), 'ES256'],
    [ec('P-256', 'sec1'), 'ES256'],
    [ec('P-384'), 'ES384'],
    [ec('P-521', 'sec1'), 'ES512'],
    [ed(), 'EdDSA'],
  ]
  for (const [pem, alg] of forms) {
    const ring = await makeKeyRing({ signingKeys: [pem], hmacSecrets: [] })
    const { signing, jwks } = ring
    t.equal(signing.alg, alg)
    t.equal(signing.kid, await calculateJwkThumbprint(await exportJWK(signing.publicKey)))
    t.match(jwks.keys[0], { kid: signing.kid, alg, use: 'sig' })
    t.notOk('d' in (jwks.keys[0] ?? {}), 'only the public half is published')
    const token = await new SignJWT({}).setProtectedHeader({ alg, kid: signing.kid }).sign(signing.privateKey)
    await t.resolves(jwtVerify(token, createLocalJWKSet(jwks)))
  }
})

t.test('keys: all invalid keys are rejected at once, by position', async (t) => {
  const password = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  }).privateKey
  const signingKeys = [rsa(1024), ec('secp256k1'), 'not a key', password]
  const hmacSecrets = [randomBytes(32), randomBytes(31), Buffer.alloc(0)]
  await t.rejects(makeKeyRing({ signingKeys, hmacSecrets }), {
    code: 'INVALID_CONFIG',
    message:
      /^signingKeySecretRefs\[0\] is an RSA key of 1024 bits; at least 2048 are required; signingKeySecretRefs\[1\] must be .*; signingKeySecretRefs\[2\] is not .*; signingKeySecretRefs\[3\] is not .*; hmacSecretRefs\[1\] must have at least 32 bytes; hmacSecretRefs\[2\] /,
  })
})

t.test('keys: all are published, the first one signs, and a repeated key is published once', async (t) => {
  const [a, b] = [ec('P-256'), ed()]
  const ring = await makeKeyRing({ signingKeys: [a, b, a], hmacSecrets: [] })
  t.equal(ring.jwks.keys.length, 2)
  t.equal(ring.signing.kid, ring.jwks.keys[0]?.kid)
  const rotated = await makeKeyRing({ signingKeys: [b, a], hmacSecrets: [] })
  t.same([ring.signing.alg, rotated.signing.alg], ['ES256', 'EdDSA'])
})

t.test('hmac: the first secret signs, all secrets verify, and dropped secrets do not', async (t) => {
  const [old, current] = [randomBytes(32), randomBytes(100)]
  const before = await makeKeyRing({ signingKeys: [], hmacSecrets: [old] })
  const during = await makeKeyRing({ signingKeys: [], hmacSecrets: [current, old] })
  const after = await makeKeyRing({ signingKeys: [], hmacSecrets: [current] })
  const { code, id } = makeCode(before)
  t.equal(readCode(during, code), id)
  t.equal(readCode(after, code), undefined)
  const token = makeRefreshToken(before, id, 3)
  t.same(readRefreshToken(during, token), { family: id, generation: 3 })
  t.equal(readRefreshToken(after, token), undefined)
  t.not(makeRefreshToken(during, id, 3), token, 'signed with the current secret')
})

t.test('hmac: the whole secret is used, and every purpose has its own key', async (t) => {
  const secret = randomBytes(64)
  const tail = Buffer.from(secret)
  tail[63] = (tail[63] ?? 0) ^ 1
  const [a, b] = await Promise.all(
    [secret, tail].map((one) => makeKeyRing({ signingKeys: [], hmacSecrets: [one] })),
  )
  t.not(a?.mac('code', 'x'), b?.mac('code', 'x'))
  const macs = (['code', 'refresh', 'browser', 'csrf'] as const).map((purpose) => a?.mac(purpose, 'x'))
  t.equal(new Set(macs).size, macs.length)
})

t.test('hmac: only one encoding of a MAC is valid', async (t) => {
  const ring = await makeKeyRing({ signingKeys: [], hmacSecrets: [randomBytes(32)] })
  const mac = ring.mac('code', 'x')
  t.equal(ring.isMac('code', 'x', mac), true)
  for (const other of [
    '',
    `${mac}=`,
    `${mac} `,
    mac.slice(0, -1),
    `${mac}A`,
    mac.replace(/.$/, (c) => (c === 'B' ? 'C' : 'B')),
  ]) {
    t.equal(ring.isMac('code', 'x', other), false)
  }
})

t.test('ephemeral: generated once, reported, and kept over a reload without keys', async (t) => {
  const none = { signingKeys: [], hmacSecrets: [] }
  const first = await makeKeyRing(none)
  t.same(first.ephemeral, { signing: true, hmac: true })
  t.equal(first.signing.alg, 'ES256')
  const second = await makeKeyRing(none, first)
  t.equal(second.signing.kid, first.signing.kid)
  t.equal(second.mac('code', 'x'), first.mac('code', 'x'))
  const real = await makeKeyRing({ signingKeys: [ec('P-256')], hmacSecrets: [randomBytes(32)] }, second)
  t.same(real.ephemeral, { signing: false, hmac: false })
  t.notOk(real.jwks.keys.some((key) => key.kid === first.signing.kid))
})
