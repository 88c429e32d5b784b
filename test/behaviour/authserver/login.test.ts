/** A complete login: registration, consent, a real provider, code, tokens, refresh. */
import { createRemoteJWKSet, decodeProtectedHeader, jwtVerify } from 'jose'
import t from 'tap'
import {
  authorizeUrl,
  corp,
  login,
  pkce,
  redeem,
  redirectUri,
  refresh,
  registerClient,
  startAuthServer,
  textOf,
  tokensOf,
} from '../../helpers/authserver/authserver.ts'
import { Browser } from '../../helpers/authserver/cookie-browser.ts'

t.test('login: a client registers and gets tokens for a user of the provider', async (t) => {
  const rig = await startAuthServer(t)
  const done = await login(rig)
  t.equal(done.response.searchParams.get('state'), 'client-state')
  t.equal(done.response.searchParams.get('iss'), rig.issuer)
  t.ok(done.response.href.startsWith(redirectUri))
  t.match(done.code, /^gh_ac_/)

  const response = await redeem(rig, done)
  t.equal(response.headers.get('cache-control'), 'no-store')
  t.equal(response.headers.get('pragma'), 'no-cache')
  const tokens = await tokensOf(response)
  t.match(tokens.refresh_token, /^gh_rt_/)

  const keys = createRemoteJWKSet(new URL(`${rig.issuer}/.well-known/jwks.json`))
  const access = await jwtVerify(tokens.access_token, keys, {
    issuer: rig.issuer,
    audience: rig.resource,
    typ: 'at+jwt',
  })
  t.match(access.payload, { client_id: done.clientId, scope: 'openid profile email offline_access' })
  t.same(access.payload['scp'], ['openid', 'profile', 'email', 'offline_access'])
  t.equal(decodeProtectedHeader(tokens.access_token).alg, 'ES256')
  t.notOk('email' in access.payload, 'access tokens contain no personal data')

  const id = await jwtVerify(tokens.id_token, keys, { issuer: rig.issuer, audience: done.clientId })
  t.match(id.payload, { sub: access.payload.sub, name: 'Alice Example', email: 'alice@example.test' })

  const again = await tokensOf(await refresh(rig, done.clientId, tokens.refresh_token))
  t.not(again.refresh_token, tokens.refresh_token)
  const second = await jwtVerify(again.access_token, keys, { issuer: rig.issuer, audience: rig.resource })
  t.equal(second.payload.sub, access.payload.sub)
  t.not(second.payload.jti, access.payload.jti)
  t.ok(textOf(second.payload['tsid']).length > 20)
})

t.test('login: an issuer with a path, and a callback next to it or anywhere on the host', async (t) => {
  for (const callback of [
    '/mcp/oauth/callback',
    '/tenant/oauth/callback',
    '/oauth/callback',
    '/some/where/else',
  ]) {
    const uri = (issuer: string): string => `${new URL(issuer).origin}${callback}`
    const rig = await startAuthServer(t, {
      issuerPath: '/tenant',
      callbackPath: callback,
      upstreams: ({ issuer, provider }) => [{ ...corp(issuer, provider), redirectUri: uri(issuer) }],
    })
    const done = await login(rig)
    t.equal(done.response.searchParams.get('iss'), rig.issuer)
    t.match(await tokensOf(await redeem(rig, done)), { access_token: /^ey/ }, callback)
    const { origin } = new URL(rig.issuer)
    const elsewhere = await fetch(`${origin}/oauth/callback?state=unknown&code=c`)
    t.equal(elsewhere.status, 400, 'the path at the root of the host works, too')
  }
})

t.test(
  "login: when the authorization endpoint has another host than the callback, the callback's host shows the consent page",
  async (t) => {
    const rig = await startAuthServer(t, {
      config: (issuer) => ({ authorizationEndpointBaseUrl: issuer.replace('127.0.0.1', 'localhost') }),
    })
    const { verifier, challenge } = pkce()
    const clientId = await registerClient(rig)
    const url = authorizeUrl(rig, { client_id: clientId, code_challenge: challenge })
    url.hostname = 'localhost'
    const browser = new Browser()
    const page = await browser.open(url)
    t.equal(page.url.origin, rig.issuer)
    const back = await browser.press(page, 'approve', redirectUri)
    const code = back.url.searchParams.get('code') ?? ''
    const done = { clientId, verifier, browser, code, response: back.url }
    t.match(await tokensOf(await redeem(rig, done)), { access_token: /^ey/ })
    t.equal(browser.cookies(url).size, 0, 'no cookie on the other host')
  },
)
