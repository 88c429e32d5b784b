/** The authorization code grant: all rejections, the content of tokens, and single use of codes. */
import { decodeJwt } from 'jose'
import t from 'tap'
import {
  authorizeUrl,
  jsonOf,
  login,
  pkce,
  redeem,
  redirectUri,
  refusal,
  registerClient,
  startAuthServer,
  tokenRequest,
  tokensOf,
} from '../../helpers/authserver/authserver.ts'
import { Browser } from '../../helpers/authserver/cookie-browser.ts'
import { proves } from '../../helpers/proves.ts'

proves('2.embeddedAuthServer.tokenLifespans', '2.tokenLifespans.accessTokenLifespan')
proves('2.tokenLifespans.authCodeLifespan')

t.test('token: malformed requests are rejected', async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig)
  const url = `${rig.issuer}/oauth/token`
  const post = (body: string, type = 'application/x-www-form-urlencoded'): Promise<Response> =>
    fetch(url, { method: 'POST', body, headers: { 'content-type': type } })
  t.equal(await refusal(await post('')), '400 invalid_request')
  t.equal(await refusal(await post('{}', 'application/json')), '400 invalid_request')
  t.equal(await refusal(await post(`client_id=${clientId}`)), '400 invalid_request', 'no grant_type')
  t.equal(
    await refusal(await post('grant_type=password&username=a&password=b')),
    '400 unsupported_grant_type',
  )
  t.equal(
    await refusal(await post(`grant_type=password&client_id=${clientId}`)),
    '400 unsupported_grant_type',
  )
  t.equal(
    await refusal(
      await post(`grant_type=urn:ietf:params:oauth:grant-type:token-exchange&client_id=${clientId}`),
    ),
    '400 unsupported_grant_type',
  )
  t.equal(
    await refusal(await post('grant_type=authorization_code&code=x')),
    '401 invalid_client',
    'no client id',
  )
  t.equal(
    await refusal(await post('grant_type=authorization_code&code=x&client_id=nobody')),
    '401 invalid_client',
  )
  t.equal(
    await refusal(await post(`grant_type=authorization_code&client_id=${clientId}`)),
    '400 invalid_request',
    'no code',
  )
  t.equal(
    await refusal(await post(`grant_type=authorization_code&client_id=${clientId}&code=x`)),
    '400 invalid_request',
    'no verifier',
  )
  t.equal(
    await refusal(await post(`grant_type=a&grant_type=b&client_id=${clientId}`)),
    '400 invalid_request',
    'repeated',
  )
  t.equal(
    await refusal(await post(`grant_type=authorization_code&client_id=${clientId}&client_secret=guess`)),
    '401 invalid_client',
  )
  const large = await post(`grant_type=${'x'.repeat(70_000)}`)
  t.equal(large.status, 413)
  const error = await post(`client_id=${clientId}`)
  t.match(Object.fromEntries(error.headers), {
    'content-type': 'application/json',
    'cache-control': 'no-store',
    pragma: 'no-cache',
    'access-control-allow-origin': '*',
  })
})

t.test('token: failed Basic credentials get a Basic challenge', async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig)
  for (const pair of [`${clientId}:guess`, 'nobody:guess', 'no-colon']) {
    const authorization = `Basic ${Buffer.from(pair).toString('base64')}`
    const response = await tokenRequest(
      rig,
      { grant_type: 'refresh_token', refresh_token: 'x' },
      { authorization },
    )
    t.match(response.headers.get('www-authenticate'), /^Basic /)
    t.match(await jsonOf(response), {
      error: 'invalid_client',
      error_description: 'client authentication failed',
    })
  }
})

t.test(
  'token: malformed codes, and codes with the wrong verifier, redirect URI or client are rejected',
  async (t) => {
    const rig = await startAuthServer(t)
    const wrong: readonly (readonly [string, Record<string, string | undefined>])[] = [
      ['another verifier', { code_verifier: 'a'.repeat(43) }],
      ['no redirect_uri though it was sent', { redirect_uri: undefined }],
      ['another redirect_uri', { redirect_uri: `${redirectUri}?` }],
    ]
    for (const [name, parameters] of wrong) {
      const done = await login(rig)
      t.equal(await refusal(await redeem(rig, done, parameters)), '400 invalid_grant', name)
      t.equal(
        await refusal(await redeem(rig, done)),
        '400 invalid_grant',
        `${name}: the attempt burns the code`,
      )
    }
    const done = await login(rig)
    for (const verifier of ['short', 'a'.repeat(129), `${'a'.repeat(42)}ä`, `${'a'.repeat(42)}+`]) {
      t.equal(await refusal(await redeem(rig, done, { code_verifier: verifier })), '400 invalid_grant')
    }
    for (const code of [
      '',
      'gh_ac_',
      `${done.code}x`,
      done.code.replace('gh_ac_', 'gh_rt_'),
      done.code.slice(0, -1),
    ]) {
      t.match(await refusal(await redeem(rig, done, { code })), /^400 invalid_(grant|request)$/)
    }
    const other = await registerClient(rig)
    t.equal(await refusal(await redeem(rig, done, { client_id: other })), '400 invalid_grant')
    t.equal((await redeem(rig, done)).status, 200, 'another client cannot use up the code')
  },
)

t.test('token: a code expires after its lifetime', async (t) => {
  const rig = await startAuthServer(t)
  const done = await login(rig)
  rig.pass(rig.config.authCodeMs)
  t.equal(await refusal(await redeem(rig, done)), '400 invalid_grant')
})

t.test(
  'token: at most one of many simultaneous redemptions succeeds, and the other requests get invalid_grant',
  async (t) => {
    const rig = await startAuthServer(t)
    const done = await login(rig)
    const responses = await Promise.all(Array.from({ length: 6 }, () => redeem(rig, done)))
    const outcomes = await Promise.all(
      responses.map(async (response) => (response.ok ? 'ok' : refusal(response))),
    )
    t.ok(outcomes.filter((outcome) => outcome === 'ok').length <= 1)
    t.ok(
      outcomes.every((outcome) => outcome === 'ok' || outcome === '400 invalid_grant'),
      outcomes.join(),
    )
  },
)

t.test('token: the lifetime is configurable, and a refresh token requires offline_access', async (t) => {
  const rig = await startAuthServer(t, { config: { accessTokenMs: 120_000 } })
  const done = await login(rig, { scope: 'openid' })
  const body = await jsonOf(await redeem(rig, done))
  t.match(body, { token_type: 'Bearer', expires_in: 120, scope: 'openid' })
  t.notOk('refresh_token' in body)
  const claims = decodeJwt(String(body['access_token']))
  t.equal((claims.exp ?? 0) - (claims.iat ?? 0), 120)
  t.same(claims.aud, [rig.resource])
  t.match(claims, { iss: rig.issuer, client_id: done.clientId, scope: 'openid', scp: ['openid'] })
  t.ok(typeof claims['auth_time'] === 'number')
})

t.test('token: a client that is registered without the grant gets no refresh token', async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig, { grant_types: ['authorization_code'] })
  const tokens = await tokensOf(await redeem(rig, await login(rig, { client_id: clientId })))
  t.equal(tokens.refresh_token, '')
  const response = await tokenRequest(rig, {
    grant_type: 'refresh_token',
    refresh_token: 'x',
    client_id: clientId,
  })
  t.equal(await refusal(response), '400 unauthorized_client')
})

t.test(
  'token: without a scope parameter, the client gets all scopes that it is registered for',
  async (t) => {
    const rig = await startAuthServer(t)
    const clientId = await registerClient(rig, { scope: 'openid email' })
    const tokens = await tokensOf(await redeem(rig, await login(rig, { client_id: clientId })))
    t.equal(tokens.scope, 'openid email')
  },
)

t.test(
  'token: with several audiences the client must choose one at either endpoint, and can narrow but not widen',
  async (t) => {
    const [a, b, c] = ['https://a.example/mcp', 'https://b.example/mcp', 'https://c.example/mcp']
    const rig = await startAuthServer(t, { config: { allowedAudiences: [a, b, c] } })
    const clientId = await registerClient(rig)
    const audience = async (response: Response): Promise<unknown> =>
      decodeJwt((await tokensOf(response)).access_token).aud

    const open = await login(rig, { client_id: clientId })
    t.equal(await refusal(await redeem(rig, open)), '400 invalid_target', 'never a token without audience')
    t.same(
      await audience(await redeem(rig, open, { resource: b })),
      [b],
      'and the rejection did not use up the code',
    )

    const chosen = await login(rig, { client_id: clientId, resource: a })
    t.equal(await refusal(await redeem(rig, chosen, { resource: b })), '400 invalid_target')
    t.same(await audience(await redeem(rig, chosen)), [a])

    const foreign = await login(rig, { client_id: clientId, resource: a })
    t.equal(
      await refusal(await redeem(rig, foreign, { resource: 'https://elsewhere.example' })),
      '400 invalid_target',
    )
  },
)

t.test('token: a token is for one resource, even if the user consented to several', async (t) => {
  const [a, b] = ['https://a.example/mcp', 'https://b.example/mcp']
  const rig = await startAuthServer(t, { config: { allowedAudiences: [a, b] } })
  const clientId = await registerClient(rig)
  const { verifier, challenge } = pkce()
  const browser = new Browser()
  const start = authorizeUrl(rig, { client_id: clientId, code_challenge: challenge })
  for (const resource of [a, b]) start.searchParams.append('resource', resource)
  const back = await browser.press(await browser.open(start), 'approve', redirectUri)
  const request = (parameters: Readonly<Record<string, string>>, resources: readonly string[]) => {
    const form = new URLSearchParams({ client_id: clientId, ...parameters })
    for (const resource of resources) form.append('resource', resource)
    return fetch(`${rig.issuer}/oauth/token`, { method: 'POST', body: form })
  }
  const code = {
    grant_type: 'authorization_code',
    code: back.url.searchParams.get('code') ?? '',
    code_verifier: verifier,
    redirect_uri: redirectUri,
  }
  t.equal(await refusal(await request(code, [])), '400 invalid_target')
  t.equal(await refusal(await request(code, [a, b])), '400 invalid_target')
  const first = await tokensOf(await request(code, [a]))
  t.same(decodeJwt(first.access_token).aud, [a])
  const again = { grant_type: 'refresh_token', refresh_token: first.refresh_token }
  t.equal(await refusal(await request(again, [])), '400 invalid_target')
  t.equal(await refusal(await request(again, [a, b])), '400 invalid_target')
  t.same(decodeJwt((await tokensOf(await request(again, [b]))).access_token).aud, [b])
})

t.test('token: an audience parameter has no effect', async (t) => {
  const rig = await startAuthServer(t)
  const tokens = await tokensOf(
    await redeem(rig, await login(rig), { audience: 'https://elsewhere.example' }),
  )
  t.same(decodeJwt(tokens.access_token).aud, [rig.resource])
})

t.test('token: the ID token contains the nonce, and exists only with openid', async (t) => {
  const rig = await startAuthServer(t)
  const tokens = await tokensOf(await redeem(rig, await login(rig, { nonce: 'n-1', scope: 'openid' })))
  const claims = decodeJwt(tokens.id_token)
  t.match(claims, { nonce: 'n-1', iss: rig.issuer })
  t.notOk('name' in claims, 'profile was not requested')
  const without = await tokensOf(await redeem(rig, await login(rig, { scope: 'email' })))
  t.equal(without.id_token, '')
})

t.test('token: max_age is forwarded, and the ID token contains the time of the login', async (t) => {
  const rig = await startAuthServer(t)
  const tokens = await tokensOf(await redeem(rig, await login(rig, { max_age: '3600', scope: 'openid' })))
  const { auth_time: authTime } = decodeJwt(tokens.id_token)
  t.ok(typeof authTime === 'number' && Math.abs(authTime - rig.now() / 1000) < 60)
})
