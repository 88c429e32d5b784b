/** The verifier with unusual responses of an issuer: introspection claims, key changes, no keys at all. */
import { CompactSign, exportJWK, generateKeyPair, SignJWT } from 'jose'
import t, { type Test } from 'tap'
import { makeAuthenticator } from '../../../runtime/incoming/index.ts'
import type { OidcConfig } from '../../../runtime/incoming/config.ts'
import { proves } from '../../helpers/proves.ts'
import { type PeerResponse, startLoopback } from '../../helpers/loopback.ts'

const now = 1_700_000_000_000
const nowSec = now / 1000

async function introspecting(t: Test, response: () => PeerResponse, config: Partial<OidcConfig> = {}) {
  const server = await startLoopback(response)
  t.teardown(() => server.close())
  const authenticator = makeAuthenticator(
    { type: 'oidc', oidc: { introspectionUrl: `${server.url}/i`, audience: 'me', ...config } },
    { now: () => now },
  )
  t.teardown(() => authenticator.close())
  return { server, check: async (token: string) => authenticator.authenticate(`Bearer ${token}`) }
}

const active = { active: true, sub: 'a', aud: 'me' }

await t.test('introspection: claims are checked like those of a JWT', async (t) => {
  const verdicts: readonly (readonly [object, boolean])[] = [
    [{}, true],
    [{ aud: ['x', 'me'] }, true],
    [{ exp: nowSec + 1, nbf: nowSec - 1, iss: 'https://idp.example' }, true],
    [{ exp: null, nbf: null, iss: null }, true],
    [{ aud: undefined }, false],
    [{ aud: null }, false],
    [{ sub: null }, false],
    [{ aud: 'you' }, false],
    [{ aud: 'me ' }, false],
    [{ exp: nowSec - 61 }, false],
    [{ exp: 'soon' }, false],
    [{ nbf: nowSec + 61 }, false],
    [{ iss: 'https://evil.example' }, false],
    [{ sub: undefined }, false],
    [{ sub: '' }, false],
  ]
  let claims: object = {}
  const { check } = await introspecting(t, () => ({ body: { ...active, ...claims } }), {
    issuer: 'https://idp.example',
  })
  let count = 0
  for (const [change, ok] of verdicts) {
    claims = change
    const verdict = check(`token${count++}`)
    if (ok) t.match(await verdict, { subject: 'a', issuer: 'https://idp.example' }, JSON.stringify(change))
    else await t.rejects(verdict, { code: 'INVALID_TOKEN' }, JSON.stringify(change))
  }
})

await t.test('a JWT whose exp is null is rejected', async (t) => {
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  const jwk = { ...(await exportJWK(publicKey)), kid: 'k', alg: 'ES256', use: 'sig' }
  const server = await startLoopback(() => ({ body: { keys: [jwk] } }))
  t.teardown(() => server.close())
  const authenticator = makeAuthenticator(
    { type: 'oidc', oidc: { jwksUrl: `${server.url}/keys`, audience: 'me', issuer: 'https://idp.example' } },
    { now: () => now },
  )
  t.teardown(() => authenticator.close())
  const header = { alg: 'ES256', kid: 'k', typ: 'at+jwt' }
  const claims = { iss: 'https://idp.example', aud: 'me', sub: 'a' }
  const sign = (exp: unknown) =>
    new CompactSign(Buffer.from(JSON.stringify({ ...claims, exp })))
      .setProtectedHeader(header)
      .sign(privateKey)
  const check = async (token: string) => authenticator.authenticate(`Bearer ${token}`)
  t.match(await check(await sign(nowSec + 60)), { subject: 'a' })
  await t.rejects(check(await sign(null)), { code: 'INVALID_TOKEN' })
})

await t.test('an oversized token: the error contains the limit', async (t) => {
  const { server, check } = await introspecting(t, () => ({ body: active }))
  await t.rejects(check('a'.repeat(16_385)), {
    code: 'INVALID_TOKEN',
    message: /longer than 16,384 characters/,
    headers: { 'www-authenticate': /error_description="[^"]*longer than 16,384 characters/ },
  })
  t.equal(server.seen.length, 0)
  t.match(await check('a'.repeat(16_384)), { subject: 'a' })
})

await t.test(
  'introspection: concurrent checks of a new token share one request, and rejections are not cached',
  async (t) => {
    let body: object = active
    const { server, check } = await introspecting(t, () => ({ body }))
    await Promise.all(Array.from({ length: 50 }, () => check('same')))
    t.equal(server.seen.length, 1)
    body = { active: false }
    await t.rejects(check('later'), { code: 'INVALID_TOKEN' })
    body = active
    t.match(await check('later'), { subject: 'a' })
  },
)

await t.test('introspection: an outage is 503 with the peer’s Retry-After', async (t) => {
  const { check } = await introspecting(t, () => ({
    status: 503,
    headers: { 'retry-after': '42' },
    body: 'x',
  }))
  await t.rejects(check('x'), { code: 'AUTH_UNAVAILABLE', headers: { 'retry-after': '42' } })
})

await t.test('introspection: an unlimited response is aborted', async (t) => {
  const { check } = await introspecting(t, () => ({ body: { ...active, junk: 'x'.repeat(70_000) } }))
  await t.rejects(check('x'), { code: 'AUTH_UNAVAILABLE' })
})

await t.test('introspection: JWTs of an issuer without keys are introspected, too', async (t) => {
  const server = await startLoopback(({ path }) =>
    path === '/i' ? { body: active } : { status: 404, body: 'no' },
  )
  t.teardown(() => server.close())
  const authenticator = makeAuthenticator({
    type: 'oidc',
    oidc: { issuer: server.url, introspectionUrl: `${server.url}/i`, audience: 'me' },
  })
  t.teardown(() => authenticator.close())
  const jwt = `${Buffer.from('{"alg":"RS256"}').toString('base64url')}.e30.c2ln`
  t.match(await authenticator.authenticate(`Bearer ${jwt}`), { subject: 'a' })
})

await t.test('keys: a cached token is verified again after the key set changes', async (t) => {
  const pairs = await Promise.all([generateKeyPair('ES256'), generateKeyPair('ES256')])
  const [one, two] = await Promise.all(
    pairs.map(async (pair, index) => ({
      jwk: { ...(await exportJWK(pair.publicKey)), kid: `k${index}`, alg: 'ES256' },
      token: await new SignJWT({ sub: `s${index}` })
        .setProtectedHeader({ alg: 'ES256', kid: `k${index}` })
        .setAudience('me')
        .setExpirationTime(nowSec + 3600)
        .sign(pair.privateKey),
    })),
  )
  let keys = [one?.jwk]
  let clock = now
  const server = await startLoopback(() => ({ body: { keys } }))
  t.teardown(() => server.close())
  const authenticator = makeAuthenticator(
    { type: 'oidc', oidc: { jwksUrl: server.url, audience: 'me' } },
    { now: () => clock },
  )
  t.teardown(() => authenticator.close())
  const check = async (token = '') => authenticator.authenticate(`Bearer ${token}`)
  await check(one?.token)
  keys = [two?.jwk]
  clock += 31_000
  await check(two?.token)
  await t.rejects(check(one?.token), { code: 'INVALID_TOKEN' }, 'within the minute, yet withdrawn')
})

await t.test('tokens: oversized ones are rejected without a request', async (t) => {
  const { server, check } = await introspecting(t, () => ({ body: active }))
  await t.rejects(check('x'.repeat(16_385)), { code: 'INVALID_TOKEN' })
  t.equal(server.seen.length, 0)
})

await t.test('tokens: while the issuer is slow, the number of waiting checks is bounded', async (t) => {
  let release = () => {}
  const hold = new Promise<void>((resolve) => {
    release = resolve
  })
  const server = await startLoopback(async () => {
    await hold
    return { body: { keys: [] } }
  })
  t.teardown(() => server.close())
  const authenticator = makeAuthenticator({ type: 'oidc', oidc: { jwksUrl: server.url, audience: 'me' } })
  t.teardown(() => authenticator.close())
  const head = Buffer.from('{"alg":"RS256"}').toString('base64url')
  const check = async (index: number) => authenticator.authenticate(`Bearer ${head}.e30.${index}`)
  const outcomes = Array.from({ length: 1_001 }, (_, index) =>
    check(index).then(
      () => 'accepted',
      (error: unknown) => (error instanceof Error && 'code' in error ? error.code : error),
    ),
  )
  t.equal(await outcomes[1_000], 'AUTH_UNAVAILABLE', 'the check beyond the limit gets Retry-After')
  release()
  t.same(new Set(await Promise.all(outcomes.slice(0, 1_000))), new Set(['INVALID_TOKEN']))
  t.equal(server.seen.length, 1)
})

await t.test('discovered key set: another scheme or a plain http host is rejected', async (t) => {
  for (const jwks of ['file:///etc/passwd', 'http://keys.example/k']) {
    const server = await startLoopback(() => ({ body: { issuer: server.url, jwks_uri: jwks } }))
    t.teardown(() => server.close())
    const authenticator = makeAuthenticator({ type: 'oidc', oidc: { issuer: server.url, audience: 'me' } })
    t.teardown(() => authenticator.close())
    const jwt = `${Buffer.from('{"alg":"RS256"}').toString('base64url')}.e30.c2ln`
    await t.rejects(async () => authenticator.authenticate(`Bearer ${jwt}`), { code: 'AUTH_UNAVAILABLE' })
  }
})

await t.test('scopes: advertised, not enforced', async (t) => {
  proves('3.config.incomingAuth.oidc.scopes')
  const { check } = await introspecting(t, () => ({ body: { ...active, scope: 'other' } }), {
    scopes: ['read'],
  })
  t.match(await check('x'), { subject: 'a' })
})
