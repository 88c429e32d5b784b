/** Errors of token endpoints, one row for each response, from real responses. */
import t from 'tap'
import { credentialFailure } from '../../../runtime/outgoing/failure.ts'
import { makeFetch } from '../../../runtime/net/index.ts'
import { endsRefreshToken, refreshGrant, tokenRefusal } from '../../../runtime/oauth/index.ts'
import type { TokenRefusal } from '../../../runtime/oauth/refusals/token-refusal.ts'
import { startLoopback } from '../../helpers/loopback.ts'
import { tokenRefusals } from '../../helpers/outgoing/token-refusals.ts'

const fetch = makeFetch()
t.teardown(() => fetch.close())

const codes: Readonly<Record<TokenRefusal, string>> = {
  temporary: 'BACKEND_AUTH_UNAVAILABLE',
  client: 'BACKEND_AUTH_FAILED',
  grant: 'SUBJECT_REFUSED',
  request: 'BACKEND_AUTH_FAILED',
  unclear: 'BACKEND_AUTH_FAILED',
}

for (const { name, response, refusal } of tokenRefusals) {
  await t.test(`refusal: ${name} is ${refusal}`, async (t) => {
    const peer = await startLoopback(() => response)
    t.teardown(() => peer.close())
    const error: unknown = await refreshGrant({
      server: { issuer: peer.url, token_endpoint: `${peer.url}/token` },
      client: { clientId: 'c' },
      fetch,
      refreshToken: 'rt',
    }).catch((failure: unknown) => failure)
    t.equal(tokenRefusal(error), refusal)
    t.equal(endsRefreshToken(error), refusal === 'grant' || refusal === 'request')
    t.match(credentialFailure(error, { subject: true }), { code: codes[refusal] }, 'of a strategy')
  })
}

t.test('refusal: an oversized response is a protocol error with its own text', async (t) => {
  for (const status of [200, 400, 503]) {
    const peer = await startLoopback(() => ({ status, body: ' '.repeat(10_000_000) }))
    t.teardown(() => peer.close())
    const error: unknown = await refreshGrant({
      server: { issuer: peer.url, token_endpoint: `${peer.url}/token` },
      client: { clientId: 'c' },
      fetch,
      refreshToken: 'rt',
    }).catch((failure: unknown) => failure)
    t.match(error, {
      kind: 'protocol',
      code: 'OAUTH_PROTOCOL',
      message: /the token endpoint returned more than 1048576 bytes/,
    })
    t.equal(tokenRefusal(error), 'unclear')
    t.equal(endsRefreshToken(error), false)
    t.match(credentialFailure(error, { subject: true }), { code: 'BACKEND_AUTH_FAILED' })
  }
})

t.test(
  'refusal: a missing response is temporary, and any error other than an OAuth error has no refusal',
  async (t) => {
    const error: unknown = await refreshGrant({
      server: { issuer: 'http://127.0.0.1:1', token_endpoint: 'http://127.0.0.1:1/token' },
      client: { clientId: 'c' },
      fetch,
      refreshToken: 'rt',
    }).catch((failure: unknown) => failure)
    t.equal(tokenRefusal(error), 'temporary')
    t.equal(tokenRefusal(new Error('x')), undefined)
    t.equal(endsRefreshToken(new Error('x')), false)
  },
)
