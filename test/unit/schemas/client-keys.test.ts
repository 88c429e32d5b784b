/** Public keys of declared clients: accepted keys, and the message for each invalid member. */
import { generateKeyPairSync } from 'node:crypto'
import t from 'tap'
import { clientKeyViolations, formatViolations } from '../../../schemas/index.ts'
import type { ClientJwk, DeclaredClient } from '../../../schemas/index.ts'

type Alg = DeclaredClient['signingAlg']
type Pair = ReturnType<typeof generateKeyPairSync>

const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' })
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const ed25519 = generateKeyPairSync('ed25519')

const publicJwk = ({ publicKey }: Pair, more: object = {}): ClientJwk =>
  ({ ...publicKey.export({ format: 'jwk' }), ...more }) as ClientJwk
const privateJwk = ({ privateKey }: Pair): ClientJwk => privateKey.export({ format: 'jwk' }) as ClientJwk
const messageFor = (key: ClientJwk, alg: Alg): string =>
  formatViolations(clientKeyViolations(key, alg, 'key'))

t.test('a key that fits signingAlg is accepted', async (t) => {
  const good: readonly (readonly [Pair, Alg])[] = [
    [p256, 'ES256'],
    [p384, 'ES384'],
    [rsa, 'RS256'],
    [rsa, 'PS256'],
    [ed25519, 'EdDSA'],
  ]
  for (const [pair, alg] of good) {
    t.equal(messageFor(publicJwk(pair), alg), '', alg)
    const labels = { kid: '1', use: 'sig', alg, key_ops: ['verify'], note: 'x' }
    t.equal(messageFor(publicJwk(pair, labels), alg), '', `${alg} with labels`)
  }
  t.equal(messageFor(publicJwk(ed25519, { alg: 'Ed25519' }), 'EdDSA'), '')
  const longest = { n: Buffer.alloc(1024, 0xff).toString('base64url'), e: '_____w' }
  t.equal(messageFor(publicJwk(rsa, longest), 'RS256'), '')
})

t.test('private members are rejected by name, and their values are not repeated', async (t) => {
  const rule = 'must not be set, because it is part of a private key; only public keys are allowed'
  t.equal(messageFor(privateJwk(p256), 'ES256'), `key.d: ${rule}`)
  t.equal(messageFor(privateJwk(ed25519), 'EdDSA'), `key.d: ${rule}`)
  t.equal(
    messageFor(privateJwk(rsa), 'RS256'),
    ['d', 'p', 'q', 'dp', 'dq', 'qi'].map((member) => `key.${member}: ${rule}`).join('\n'),
  )
  for (const member of ['k', 'oth'])
    t.equal(messageFor(publicJwk(rsa, { [member]: 'x' }), 'RS256'), `key.${member}: ${rule}`)
})

t.test('a key that cannot verify assertions is rejected', async (t) => {
  const small = generateKeyPairSync('rsa', { modulusLength: 1024 })
  const strong = 'an RSA key of 2048 to 8192 bits with an exponent of at most 32 bits'
  const number = (bytes: number): string => Buffer.alloc(bytes, 0xff).toString('base64url')
  const bad: readonly (readonly [ClientJwk, Alg, string])[] = [
    [publicJwk(p256), 'RS256', `key: must be ${strong}, because signingAlg is RS256`],
    [publicJwk(small), 'PS256', `key: must be ${strong}, because signingAlg is PS256`],
    [
      { kty: 'RSA', n: number(1032), e: 'AQAB' },
      'RS256',
      `key: must be ${strong}, because signingAlg is RS256`,
    ],
    [publicJwk(rsa, { e: number(5) }), 'RS256', `key: must be ${strong}, because signingAlg is RS256`],
    [publicJwk(p384), 'ES256', 'key: must be an EC key on P-256, because signingAlg is ES256'],
    [publicJwk(p256), 'ES384', 'key: must be an EC key on P-384, because signingAlg is ES384'],
    [publicJwk(rsa), 'EdDSA', 'key: must be an Ed25519 key, because signingAlg is EdDSA'],
    [
      publicJwk(generateKeyPairSync('x25519')),
      'EdDSA',
      'key: must be an Ed25519 key, because signingAlg is EdDSA',
    ],
    [publicJwk(p256, { use: 'enc' }), 'ES256', 'key.use: must be sig'],
    [publicJwk(p256, { key_ops: ['sign'] }), 'ES256', 'key.key_ops: must contain verify'],
    [publicJwk(p256, { key_ops: 'verify' }), 'ES256', 'key.key_ops: must contain verify'],
    [publicJwk(rsa, { alg: 'PS256' }), 'RS256', "key.alg: must be RS256, the client's signingAlg"],
    [publicJwk(p256, { alg: 'none' }), 'ES256', "key.alg: must be ES256, the client's signingAlg"],
    [publicJwk(p256, { x: 'AAAA' }), 'ES256', 'key: is not a valid public key'],
    [{ kty: 'EC' }, 'ES256', 'key: is not a valid public key'],
    [{ kty: 'RSA', n: 1, e: 'AQAB' }, 'RS256', 'key: is not a valid public key'],
  ]
  for (const [key, alg, message] of bad) t.equal(messageFor(key, alg), message, message)
})
