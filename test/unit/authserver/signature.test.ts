/** Signatures of this server's tokens, which any other implementation must accept. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { decodeProtectedHeader, jwtVerify } from 'jose'
import t from 'tap'
import { makeKeyRing } from '../../../runtime/authserver/tokens/key-ring.ts'
import { signJwt } from '../../../runtime/authserver/tokens/jwt.ts'

const ec = (namedCurve: string): KeyObject => generateKeyPairSync('ec', { namedCurve }).privateKey

/** In one of 128 elliptic curve signatures, a number is shorter than its field. */
const cases: readonly (readonly [string, KeyObject, number])[] = [
  ['RS256', generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey, 3],
  ['ES256', ec('P-256'), 1_000],
  ['ES384', ec('P-384'), 150],
  ['ES512', ec('P-521'), 30],
  ['EdDSA', generateKeyPairSync('ed25519').privateKey, 30],
]

for (const [alg, key, times] of cases) {
  t.test(`signatures: each ${alg} signature verifies, whatever its numbers`, async (t) => {
    const pem = key.export({ type: 'pkcs8', format: 'pem' }).toString()
    const { signing } = await makeKeyRing({ signingKeys: [pem], hmacSecrets: [] })
    const lengths = new Set<number>()
    for (let n = 0; n < times; n++) {
      const token = await signJwt(signing, 'at+jwt', { n, name: 'Žofie' })
      const { payload } = await jwtVerify(token, signing.publicKey, { algorithms: [alg], typ: 'at+jwt' })
      if (payload['n'] !== n || payload['name'] !== 'Žofie') t.fail(`claims of token ${n}`)
      lengths.add(token.split('.')[2]?.length ?? 0)
    }
    t.equal(lengths.size, 1, 'all signatures have the same length')
    const token = await signJwt(signing, 'JWT', {})
    t.same(decodeProtectedHeader(token), { alg, kid: signing.kid, typ: 'JWT' })
  })
}
