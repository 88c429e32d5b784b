/** Incoming tokens with a real OpenID provider: discovery, explicit keys, introspection, rotation, outage. */
import t, { type Test } from 'tap'
import { makeAuthenticator } from '../../../runtime/incoming/index.ts'
import type { OidcConfig } from '../../../runtime/incoming/config.ts'
import { proves } from '../../helpers/proves.ts'
import { startOidcProvider, type TestProviderOptions } from '../../helpers/authserver/oidc-provider.ts'

const resource = 'https://mcp.example/mcp'
const opaque = 'https://opaque.example/mcp'
const clients = [
  { client_id: 'app', client_secret: 's', redirect_uris: ['https://app.example/cb'] },
  { client_id: 'rs', client_secret: 'rs-secret', redirect_uris: [], grant_types: [], response_types: [] },
]

async function rig(
  t: Test,
  from: Partial<OidcConfig> = {},
  options: TestProviderOptions = {},
  now?: () => number,
) {
  const idp = await startOidcProvider({
    clients,
    resources: { [resource]: {}, [opaque]: { opaque: true }, 'https://other.example': {} },
    tokenClaims: () => ({ groups: ['dev'], name: 'Alice' }),
    ...options,
  })
  t.teardown(() => idp.close())
  const config: OidcConfig = { issuer: idp.issuer, audience: resource, ...from }
  const authenticator = makeAuthenticator({ type: 'oidc', oidc: config }, now ? { now } : {})
  t.teardown(() => authenticator.close())
  const check = async (token: string) => authenticator.authenticate(`Bearer ${token}`)
  return { idp, authenticator, check }
}

for (const alg of ['RS256', 'PS256', 'ES256', 'EdDSA']) {
  await t.test(`JWT: ${alg}, keys by discovery`, async (t) => {
    proves('1.auth.incoming', '1.auth.incoming.jwks-discovered', '1.does.protect')
    const { idp, check } = await rig(t, {}, { alg })
    const token = await idp.accessToken({ clientId: 'app', resource })
    t.match(await check(token), {
      subject: 'alice',
      issuer: idp.issuer,
      displayName: 'Alice',
      token,
      claims: { groups: ['dev'], client_id: 'app', aud: resource },
    })
    const other = await idp.accessToken({ clientId: 'app', resource: 'https://other.example' })
    await t.rejects(check(other), { code: 'INVALID_TOKEN' }, 'a token for another audience')
  })
}

await t.test('JWT: a hundred requests with a known token cause no request to the issuer', async (t) => {
  const { idp, check } = await rig(t)
  const token = await idp.accessToken({ clientId: 'app', resource })
  await check(token)
  const before = idp.requests.length
  await Promise.all(Array.from({ length: 100 }, () => check(token)))
  t.equal(idp.requests.length, before)
})

await t.test('JWT: an explicit key set URL is used, and discovery is not', async (t) => {
  proves('1.auth.incoming.jwks-url', '3.config.incomingAuth.oidc.jwksUrl')
  const idp = await startOidcProvider({ clients, resources: { [resource]: {} } })
  t.teardown(() => idp.close())
  const authenticator = makeAuthenticator({
    type: 'oidc',
    oidc: { jwksUrl: `${idp.issuer}/jwks`, audience: resource },
  })
  t.teardown(() => authenticator.close())
  const token = await idp.accessToken({ clientId: 'app', resource })
  t.match(await authenticator.authenticate(`Bearer ${token}`), { subject: 'alice', issuer: idp.issuer })
  t.same(idp.requests, ['/jwks'])
})

await t.test('JWT: a token with another issuer and a known key is rejected', async (t) => {
  proves('1.auth.incoming')
  const idp = await startOidcProvider({ clients, resources: { [resource]: {} } })
  t.teardown(() => idp.close())
  const accepts = async (issuer: string): Promise<unknown> => {
    const oidc = { issuer, jwksUrl: `${idp.issuer}/jwks`, audience: resource }
    const authenticator = makeAuthenticator({ type: 'oidc', oidc })
    t.teardown(() => authenticator.close())
    return authenticator.authenticate(`Bearer ${await idp.accessToken({ clientId: 'app', resource })}`)
  }
  t.match(await accepts(idp.issuer), { subject: 'alice' })
  await t.rejects(accepts('https://idp.example'), { code: 'INVALID_TOKEN' })
})

await t.test('JWT: a token of another issuer is rejected', async (t) => {
  const evil = await startOidcProvider({ clients, resources: { [resource]: {} } })
  t.teardown(() => evil.close())
  const { check } = await rig(t)
  const token = await evil.accessToken({ clientId: 'app', resource })
  await t.rejects(check(token), { code: 'INVALID_TOKEN' })
})

await t.test(
  'outage: 503 while the issuer is down, success when it is up again, and never 401',
  async (t) => {
    let down = true
    let now = Date.now()
    const intercept: TestProviderOptions['intercept'] = (_req, res) => {
      if (down) res.writeHead(500).end()
      return down
    }
    const { idp, check } = await rig(t, {}, { intercept }, () => now)
    const token = await idp.accessToken({ clientId: 'app', resource })
    await t.rejects(check(token), { code: 'AUTH_UNAVAILABLE', headers: { 'retry-after': /^\d+$/ } })
    down = false
    now += 60_000
    t.match(await check(token), { subject: 'alice' })
    down = true
    now += 600_000
    t.match(await check(token), { subject: 'alice' }, 'known keys outlive a short outage')
  },
)

await t.test(
  'introspection: opaque tokens are checked with the client secret, and cached for a minute',
  async (t) => {
    proves(
      '1.auth.incoming.introspection',
      '3.config.incomingAuth.oidc.introspectionUrl',
      '3.config.incomingAuth.oidc.clientId',
    )
    let now = Date.now()
    const idp = await startOidcProvider({ clients, resources: { [opaque]: { opaque: true } } })
    t.teardown(() => idp.close())
    const authenticator = makeAuthenticator(
      {
        type: 'oidc',
        oidc: {
          introspectionUrl: `${idp.issuer}/token/introspection`,
          audience: opaque,
          clientId: 'rs',
          clientSecret: 'rs-secret',
        },
      },
      { now: () => now },
    )
    t.teardown(() => authenticator.close())
    const check = async (token: string) => authenticator.authenticate(`Bearer ${token}`)
    const token = await idp.accessToken({ clientId: 'app', resource: opaque })
    t.match(await check(token), {
      subject: 'alice',
      issuer: idp.issuer,
      claims: { scope: 'read', client_id: 'app' },
    })
    await Promise.all([check(token), check(token)])
    t.same(idp.requests, ['/token/introspection'], 'no discovery, and one request for both checks')
    now += 60_000
    await check(token)
    t.equal(idp.requests.length, 2)
    await t.rejects(check('never-issued'), { code: 'INVALID_TOKEN' })
  },
)

await t.test('introspection: an opaque token for another resource is rejected', async (t) => {
  const { idp, check } = await rig(t, { audience: resource })
  const token = await idp.accessToken({ clientId: 'app', resource: opaque })
  await t.rejects(check(token), { code: 'INVALID_TOKEN' }, 'no introspection configured')
  const asking = makeAuthenticator({
    type: 'oidc',
    oidc: {
      issuer: idp.issuer,
      audience: resource,
      introspectionUrl: `${idp.issuer}/token/introspection`,
      clientId: 'rs',
      clientSecret: 'rs-secret',
    },
  })
  t.teardown(() => asking.close())
  await t.rejects(async () => asking.authenticate(`Bearer ${token}`), { code: 'INVALID_TOKEN' })
  const jwt = await idp.accessToken({ clientId: 'app', resource })
  t.match(await asking.authenticate(`Bearer ${jwt}`), { subject: 'alice' }, 'JWTs are still checked by key')
})

await t.test(
  'introspection: a wrong client secret of the server counts as an outage, not as an invalid token',
  async (t) => {
    const idp = await startOidcProvider({ clients, resources: { [opaque]: { opaque: true } } })
    t.teardown(() => idp.close())
    const authenticator = makeAuthenticator({
      type: 'oidc',
      oidc: {
        introspectionUrl: `${idp.issuer}/token/introspection`,
        audience: opaque,
        clientId: 'rs',
        clientSecret: 'x',
      },
    })
    t.teardown(() => authenticator.close())
    const token = await idp.accessToken({ clientId: 'app', resource: opaque })
    await t.rejects(async () => authenticator.authenticate(`Bearer ${token}`), { code: 'AUTH_UNAVAILABLE' })
  },
)
