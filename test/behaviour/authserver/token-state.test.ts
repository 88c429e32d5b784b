/** Revocation, introspection and userinfo: a client can inspect and revoke only its own tokens. */
import { decodeJwt } from 'jose'
import t from 'tap'
import { makeCaller } from '../../../runtime/net/index.ts'
import {
  jsonOf,
  type LoggedIn,
  login,
  redeem,
  redirectUri,
  refresh,
  refusal,
  registerClient,
  type Rig,
  startAuthServer,
  textOf,
  type Tokens,
  tokensOf,
  postRegistration,
} from '../../helpers/authserver/authserver.ts'

async function signedIn(rig: Rig, parameters = {}): Promise<LoggedIn & { tokens: Tokens }> {
  const done = await login(rig, parameters)
  return { ...done, tokens: await tokensOf(await redeem(rig, done)) }
}

function post(
  rig: Rig,
  path: string,
  form: Record<string, string>,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(`${rig.issuer}/oauth/${path}`, { method: 'POST', body: new URLSearchParams(form), headers })
}

const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` })

async function isAlive(rig: Rig, token: string): Promise<boolean> {
  return (await fetch(`${rig.issuer}/oauth/userinfo`, { headers: bearer(token) })).status === 200
}

t.test('revoke: either token revokes the grant, its access tokens and the upstream tokens', async (t) => {
  for (const kind of ['refresh_token', 'access_token'] as const) {
    const rig = await startAuthServer(t)
    const one = await signedIn(rig)
    const claims = decodeJwt(one.tokens.access_token)
    const caller = makeCaller({ issuer: rig.issuer, subject: claims.sub ?? '', claims })
    t.ok(await rig.server.upstreamTokens.get(caller))
    const response = await post(rig, 'revoke', { token: one.tokens[kind], client_id: one.clientId })
    t.equal(response.status, 200)
    t.equal(await isAlive(rig, one.tokens.access_token), false, kind)
    t.equal(await refusal(await refresh(rig, one.clientId, one.tokens.refresh_token)), '400 invalid_grant')
    t.equal(await rig.server.upstreamTokens.get(caller), undefined)
    t.ok(rig.events.some((event) => event.type === 'grant_ended'))
  }
})

t.test('revoke: an old refresh token of a live family revokes it too', async (t) => {
  const rig = await startAuthServer(t)
  const one = await signedIn(rig)
  const next = await tokensOf(await refresh(rig, one.clientId, one.tokens.refresh_token))
  await post(rig, 'revoke', { token: one.tokens.refresh_token, client_id: one.clientId })
  t.equal(await refusal(await refresh(rig, one.clientId, next.refresh_token)), '400 invalid_grant')
})

t.test('revoke: revoking one of several logins of a user with a client keeps the other logins', async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig)
  const laptop = await signedIn(rig, { client_id: clientId })
  const desktop = await signedIn(rig, { client_id: clientId })
  await post(rig, 'revoke', { token: laptop.tokens.refresh_token, client_id: clientId })
  t.equal(await isAlive(rig, laptop.tokens.access_token), false)
  t.equal(await isAlive(rig, desktop.tokens.access_token), true)
  t.equal((await refresh(rig, clientId, desktop.tokens.refresh_token)).status, 200)
})

t.test("revoke: the response is always 200, and other clients' tokens stay valid", async (t) => {
  const rig = await startAuthServer(t)
  const one = await signedIn(rig)
  const untrusted = await registerClient(rig)
  for (const token of [one.tokens.refresh_token, one.tokens.access_token, 'nonsense', one.tokens.id_token]) {
    t.equal((await post(rig, 'revoke', { token, client_id: untrusted })).status, 200)
  }
  t.equal(await isAlive(rig, one.tokens.access_token), true)
  t.equal(await refusal(await post(rig, 'revoke', { token: 'x', client_id: 'nobody' })), '401 invalid_client')
  t.equal(await refusal(await post(rig, 'revoke', { client_id: untrusted })), '400 invalid_request')
})

t.test('introspect: an access token as Bearer can inspect tokens of the same client and user', async (t) => {
  const rig = await startAuthServer(t)
  const one = await signedIn(rig)
  const { access_token: access, refresh_token: token } = one.tokens
  const claims = decodeJwt(access)
  t.match(await jsonOf(await post(rig, 'introspect', { token: access }, bearer(access))), {
    active: true,
    token_type: 'Bearer',
    client_id: one.clientId,
    sub: claims.sub,
    scope: claims['scope'],
    aud: [rig.resource],
    iss: rig.issuer,
    exp: claims.exp,
    jti: claims.jti,
  })
  t.match(await jsonOf(await post(rig, 'introspect', { token }, bearer(access))), {
    active: true,
    client_id: one.clientId,
  })
  const next = await tokensOf(await refresh(rig, one.clientId, token))
  t.same(await jsonOf(await post(rig, 'introspect', { token }, bearer(access))), { active: false }, 'rotated')
  t.match(await jsonOf(await post(rig, 'introspect', { token: next.refresh_token }, bearer(access))), {
    active: true,
  })

  const other = await signedIn(rig)
  for (const foreign of [
    other.tokens.access_token,
    other.tokens.refresh_token,
    'nonsense',
    one.tokens.id_token,
  ]) {
    t.same(await jsonOf(await post(rig, 'introspect', { token: foreign }, bearer(access))), { active: false })
  }
  rig.pass(rig.config.accessTokenMs)
  t.equal(await refusal(await post(rig, 'introspect', { token }, bearer(access))), '401 invalid_token')
})

t.test('introspect: public clients are rejected, confidential clients are accepted', async (t) => {
  const rig = await startAuthServer(t, {
    config: { registration: { enabled: true, confidentialClients: true } },
  })
  const one = await signedIn(rig)
  const refused = await post(rig, 'introspect', { token: one.tokens.access_token, client_id: one.clientId })
  t.match(refused.headers.get('www-authenticate'), 'Bearer')
  t.equal(await refusal(refused), '401 invalid_client')
  t.equal(await refusal(await post(rig, 'introspect', { token: 'x' })), '401 invalid_client')

  const registered = await postRegistration(rig, {
    redirect_uris: [redirectUri],
    token_endpoint_auth_method: 'client_secret_post',
  })
  const body = await jsonOf(registered)
  const credentials = { client_id: textOf(body['client_id']), client_secret: textOf(body['client_secret']) }
  const done = await login(rig, { client_id: credentials.client_id })
  const tokens = await tokensOf(await redeem(rig, done, { client_secret: credentials.client_secret }))
  t.match(await jsonOf(await post(rig, 'introspect', { token: tokens.access_token, ...credentials })), {
    active: true,
  })
  t.same(await jsonOf(await post(rig, 'introspect', { token: one.tokens.access_token, ...credentials })), {
    active: false,
  })
})

t.test(
  'userinfo: always contains the subject, other claims depend on scopes, and openid is required',
  async (t) => {
    const rig = await startAuthServer(t)
    const ask = (token?: string, method = 'GET'): Promise<Response> =>
      fetch(`${rig.issuer}/oauth/userinfo`, { method, headers: token === undefined ? {} : bearer(token) })
    const full = await signedIn(rig)
    const sub = decodeJwt(full.tokens.access_token).sub
    t.same(await jsonOf(await ask(full.tokens.access_token)), {
      sub,
      name: 'Alice Example',
      email: 'alice@example.test',
    })
    t.same(await jsonOf(await ask(full.tokens.access_token, 'POST')), {
      sub,
      name: 'Alice Example',
      email: 'alice@example.test',
    })
    const narrow = await signedIn(rig, { scope: 'openid' })
    t.same(await jsonOf(await ask(narrow.tokens.access_token)), { sub })
    const without = await signedIn(rig, { scope: 'email' })
    const refused = await ask(without.tokens.access_token)
    t.match(refused.headers.get('www-authenticate'), 'error="insufficient_scope", scope="openid"')
    t.equal(await refusal(refused), '403 insufficient_scope')
    const withoutToken = await ask()
    t.equal(withoutToken.headers.get('www-authenticate'), 'Bearer')
    t.equal(await refusal(withoutToken), '401 invalid_token')
    t.equal(
      await refusal(await ask(full.tokens.id_token)),
      '401 invalid_token',
      'an ID token is not an access token',
    )
    t.equal(await refusal(await ask(full.tokens.refresh_token)), '401 invalid_token')
  },
)
