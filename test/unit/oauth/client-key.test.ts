/** Client assertions: accepted private keys, and the contents of an assertion. */
import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { decodeProtectedHeader, jwtVerify } from 'jose'
import t, { type Test } from 'tap'
import { makeFetch } from '../../../runtime/net/index.ts'
import { type AssertionAlg, clientCredentialsGrant, readClientKey } from '../../../runtime/oauth/index.ts'
import { startLoopback } from '../../helpers/loopback.ts'

const fetch = makeFetch()
t.teardown(() => fetch.close())

const ec = (namedCurve: string): KeyObject => generateKeyPairSync('ec', { namedCurve }).privateKey
const rsa = (modulusLength: number): KeyObject => generateKeyPairSync('rsa', { modulusLength }).privateKey
const p256 = ec('P-256')
const rsa2048 = rsa(2048)
const ed25519 = generateKeyPairSync('ed25519').privateKey
const pem = (key: KeyObject, type: 'pkcs8' | 'pkcs1' | 'sec1' = 'pkcs8'): string =>
  key.export({ type, format: 'pem' }).toString()

async function assertionFrom(t: Test, text: string, alg?: AssertionAlg, assertionAudience?: string) {
  const server = await startLoopback(() => ({ body: { access_token: 'at', token_type: 'Bearer' } }))
  t.teardown(() => server.close())
  const metadata = { issuer: 'https://as.example.com', token_endpoint: `${server.url}/token` }
  const privateKey = readClientKey(text, 'key', alg)
  // The secret is not sent next to the assertion.
  const client = { clientId: 'job', clientSecret: 'unused', privateKey, assertionAudience }
  await clientCredentialsGrant({ server: metadata, client, fetch })
  return { form: Object.fromEntries(server.seen[0]?.form ?? []), headers: server.seen[0]?.headers }
}

const rows: readonly (readonly [string, string, KeyObject, AssertionAlg, AssertionAlg?])[] = [
  ['EC in PKCS#8', pem(p256), p256, 'ES256'],
  ['EC in SEC1', pem(p256, 'sec1'), p256, 'ES256', 'ES256'],
  ['a JWK', JSON.stringify({ ...p256.export({ format: 'jwk' }), kid: 'k1' }), p256, 'ES256'],
  ['RSA in PKCS#1', pem(rsa2048, 'pkcs1'), rsa2048, 'RS256'],
  ['RSA for PS256', pem(rsa2048), rsa2048, 'PS256', 'PS256'],
  ['Ed25519', pem(ed25519), ed25519, 'EdDSA'],
]
for (const [name, text, key, alg, chosen] of rows) {
  t.test(`${name} signs an assertion for the issuer`, async (t) => {
    const { form, headers } = await assertionFrom(t, text, chosen)
    t.equal(headers?.['authorization'], undefined)
    t.match(form, {
      grant_type: 'client_credentials',
      client_id: 'job',
      client_secret: undefined,
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    })
    const assertion = form['client_assertion'] ?? ''
    const kid = text.startsWith('{') ? 'k1' : undefined
    t.match(decodeProtectedHeader(assertion), { alg, kid, typ: 'client-authentication+jwt' })
    const { payload } = await jwtVerify(assertion, createPublicKey(key), { issuer: 'job', subject: 'job' })
    t.equal(payload.aud, 'https://as.example.com')
    t.equal((payload.exp ?? 0) - (payload.iat ?? 0), 60)
    t.type(payload.jti, 'string')
    t.equal(payload.nbf, undefined)
  })
}

t.test('a configured audience replaces the issuer', async (t) => {
  const { form } = await assertionFrom(t, pem(p256), undefined, 'https://as.example.com/token')
  const { payload } = await jwtVerify(form['client_assertion'] ?? '', createPublicKey(p256))
  t.equal(payload.aud, 'https://as.example.com/token')
})

t.test('an unusable key is one error that names the field and does not quote the key', (t) => {
  const bad: readonly (readonly [string, string, AssertionAlg?])[] = [
    ['expected a private key as PEM or JWK', 'not-a-key'],
    ['expected a private key as PEM or JWK', '{"kty":"EC"'],
    [
      'expected a private key as PEM or JWK',
      createPublicKey(p256).export({ type: 'spki', format: 'pem' }).toString(),
    ],
    ['must be an EC key on P-256 or P-384', pem(ec('secp521r1'))],
    ['must be an EC key on P-256 or P-384', pem(rsa(1024))],
    ['cannot sign with ES384', pem(p256), 'ES384'],
    ['cannot sign with PS256', pem(p256), 'PS256'],
  ]
  for (const [message, text, alg] of bad)
    t.throws(() => readClientKey(text, 'spec.key', alg), {
      code: 'INVALID_CONFIG',
      message: new RegExp(`spec\\.key: .*${message}`, 's'),
    })
  t.end()
})
