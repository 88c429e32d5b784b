/** Proofs that the client signs: claims, nonces per server, and stored keys. */
import type { IncomingHttpHeaders } from 'node:http'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import t from 'tap'
import { isProofKey, Prover, proofTarget, verifyProof } from '../../../runtime/oauth/index.ts'

const nowMs = 1_800_000_000_000
const url = 'https://mcp.example/mcp?query=1#part'

await t.test('the server accepts a proof for one method, URL and token', async (t) => {
  const prover = new Prover(undefined, () => nowMs)
  const proof = prover.forToken('token').sign('POST', url)
  const rules = {
    method: 'POST',
    isTarget: (target: string) => target === proofTarget('https://mcp.example/mcp'),
    accessToken: 'token',
    maxAgeMs: 60_000,
    nowMs,
  }
  t.match(await verifyProof(proof, rules), { jkt: prover.jkt, iat: nowMs / 1000, nonce: undefined })
  t.same(Object.keys(decodeProtectedHeader(proof).jwk ?? {}), ['kty', 'crv', 'x', 'y'], 'no private member')
  t.equal(decodeJwt(proof)['htu'], 'https://mcp.example/mcp')
  await t.rejects(verifyProof(proof, { ...rules, method: 'GET' }), { message: /method/ })
  await t.rejects(verifyProof(proof, { ...rules, accessToken: 'other' }), { message: /token/ })
  const again = prover.forToken('token').sign('POST', url)
  t.not(decodeJwt(again).jti, decodeJwt(proof).jti)
})

await t.test('a stored key has the same thumbprint', async (t) => {
  const prover = new Prover()
  const stored: unknown = JSON.parse(JSON.stringify(prover.key))
  t.ok(isProofKey(stored))
  if (isProofKey(stored)) t.equal(new Prover(stored).jkt, prover.jkt)
  for (const value of [undefined, {}, { ...prover.key, d: 1 }, { ...prover.key, crv: 'P-384' }])
    t.notOk(isProofKey(value))
})

await t.test('nonces are kept for each server and purpose, and invalid ones are ignored', async (t) => {
  const prover = new Prover()
  const token = prover.forToken('token')
  const nonceFor = (target: string) => decodeJwt(token.sign('GET', target))['nonce']
  const nonceRejection = { 'dpop-nonce': 'n1', 'www-authenticate': 'DPoP error="use_dpop_nonce"' }
  t.equal(nonceFor('https://a.example/mcp'), undefined)
  t.equal(token.note('https://a.example/mcp', 401, nonceRejection), true)
  t.equal(nonceFor('https://a.example/other'), 'n1')
  t.equal(nonceFor('https://b.example/mcp'), undefined)
  t.equal(decodeJwt(prover.signTokenRequest('https://a.example/token'))['nonce'], undefined)
  t.equal(prover.noteTokenResponse('https://a.example/token', new Headers({ 'dpop-nonce': 'n2' })), true)
  t.equal(decodeJwt(prover.signTokenRequest('https://a.example/token'))['nonce'], 'n2')
  t.equal(prover.noteTokenResponse('https://a.example/token', new Headers()), false)

  t.equal(token.note('https://a.example/mcp', 200, { 'dpop-nonce': 'n3' }), false)
  t.equal(nonceFor('https://a.example/mcp'), 'n3', 'a successful response may replace the nonce')
  t.equal(token.note('https://a.example/mcp', 401, { ...nonceRejection, 'dpop-nonce': undefined }), false)
  t.equal(token.note('https://a.example/mcp', 403, nonceRejection), false)
  const rejections: readonly IncomingHttpHeaders[] = [
    { 'dpop-nonce': 'a b', 'www-authenticate': nonceRejection['www-authenticate'] },
    { 'dpop-nonce': 'x'.repeat(1_025), 'www-authenticate': nonceRejection['www-authenticate'] },
    { 'dpop-nonce': 'n4', 'www-authenticate': 'DPoP error="invalid_token"' },
    { 'dpop-nonce': 'n4', 'www-authenticate': 'Bearer error="use_dpop_nonce"' },
  ]
  for (const headers of rejections) t.equal(token.note('https://a.example/mcp', 401, headers), false)
  t.equal(nonceFor('https://a.example/mcp'), 'n4')
})
