/** OpenID Connect upstreams: discovery, subject, userinfo, parameters, and all kinds of forged responses. */
import { createServer } from 'node:http'
import { SignJWT, exportJWK, generateKeyPair } from 'jose'
import t, { type Test } from 'tap'
import type { OidcUpstreamConfig } from '../../../../runtime/config/index.ts'
import {
  authorizeUrl,
  corp,
  login,
  pkce,
  redeem,
  redirectUri,
  registerClient,
  type Rig,
  startAuthServer,
  tokensOf,
} from '../../../helpers/authserver/authserver.ts'
import { Browser } from '../../../helpers/authserver/cookie-browser.ts'
import { decodeJwt } from 'jose'
import {
  type PeerResponse,
  type Loopback,
  type SeenRequest,
  startLoopback,
} from '../../../helpers/loopback.ts'
import { freePort } from '../../../helpers/gatehouse.ts'
import { proves } from '../../../helpers/proves.ts'
import { until } from '../../../helpers/redis.ts'

proves(
  '2.oidcConfig.issuerUrl',
  '2.oidcConfig.clientId',
  '2.oidcConfig.clientSecretRef',
  '2.oidcConfig.scopes',
)
proves('2.oidcConfig.redirectUri', '2.oidcConfig.additionalAuthorizationParams', '2.oidcConfig.subjectClaim')
proves('2.oidcConfig.userInfoOverride', '2.endpoint.callback', '2.auth.embeddedAuthServer', '2.call.userinfo')
proves('2.userInfo.endpointUrl', '2.userInfo.httpMethod', '2.userInfo.additionalHeaders')

t.test(
  'oidc: the request contains scopes, extra parameters, state, nonce and PKCE, and the forwarded hint',
  async (t) => {
    const rig = await startAuthServer(t, {
      upstreams: ({ issuer, provider }) => [
        {
          ...corp(issuer, provider),
          type: 'oidc',
          additionalAuthorizationParams: { acr_values: 'high', prompt: 'login' },
        } as OidcUpstreamConfig,
      ],
    })
    const clientId = await registerClient(rig)
    const browser = new Browser()
    const page = await browser.open(
      authorizeUrl(rig, {
        client_id: clientId,
        code_challenge: pkce().challenge,
        login_hint: 'alice@example.test',
        prompt: 'select_account',
      }),
    )
    const sent = await browser.press(page, 'approve', rig.provider.issuer)
    t.match(Object.fromEntries(sent.url.searchParams), {
      response_type: 'code',
      client_id: 'gatehouse',
      redirect_uri: `${rig.issuer}/oauth/callback`,
      scope: 'openid offline_access profile email',
      code_challenge: /^[\w-]{43}$/,
      code_challenge_method: 'S256',
      nonce: /^[\w-]{22}$/,
      state: /^[\w-]{22}$/,
      acr_values: 'high',
      login_hint: 'alice@example.test',
      prompt: 'login',
    })
    t.not(sent.url.searchParams.get('code_challenge'), null)
  },
)

t.test(
  'oidc: a provider that is down at start-up affects readiness only, and works once it is up',
  async (t) => {
    const port = await freePort()
    const issuer = `http://127.0.0.1:${port}`
    const rig = await startAuthServer(t, {
      upstreams: (of) => [{ ...corp(of.issuer, of.provider), issuerUrl: issuer } as OidcUpstreamConfig],
    })
    t.match(await rig.server.notReady(), [/corp has not been discovered/])
    const clientId = await registerClient(rig)
    const url = authorizeUrl(rig, { client_id: clientId, code_challenge: pkce().challenge, state: 's' })
    const browser = new Browser()
    const refused = await browser.press(await browser.open(url), 'approve', redirectUri)
    t.match(Object.fromEntries(refused.url.searchParams), { error: 'temporarily_unavailable', state: 's' })
    const late = createServer((_req, res) => {
      res.setHeader('content-type', 'application/json')
      res.end(
        JSON.stringify({
          issuer,
          authorization_endpoint: `${issuer}/a`,
          token_endpoint: `${issuer}/t`,
          jwks_uri: `${issuer}/k`,
          response_types_supported: ['code'],
        }),
      )
    })
    await new Promise<void>((resolve) => late.listen(port, '127.0.0.1', resolve))
    t.teardown(() => late.close())
    await until(async () => {
      rig.pass(6_000)
      const again = await browser.press(await browser.open(url), 'approve', issuer)
      return again.url.href.startsWith(`${issuer}/a`)
    })
    t.same(await rig.server.notReady(), [])
  },
)

t.test('oidc: the subject is the configured claim, and a missing claim ends the login', async (t) => {
  const make = (subjectClaim: string, claims: object): Promise<Rig> =>
    startAuthServer(t, {
      provider: {
        claims: { ...claims },
        configuration: { claims: { openid: ['sub', 'oid'], profile: ['name'], email: ['email'] } },
      },
      upstreams: ({ issuer, provider }) => [
        { ...corp(issuer, provider), subjectClaim } as OidcUpstreamConfig,
      ],
    })
  const subOf = async (rig: Rig): Promise<unknown> =>
    decodeJwt((await tokensOf(await redeem(rig, await login(rig)))).access_token).sub
  const bySub = await make('sub', { oid: 'stable-1' })
  const empty = await make('', { oid: 'stable-1' })
  const byOid = await make('oid', { oid: 'stable-1' })
  t.match(await subOf(bySub), /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  t.ok(await subOf(empty), 'empty means sub')
  t.not(await subOf(byOid), await subOf(bySub))
  const without = await make('oid', {})
  const done = await login(without)
  t.equal(done.response.searchParams.get('error'), 'server_error')
  t.notMatch(done.response.href, /oid/, 'the client does not learn what the provider lacks')
})

t.test('oidc: a user keeps the same subject after a restart without storage', async (t) => {
  const rig = await startAuthServer(t)
  const one = decodeJwt((await tokensOf(await redeem(rig, await login(rig)))).access_token).sub
  const two = decodeJwt((await tokensOf(await redeem(rig, await login(rig)))).access_token).sub
  t.equal(one, two)
})

t.test(
  'oidc: userInfoOverride takes name and e-mail from the mapped fields if the subject is the same',
  async (t) => {
    const seen: SeenRequest[] = []
    let info: object = { id: 'alice', display: 'Alice from userinfo', mails: 7, mail: 'a@userinfo.test' }
    let status = 200
    const peer = await startLoopback((request) => {
      seen.push(request)
      return { status, body: info }
    })
    t.teardown(() => peer.close())
    const userInfoOverride = {
      endpointUrl: `${peer.url}/me`,
      httpMethod: 'POST' as const,
      additionalHeaders: { 'X-Api-Version': '2' },
      subjectFields: ['missing', 'id'],
      nameFields: ['display'],
      emailFields: ['none', 'mail'],
    }
    const rig = await startAuthServer(t, {
      upstreams: ({ issuer, provider }) => [
        { ...corp(issuer, provider), userInfoOverride } as OidcUpstreamConfig,
      ],
    })
    const tokens = await tokensOf(await redeem(rig, await login(rig)))
    t.match(decodeJwt(tokens.id_token), { name: 'Alice from userinfo', email: 'a@userinfo.test' })
    t.match(seen[0], {
      method: 'POST',
      path: '/me',
      body: '',
      headers: { 'x-api-version': '2', authorization: /^Bearer \S+$/ },
    })
    info = { id: 'mallory', display: 'Mallory' }
    t.equal((await login(rig)).response.searchParams.get('error'), 'server_error', 'another user')
    status = 503
    t.match(
      (await login(rig)).code,
      /^gh_ac_/,
      'without a userinfo response only name and e-mail are missing',
    )
  },
)

/** A provider that returns forged responses, which the test chooses. */
async function forger(t: Test): Promise<{
  rig: Rig
  clientId: string
  peer: Loopback
  forge: {
    claims: (nonce: string) => object
    callback: (query: URLSearchParams) => void
    token?: () => PeerResponse
    alg?: string
    kid?: string
  }
}> {
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  let nonce = ''
  const forge: Awaited<ReturnType<typeof forger>>['forge'] = { claims: () => ({}), callback: () => {} }
  const peer: Loopback = await startLoopback(async ({ path, query }): Promise<PeerResponse> => {
    if (path.startsWith('/.well-known')) {
      return {
        body: {
          issuer: peer.url,
          authorization_endpoint: `${peer.url}/authorize`,
          token_endpoint: `${peer.url}/token`,
          jwks_uri: `${peer.url}/jwks`,
          authorization_response_iss_parameter_supported: true,
        },
      }
    }
    if (path === '/jwks')
      return { body: { keys: [{ ...(await exportJWK(publicKey)), kid: 'k', alg: 'ES256', use: 'sig' }] } }
    if (path === '/authorize') {
      nonce = query.get('nonce') ?? ''
      const back = new URLSearchParams({ code: 'c', state: query.get('state') ?? '', iss: peer.url })
      forge.callback(back)
      return { status: 302, headers: { location: `${query.get('redirect_uri')}?${back.toString()}` } }
    }
    if (forge.token) return forge.token()
    const now = Math.floor(Date.now() / 1000)
    const claims = {
      iss: peer.url,
      sub: 'alice',
      aud: 'gatehouse',
      iat: now,
      exp: now + 600,
      nonce,
      ...forge.claims(nonce),
    }
    const idToken = await new SignJWT(claims)
      .setProtectedHeader({ alg: forge.alg ?? 'ES256', kid: forge.kid ?? 'k' })
      .sign(privateKey)
    return { body: { access_token: 'at', token_type: 'Bearer', expires_in: 60, id_token: idToken } }
  })
  t.teardown(() => peer.close())
  const rig = await startAuthServer(t, {
    upstreams: ({ issuer, provider }) => [
      { ...corp(issuer, provider), issuerUrl: peer.url } as OidcUpstreamConfig,
    ],
  })
  return { rig, peer, forge, clientId: await registerClient(rig) }
}

t.test(
  'oidc: an untrustworthy response ends the login, and no provider text reaches the client',
  async (t) => {
    const { rig, forge, clientId } = await forger(t)
    const outcome = async (): Promise<string> => {
      const { response } = await login(rig, { client_id: clientId })
      t.notMatch(response.href, /SECRET|evil/i)
      return response.searchParams.get('error') ?? (response.searchParams.has('code') ? 'ok' : 'nothing')
    }
    t.equal(await outcome(), 'ok', 'the honest provider works')
    const forged: readonly (readonly [string, object])[] = [
      ['another issuer', { iss: 'https://evil.example' }],
      ['another audience', { aud: 'someone-else' }],
      ['several audiences without azp', { aud: ['gatehouse', 'other'] }],
      ['another authorized party', { azp: 'other' }],
      ['another nonce', { nonce: 'replayed' }],
      ['no nonce', { nonce: undefined }],
      ['expired', { exp: Math.floor(Date.now() / 1000) - 3600 }],
      ['no expiry', { exp: undefined }],
      ['no subject', { sub: undefined }],
      ['empty subject', { sub: '' }],
      ['a hash of another access token', { at_hash: 'AAAAAAAAAAAAAAAAAAAAAA' }],
    ]
    for (const [name, claims] of forged) {
      forge.claims = () => claims
      t.equal(await outcome(), 'server_error', name)
    }
    forge.claims = () => ({})
    forge.kid = 'unknown'
    t.equal(await outcome(), 'server_error', 'an unknown key')
    delete forge.kid
    const responses: readonly (readonly [string, PeerResponse, string])[] = [
      ['no ID token', { body: { access_token: 'SECRET', token_type: 'Bearer' } }, 'server_error'],
      [
        'unsigned',
        { body: { access_token: 'a', token_type: 'Bearer', id_token: 'eyJhbGciOiJub25lIn0.e30.' } },
        'server_error',
      ],
      ['no JSON', { headers: { 'content-type': 'text/html' }, body: '<h1>SECRET</h1>' }, 'server_error'],
      ['mac token', { body: { access_token: 'a', token_type: 'mac', id_token: 'x' } }, 'server_error'],
      [
        'refused',
        { status: 400, body: { error: 'invalid_grant', error_description: 'SECRET' } },
        'server_error',
      ],
      ['overloaded', { status: 503, body: 'SECRET' }, 'temporarily_unavailable'],
      ['cut', 'cut', 'temporarily_unavailable'],
    ]
    for (const [name, response, error] of responses) {
      forge.token = () => response
      t.equal(await outcome(), error, name)
    }
  },
)

t.test('oidc: mix-up: the issuer of a response must be the requested one (RFC 9207)', async (t) => {
  const { rig, peer, forge, clientId } = await forger(t)
  const outcome = async (change: (query: URLSearchParams) => void): Promise<string | null> => {
    forge.callback = change
    return (await login(rig, { client_id: clientId })).response.searchParams.get('error')
  }
  t.equal(await outcome((query) => query.set('iss', 'https://evil.example')), 'server_error')
  t.equal(await outcome((query) => query.delete('iss')), 'server_error', 'the metadata announces it')
  t.equal(await outcome((query) => query.append('iss', peer.url)), 'server_error', 'twice')
  t.equal(await outcome((query) => query.append('code', 'other')), 'server_error')
  t.equal(await outcome((query) => query.delete('code')), 'server_error')
  const tokenCalls = peer.seen.filter(({ path }) => path === '/token').length
  t.equal(tokenCalls, 0, 'no code was sent anywhere')
})

t.test(
  "oidc: provider errors become codes of the server, and the provider's text is only logged",
  async (t) => {
    const { rig, forge, clientId } = await forger(t)
    const cases: readonly (readonly [string, string])[] = [
      ['access_denied', 'access_denied'],
      ['login_required', 'login_required'],
      ['consent_required', 'consent_required'],
      ['account_selection_required', 'interaction_required'],
      ['temporarily_unavailable', 'temporarily_unavailable'],
      ['server_error', 'server_error'],
      ['invalid_scope', 'server_error'],
      ['anything <b>', 'server_error'],
    ]
    for (const [theirs, ours] of cases) {
      forge.callback = (query) => {
        query.delete('code')
        query.set('error', theirs)
        query.set('error_description', 'SECRET words\nof the provider')
      }
      const { response } = await login(rig, { client_id: clientId })
      t.equal(response.searchParams.get('error'), ours, theirs)
      t.equal(response.searchParams.get('state'), 'client-state')
      t.notMatch(response.href, /SECRET/)
    }
    t.ok(rig.events.some((event) => event.type === 'login_failed' && event.outcome === 'denied'))
  },
)

t.test("oidc: max_age is rejected when the provider's login is too old or has no time", async (t) => {
  const { rig, forge, clientId } = await forger(t)
  const now = Math.floor(Date.now() / 1000)
  const outcome = async (authTime: number | undefined): Promise<string | null> => {
    forge.claims = () => (authTime === undefined ? {} : { auth_time: authTime })
    return (await login(rig, { client_id: clientId, max_age: '300' })).response.searchParams.get('error')
  }
  t.equal(await outcome(now - 100), null)
  t.equal(await outcome(now - 1000), 'login_required')
  t.equal(await outcome(undefined), 'login_required')
})

t.test(
  'oidc: prompt=login is rejected when the provider reports that the user did not sign in again',
  async (t) => {
    const { rig, peer, forge, clientId } = await forger(t)
    const outcome = async (authTime: number | undefined): Promise<string | null> => {
      forge.claims = () => (authTime === undefined ? {} : { auth_time: authTime })
      return (await login(rig, { client_id: clientId, prompt: 'login' })).response.searchParams.get('error')
    }
    const now = Math.floor(Date.now() / 1000)
    t.equal(await outcome(now), null)
    t.equal(peer.seen.find(({ path }) => path === '/authorize')?.query.get('prompt'), 'login')
    t.equal(await outcome(now - 3600), 'login_required', 'the parameter was removed or ignored')
    t.equal(await outcome(undefined), null, 'a provider may omit the time')
  },
)

t.test('oidc: clocks may differ by at most a minute', async (t) => {
  const { rig, forge, clientId } = await forger(t)
  const now = Math.floor(Date.now() / 1000)
  const outcome = async (claims: Record<string, number>): Promise<string | null> => {
    forge.claims = () => claims
    return (await login(rig, { client_id: clientId })).response.searchParams.get('error')
  }
  t.equal(await outcome({ exp: now - 40 }), null)
  t.equal(await outcome({ exp: now - 90 }), 'server_error')
  t.equal(await outcome({ nbf: now + 40 }), null)
  t.equal(await outcome({ nbf: now + 90 }), 'server_error')
})
