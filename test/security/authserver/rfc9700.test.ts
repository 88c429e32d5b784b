/**
 * One test per attack of RFC 9700 section 4, named by its section. docs/evidence/security.md lists the defense against
 * each.
 */
import { decodeJwt } from 'jose'
import t from 'tap'
import { makeAuthenticator } from '../../../runtime/incoming/index.ts'
import { makeMemoryStore } from '../../../runtime/store/index.ts'
import {
  authorizeUrl,
  jsonOf,
  login,
  pkce,
  redeem,
  redirectUri,
  refresh,
  refusal,
  registerClient,
  startAuthServer,
  tokenRequest,
  tokensOf,
  postRegistration,
} from '../../helpers/authserver/authserver.ts'
import { Browser } from '../../helpers/authserver/cookie-browser.ts'

const web = 'https://app.example.com/cb'

t.test('RFC 9700 4.1: no variation of a registered redirect URI receives a response', async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig, { redirect_uris: [web] })
  const host = 'app.example.com'
  for (const uri of [
    `https://${host}/cb/`,
    `https://${host}/cb/../evil`,
    `https://${host}/cb%2f..%2fevil`,
    `https://${host}/cb?next=https://evil.example`,
    `https://${host}/cb#`,
    `https://${host}:8443/cb`,
    `https://${host}.evil.example/cb`,
    `https://evil.example/https://${host}/cb`,
    `https://${host}@evil.example/cb`,
    `https://evil.example\\@${host}/cb`,
    `http://${host}/cb`,
    `HTTPS://${host}/cb`,
    `//${host}/cb`,
    ` ${web}`,
    'javascript:alert(1)',
  ]) {
    const response = await fetch(
      authorizeUrl(rig, { client_id: clientId, redirect_uri: uri, code_challenge: pkce().challenge }),
      { redirect: 'manual' },
    )
    t.same([response.status, response.headers.get('location')], [400, null], uri)
  }
})

t.test('RFC 9700 4.3: URLs in the browser history are worthless, and never contain tokens', async (t) => {
  const rig = await startAuthServer(t)
  const done = await login(rig)
  const tokens = await tokensOf(await redeem(rig, done))
  t.equal(await refusal(await redeem(rig, done)), '400 invalid_grant', 'the code was used')
  const byQuery = await fetch(`${rig.issuer}/oauth/userinfo?access_token=${tokens.access_token}`)
  t.equal(byQuery.status, 401, 'tokens in the query are ignored')
  for (const url of done.browser.visited.filter((one) => one.includes('/oauth/c'))) {
    t.equal(
      (await done.browser.open(url)).status >= 400,
      true,
      `${new URL(url).pathname} cannot be used again`,
    )
  }
})

t.test('RFC 9700 4.4: mix-up: every response names its issuer, as the metadata announces', async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig)
  const metadata = await jsonOf(await fetch(`${rig.issuer}/.well-known/oauth-authorization-server`))
  t.equal(metadata['authorization_response_iss_parameter_supported'], true)
  t.equal((await login(rig, { client_id: clientId })).response.searchParams.get('iss'), rig.issuer)
  const error = await fetch(authorizeUrl(rig, { client_id: clientId }), { redirect: 'manual' })
  t.equal(new URL(error.headers.get('location') ?? '').searchParams.get('iss'), rig.issuer)
  // The same attack with the server as a client of an upstream: test/behaviour/authserver/upstream/oidc.test.ts,
  // "mix-up".
})

t.test('RFC 9700 4.5: a stolen code cannot be injected into another login of the same client', async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig)
  const victim = await login(rig, { client_id: clientId })
  const attacker = await login(rig, { client_id: clientId })
  const injected = await redeem(rig, { ...attacker, code: victim.code })
  t.equal(
    await refusal(injected),
    '400 invalid_grant',
    "the verifier of the attacker's own login does not fit",
  )
  const nonce = await login(rig, { client_id: clientId, nonce: 'of-this-login' })
  t.equal(decodeJwt((await tokensOf(await redeem(rig, nonce))).id_token)['nonce'], 'of-this-login')
})

t.test(
  'RFC 9700 4.6: only the back channel carries access tokens, and the ID token contains at_hash',
  async (t) => {
    const rig = await startAuthServer(t)
    const clientId = await registerClient(rig)
    for (const responseType of ['token', 'id_token token', 'code token', 'code id_token']) {
      const response = await fetch(
        authorizeUrl(rig, {
          client_id: clientId,
          response_type: responseType,
          code_challenge: pkce().challenge,
        }),
        { redirect: 'manual' },
      )
      t.match(response.headers.get('location'), 'error=unsupported_response_type')
    }
    const tokens = await tokensOf(await redeem(rig, await login(rig, { client_id: clientId })))
    t.match(decodeJwt(tokens.id_token)['at_hash'], /^[\w-]{22}$/)
  },
)

t.test(
  'RFC 9700 4.7: a login that started in another browser cannot be finished here, in either direction',
  async (t) => {
    const rig = await startAuthServer(t)
    const clientId = await registerClient(rig)
    const attacker = new Browser()
    const page = await attacker.open(
      authorizeUrl(rig, { client_id: clientId, code_challenge: pkce().challenge }),
    )
    const atProvider = await attacker.press(page, 'approve', rig.provider.issuer)
    const back = await attacker.open(atProvider.url, `${rig.issuer}/oauth/callback`)

    const victim = new Browser()
    const refused = await victim.open(back.url)
    t.equal(refused.status, 403, 'no cookie')
    t.match(refused.text, /started in another browser/)
    t.equal((await attacker.open(back.url)).status, 400, 'and the state cannot be used again')

    const planted = new Browser()
    planted.setCookie(rig.issuer, 'gh-as', `${'A'.repeat(43)}.${'A'.repeat(43)}`)
    const again = await attacker.press(
      await attacker.open(authorizeUrl(rig, { client_id: clientId, code_challenge: pkce().challenge })),
      'approve',
      rig.provider.issuer,
    )
    const secondBack = await attacker.open(again.url, `${rig.issuer}/oauth/callback`)
    t.equal((await planted.open(secondBack.url)).status, 403, 'a cookie from the attacker')
  },
)

t.test('RFC 9700 4.7: an approval only counts from the page that this browser got', async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig)
  const attacker = new Browser()
  const page = await attacker.open(
    authorizeUrl(rig, { client_id: clientId, code_challenge: pkce().challenge }),
  )
  const victim = new Browser()
  t.equal((await victim.press(page, 'approve')).status, 403, 'no form cookie')
  const other = await victim.open(
    authorizeUrl(rig, { client_id: clientId, code_challenge: pkce().challenge }),
  )
  t.equal(other.status, 200)
  t.equal((await victim.press(page, 'approve')).status, 403, "the victim's cookie, the attacker's form")
  const post = (headers: Record<string, string>): Promise<Response> => {
    const field = (name: string): string =>
      new RegExp(`name="${name}" value="([^"]*)"`).exec(other.text)?.[1] ?? ''
    const body = new URLSearchParams({ request: field('request'), form: field('form'), action: 'approve' })
    return victim.request(`${rig.issuer}/oauth/consent`, { method: 'POST', body, headers })
  }
  t.equal((await post({ origin: 'https://evil.example' })).status, 403)
  t.equal((await post({ 'sec-fetch-site': 'cross-site' })).status, 403)
  t.equal((await post({ 'sec-fetch-site': 'same-site' })).status, 403)
  t.equal((await post({ origin: rig.issuer, 'sec-fetch-site': 'same-origin' })).status, 303)
})

t.test('RFC 9700 4.8: PKCE cannot be omitted or downgraded, at either endpoint', async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig)
  for (const change of [
    { code_challenge: undefined },
    { code_challenge_method: 'plain' },
    { code_challenge_method: undefined },
    { code_challenge: '', code_challenge_method: undefined },
  ]) {
    const response = await fetch(
      authorizeUrl(rig, { client_id: clientId, code_challenge: pkce().challenge, ...change }),
      { redirect: 'manual' },
    )
    t.match(response.headers.get('location'), 'error=invalid_request')
  }
  const done = await login(rig, { client_id: clientId })
  t.equal(await refusal(await redeem(rig, done, { code_verifier: undefined })), '400 invalid_request')
  const challenge = decodeURIComponent(done.verifier)
  t.equal(await refusal(await redeem(rig, done, { code_verifier: `${challenge}x` })), '400 invalid_grant')
})

t.test('RFC 9700 4.9, 4.10: a token for one resource is rejected by another', async (t) => {
  const [a, b] = ['https://a.example/mcp', 'https://b.example/mcp']
  const rig = await startAuthServer(t, { config: { allowedAudiences: [a, b] } })
  const tokens = await tokensOf(await redeem(rig, await login(rig), { resource: a }))
  const at = (audience: string) => {
    const oidc = {
      issuer: rig.issuer,
      audience,
      scopes: [],
      clientId: '',
      insecureAllowHttp: false,
      jwksAllowPrivateIp: false,
      protectedResourceAllowPrivateIp: false,
    }
    return makeAuthenticator(
      { type: 'oidc', oidc: { ...oidc, resource: audience } },
      { keys: rig.server.keys },
    )
  }
  t.ok(await at(a).authenticate(`Bearer ${tokens.access_token}`))
  await t.rejects(
    Promise.resolve().then(() => at(b).authenticate(`Bearer ${tokens.access_token}`)),
    { code: 'INVALID_TOKEN' },
  )
})

t.test('RFC 9700 4.13: headers that a proxy should have removed have no effect', async (t) => {
  const rig = await startAuthServer(t, { store: makeMemoryStore({ now: () => 0 }) })
  const forged = {
    host: 'evil.example',
    'x-forwarded-host': 'evil.example',
    'x-forwarded-proto': 'https',
    forwarded: 'host=evil.example',
    'x-original-url': '/evil',
  }
  const metadata = await fetch(`${rig.issuer}/.well-known/openid-configuration`, { headers: forged })
  t.notMatch(await metadata.text(), 'evil.example')
  const statuses = await Promise.all(
    Array.from({ length: 36 }, (_, n) =>
      fetch(`${rig.issuer}/oauth/register`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-forwarded-for': `198.51.100.${n}`,
          'x-real-ip': `198.51.100.${n}`,
        },
        body: JSON.stringify({ redirect_uris: [redirectUri] }),
      }).then((response) => response.status),
    ),
  )
  t.ok(statuses.includes(429), 'an invented address does not change the caller')
})

t.test('RFC 9700 4.14: the theft of a refresh token is detected, and revokes everything', async (t) => {
  const rig = await startAuthServer(t)
  const done = await login(rig)
  const stolen = (await tokensOf(await redeem(rig, done))).refresh_token
  const victim = await tokensOf(await refresh(rig, done.clientId, stolen))
  rig.pass(60_000)
  t.equal(await refusal(await refresh(rig, done.clientId, stolen)), '400 invalid_grant')
  t.equal(await refusal(await refresh(rig, done.clientId, victim.refresh_token)), '400 invalid_grant')
  t.ok(rig.events.some((event) => event.type === 'refresh_reused'))
})

t.test('RFC 9700 4.15: no client can act as a user or choose its own id', async (t) => {
  const rig = await startAuthServer(t, {
    config: { registration: { enabled: true, confidentialClients: true } },
  })
  const response = await postRegistration(rig, {
    redirect_uris: [redirectUri],
    client_id: 'alice',
    grant_types: ['authorization_code', 'client_credentials'],
  })
  const body = await jsonOf(response)
  t.not(body['client_id'], 'alice')
  t.same(body['grant_types'], ['authorization_code'])
  const asClient = await tokenRequest(rig, {
    grant_type: 'client_credentials',
    client_id: String(body['client_id']),
  })
  t.equal(await refusal(asClient), '400 unsupported_grant_type')
})
