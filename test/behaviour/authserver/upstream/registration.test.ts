/** The server's own registration at plain OAuth 2.0 upstreams: by endpoint or discovery, renewal, rejection. */
import t from 'tap'
import { makeMemoryStore } from '../../../../runtime/store/index.ts'
import { login, redeem, type Rig, startAuthServer, tokensOf } from '../../../helpers/authserver/authserver.ts'
import { type PeerResponse, startLoopback } from '../../../helpers/loopback.ts'
import { outcome, type PeerAnswers, startPeer, upstream } from '../../../helpers/authserver/oauth2-peer.ts'
import { startOidcProvider } from '../../../helpers/authserver/oidc-provider.ts'
import { proves } from '../../../helpers/proves.ts'
import { until } from '../../../helpers/redis.ts'

proves('2.oauth2Config.dcrConfig', '2.dcrConfig.discoveryUrl', '2.dcrConfig.discoveryUrl.fields')
proves('2.dcrConfig.registrationEndpoint', '2.dcrConfig.initialAccessTokenRef', '2.dcrConfig.softwareId')
proves('2.dcrConfig.softwareStatement', '2.call.registration')

t.test(
  'registration: by endpoint, with all settings, once for all replicas, and used in requests',
  async (t) => {
    const responses: PeerAnswers = {
      registration: { status: 201, body: { client_id: 'registered-id', client_secret: 'registered-secret' } },
    }
    const self = await startPeer(t, responses, (url) => ({
      dcr: {
        registrationEndpoint: `${url}/register`,
        initialAccessToken: () => 'initial',
        softwareId: 'soft-1',
        softwareStatement: 'a.b.c',
      },
    }))
    t.ok((await outcome(self))['sub'])
    t.ok((await outcome(self))['sub'])
    const second = await self.rig.replica()
    t.ok(second)
    const [request, ...more] = self.seen('/register')
    t.equal(more.length, 0)
    t.equal(request?.headers.authorization, 'Bearer initial')
    t.match(JSON.parse(request?.body ?? ''), {
      redirect_uris: [`${self.rig.issuer}/oauth/callback`],
      client_name: 'Gatehouse',
      token_endpoint_auth_method: 'client_secret_basic',
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      scope: 'repo',
      software_id: 'soft-1',
      software_statement: 'a.b.c',
    })
    t.equal(self.seen('/authorize')[0]?.query.get('client_id'), 'registered-id')
    const [, basic = ''] = (self.seen('/token')[0]?.headers.authorization ?? '').split(' ')
    t.equal(decodeURIComponent(Buffer.from(basic, 'base64').toString()), 'registered-id:registered-secret')
  },
)

t.test('registration: renewed before its secret expires, and after the provider has lost it', async (t) => {
  let count = 0
  let rigNow = Date.now
  const responses: PeerAnswers = {}
  const register = (): PeerResponse => {
    count += 1
    const client_secret_expires_at = Math.floor(rigNow() / 1000) + 3600
    return { status: 201, body: { client_id: `id-${count}`, client_secret: 's', client_secret_expires_at } }
  }
  Object.defineProperty(responses, 'registration', { get: register })
  const self = await startPeer(t, responses, (url) => ({ dcr: { registrationEndpoint: `${url}/register` } }))
  rigNow = self.rig.now
  t.ok((await outcome(self))['sub'])
  t.equal(count, 1)
  self.rig.pass(58 * 60_000)
  t.ok((await outcome(self))['sub'])
  t.equal(count, 2)
  responses.token = { status: 401, body: { error: 'invalid_client' } }
  t.same(await outcome(self), { error: 'server_error' })
  delete responses.token
  t.ok((await outcome(self))['sub'])
  t.equal(count, 3)
})

t.test('registration: a rejected or unavailable registration ends the login, not the server', async (t) => {
  const responses: PeerAnswers = {}
  const self = await startPeer(t, responses, (url) => ({ dcr: { registrationEndpoint: `${url}/register` } }))
  for (const registration of [
    { status: 404 },
    { status: 400, body: { error: 'invalid_client_metadata' } },
    { status: 201, body: {} },
    { status: 302, headers: { location: '/other' } },
  ]) {
    responses.registration = registration
    t.same(await outcome(self), { error: 'server_error' })
    const asked = self.seen('/register').length
    t.same(await outcome(self), { error: 'server_error' })
    t.equal(self.seen('/register').length, asked, 'no immediate second request')
    t.match(await self.rig.server.notReady(), [
      /^the upstream provider hub has not accepted this server’s registration/,
    ])
    self.rig.pass(5_000)
  }
  responses.registration = { status: 201, body: { client_id: 'x' } }
  t.ok((await outcome(self))['sub'])
  t.same(await self.rig.server.notReady(), [])
})

t.test(
  'registration: by discovery, with a real provider, and configured endpoints override discovered ones',
  async (t) => {
    const provider = await startOidcProvider({
      features: { registration: { enabled: true, initialAccessToken: 'first' } },
    })
    t.teardown(() => provider.close())
    const rig = await startAuthServer(t, {
      upstreams: ({ issuer }) => [
        {
          name: 'hub',
          type: 'oauth2',
          redirectUri: `${issuer}/oauth/callback`,
          scopes: ['openid', 'offline_access'],
          additionalAuthorizationParams: {},
          authorizationEndpoint: `${provider.issuer}/auth?typed=1`,
          dcr: {
            discoveryUrl: `${provider.issuer}/.well-known/openid-configuration`,
            initialAccessToken: () => 'first',
          },
          identityFromToken: { subjectPath: 'id_token|@upstreamjwt|sub' },
        },
      ],
    })
    const done = await login(rig)
    t.match(await tokensOf(await redeem(rig, done)), { refresh_token: /^gh_rt_/ })
    t.ok(done.browser.visited.some((url) => url.includes('/auth?typed=1&')))
    t.equal(provider.requests.filter((path) => path === '/reg').length, 1)
    t.equal(
      provider.requests.filter((path) => path.startsWith('/.well-known')).length,
      1,
      'one GET, no fallback',
    )
  },
)

t.test('registration: a document of another issuer, or without the endpoint, is not used', async (t) => {
  let body: object = {}
  const peer = await startLoopback(() => ({ body }))
  t.teardown(() => peer.close())
  const make = (): Promise<Rig> =>
    startAuthServer(t, {
      store: makeMemoryStore(),
      upstreams: ({ issuer }) => [
        upstream(issuer, peer.url, {
          dcr: { discoveryUrl: `${peer.url}/.well-known/oauth-authorization-server/tenant` },
        }),
      ],
    })
  body = { issuer: peer.url, registration_endpoint: `${peer.url}/register` }
  const wrong = await make()
  t.equal((await login(wrong)).response.searchParams.get('error'), 'server_error')
  body = { issuer: `${peer.url}/tenant` }
  const without = await make()
  t.equal((await login(without)).response.searchParams.get('error'), 'server_error')
  t.equal(peer.seen.filter(({ method }) => method === 'POST').length, 0, 'no endpoint is guessed')
})

t.test(
  'registration: configured scopes override published ones, and an https callback makes a web client',
  async (t) => {
    proves('2.oauth2Config.scopes')
    const peer = await startLoopback((seen) => {
      if (seen.method === 'POST') return { status: 201, body: { client_id: 'c', client_secret: 's' } }
      const [issuer, registration_endpoint] = [peer.url, `${peer.url}/register`]
      return { body: { issuer, registration_endpoint, scopes_supported: ['a', 'b'] } }
    })
    t.teardown(() => peer.close())
    const dcr = { discoveryUrl: `${peer.url}/.well-known/oauth-authorization-server` }
    const secure = { redirectUri: 'https://gateway.example.com/oauth/callback', scopes: [] }
    for (const [change, expected] of [
      [{ scopes: ['repo'] }, { scope: 'repo', application_type: 'native' }],
      [secure, { scope: 'a b', application_type: 'web', redirect_uris: [secure.redirectUri] }],
    ] as const) {
      const before = peer.seen.length
      await startAuthServer(t, {
        store: makeMemoryStore(),
        upstreams: ({ issuer }) => [upstream(issuer, peer.url, { dcr, ...change })],
      })
      const registered = () => peer.seen.slice(before).find(({ method }) => method === 'POST')
      await until(() => registered() !== undefined)
      t.match(JSON.parse(registered()?.body ?? ''), expected)
    }
  },
)
