/** Plain OAuth 2.0 upstreams: identity sources and unusual token responses. */
import { createHash } from 'node:crypto'
import { decodeJwt } from 'jose'
import t from 'tap'
import { makeCaller } from '../../../../runtime/net/index.ts'
import { login, redeem, tokensOf } from '../../../helpers/authserver/authserver.ts'
import type { PeerResponse } from '../../../helpers/loopback.ts'
import { bearer, outcome, type PeerAnswers, startPeer } from '../../../helpers/authserver/oauth2-peer.ts'
import { proves } from '../../../helpers/proves.ts'

proves('2.oauth2Config.authorizationEndpoint', '2.oauth2Config.tokenEndpoint', '2.oauth2Config.clientId')
proves('2.oauth2Config.clientSecretRef', '2.oauth2Config.scopes', '2.oauth2Config.redirectUri')
proves(
  '2.oauth2Config.additionalAuthorizationParams',
  '2.oauth2Config.userInfo',
  '2.oauth2Config.synthesized',
)
proves('2.oauth2Config.identityFromToken', '2.oauth2Config.tokenResponseMapping')
proves('2.identityFromToken.subjectPath', '2.identityFromToken.subjectPath.upstreamjwt')
proves('2.identityFromToken.namePath', '2.identityFromToken.emailPath')
proves('2.tokenResponseMapping.accessTokenPath', '2.tokenResponseMapping.expiresInPath')
proves('2.tokenResponseMapping.refreshTokenPath', '2.tokenResponseMapping.scopePath')
proves(
  '2.userInfo.fieldMapping',
  '2.userInfo.fieldMapping.subjectFields',
  '2.userInfo.fieldMapping.nameFields',
)
proves('2.userInfo.fieldMapping.emailFields')

const userInfo = (url: string, more: object = {}) => ({
  endpointUrl: `${url}/me`,
  httpMethod: 'GET' as const,
  additionalHeaders: {},
  subjectFields: ['sub'],
  nameFields: ['name'],
  emailFields: ['email'],
  ...more,
})

t.test(
  "oauth2: the authorization request keeps the endpoint's parameters, always uses PKCE and has no nonce",
  async (t) => {
    const self = await startPeer(t, {}, () => ({ additionalAuthorizationParams: { audience: 'api' } }))
    await outcome(self)
    const [request] = self.seen('/authorize')
    t.match(Object.fromEntries(request?.query ?? []), {
      tenant: '1',
      audience: 'api',
      client_id: 'our-id',
      scope: 'repo',
      response_type: 'code',
      code_challenge_method: 'S256',
      redirect_uri: `${self.rig.issuer}/oauth/callback`,
    })
    t.notOk(request?.query.has('nonce'))
    const [exchange] = self.seen('/token')
    t.match(Object.fromEntries(exchange?.form ?? []), {
      grant_type: 'authorization_code',
      code: 'upstream-code',
      redirect_uri: `${self.rig.issuer}/oauth/callback`,
      code_verifier: /^[\w-]{43}$/,
    })
    const expected = createHash('sha256')
      .update(exchange?.form.get('code_verifier') ?? '')
      .digest('base64url')
    t.equal(request?.query.get('code_challenge'), expected)
    t.match(exchange?.headers.authorization, /^Basic /)
  },
)

t.test(
  'oauth2: without an identity source the subject derives from the access token, without name or e-mail',
  async (t) => {
    const self = await startPeer(t, {})
    const claims = await outcome(self)
    t.equal(claims['sub'], `tk-${createHash('sha256').update('upstream-at').digest('hex').slice(0, 32)}`)
    t.notOk('name' in claims || 'email' in claims)
  },
)

t.test('oauth2: userinfo: the first non-empty field is used, and numbers keep every digit', async (t) => {
  const responses: PeerAnswers = {
    userinfo: {
      headers: { 'content-type': 'application/json' },
      body: '{"id": 9007199254740993, "login": "", "name": "Ada", "mail": "ada@x.test"}',
    },
  }
  const self = await startPeer(t, responses, (url) => ({
    userInfo: userInfo(url, {
      subjectFields: ['login', 'id'],
      emailFields: ['email', 'mail'],
      additionalHeaders: { Accept: 'application/vnd.hub+json' },
    }),
  }))
  const first = await outcome(self)
  t.match(first, { name: 'Ada', email: 'ada@x.test' })
  t.match(self.seen('/me')[0]?.headers, {
    authorization: 'Bearer upstream-at',
    accept: 'application/vnd.hub+json',
  })
  responses.userinfo = { body: { id: '9007199254740993' } }
  t.equal((await outcome(self))['sub'], first['sub'], 'the same id as text')
  responses.userinfo = { headers: { 'content-type': 'application/json' }, body: '{"id": 9007199254740992}' }
  t.not((await outcome(self))['sub'], first['sub'], 'the next id is another user')
  const both = { login: 'ada', email: 'first@x.test', mail: 'second@x.test' }
  responses.userinfo = { body: { ...both, id: 1 } }
  const byLogin = await outcome(self)
  t.equal(byLogin['email'], 'first@x.test', 'the order of the fields decides')
  responses.userinfo = { body: { ...both, id: 2 } }
  t.equal((await outcome(self))['sub'], byLogin['sub'], 'the first field identifies the user')
})

t.test('oauth2: a failed userinfo request, or one without a subject, ends the login', async (t) => {
  const responses: PeerAnswers = {}
  const self = await startPeer(t, responses, (url) => ({ userInfo: userInfo(url) }))
  const cases: readonly (readonly [PeerResponse, string])[] = [
    [{ status: 401 }, 'server_error'],
    [{ body: { name: 'nobody' } }, 'server_error'],
    [{ body: { sub: '' } }, 'server_error'],
    [{ body: { sub: { nested: 1 } } }, 'server_error'],
    [{ body: '<html>' }, 'server_error'],
    [{ status: 500 }, 'temporarily_unavailable'],
    ['cut', 'temporarily_unavailable'],
  ]
  for (const [response, error] of cases) {
    responses.userinfo = response
    t.same(await outcome(self), { error }, JSON.stringify(response))
  }
})

const jwt = (claims: string): string =>
  `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from(claims).toString('base64url')}.sig`

t.test(
  'oauth2: identityFromToken reads the token response, @upstreamjwt reads a JWT in it, and userinfo is not requested',
  async (t) => {
    const responses: PeerAnswers = {}
    const self = await startPeer(t, responses, (url) => ({
      userInfo: userInfo(url),
      identityFromToken: {
        subjectPath: 'access_token|@upstreamjwt|user.id',
        namePath: 'access_token|@upstreamjwt|name',
        emailPath: 'owner.0.mail',
      },
    }))
    responses.token = {
      body: {
        ...bearer,
        access_token: jwt('{"user":{"id":12345678901234567890},"name":"Grace"}'),
        owner: [{ mail: 'g@x.test' }],
      },
    }
    const first = await outcome(self)
    t.match(first, { name: 'Grace', email: 'g@x.test' })
    responses.token = {
      body: {
        ...bearer,
        access_token: jwt('{"user":{"id":12345678901234567891},"name":7}'),
        owner: 'nobody',
      },
    }
    const other = await outcome(self)
    t.not(other['sub'], first['sub'], 'large numbers keep their digits')
    t.notOk('name' in other || 'email' in other, 'non-text values are ignored')
    for (const token of [
      'opaque',
      'a.b',
      'a.!!!.c',
      `a.${Buffer.from('[]').toString('base64url')}.c`,
      jwt('{"user":{}}'),
      jwt('{"user":{"id":{}}}'),
    ]) {
      responses.token = { body: { ...bearer, access_token: token } }
      t.same(await outcome(self), { error: 'server_error' }, token)
    }
    t.equal(self.seen('/me').length, 0)
  },
)

t.test('oauth2: tokenResponseMapping finds the tokens, also on refresh', async (t) => {
  const responses: PeerAnswers = {
    token: {
      body: {
        ok: true,
        authed_user: { access_token: 'mapped-at', scope: 'a,b', ttl: '61', more: { rt: 'mapped-rt' } },
      },
    },
  }
  const self = await startPeer(t, responses, () => ({
    tokenResponseMapping: {
      accessTokenPath: 'authed_user.access_token',
      expiresInPath: 'authed_user.ttl',
      refreshTokenPath: 'authed_user.more.rt',
      scopePath: 'authed_user.scope',
    },
    identityFromToken: { subjectPath: 'authed_user.scope' },
  }))
  const done = await login(self.rig, { client_id: self.clientId })
  const { access_token: token } = await tokensOf(await redeem(self.rig, done))
  const claims = decodeJwt(token)
  const caller = makeCaller({ issuer: self.rig.issuer, subject: claims.sub ?? '', claims })
  t.match(await self.rig.server.upstreamTokens.get(caller), { accessToken: 'mapped-at' })
  responses.token = { body: { ok: true, authed_user: { access_token: 'second-at' } } }
  self.rig.pass(50_000)
  t.match(await self.rig.server.upstreamTokens.get(caller), { accessToken: 'second-at' })
  t.equal(self.seen('/token').at(-1)?.form.get('refresh_token'), 'mapped-rt')
  responses.token = { body: { ok: false, error: 'bad_thing' } }
  t.same(await outcome(self), { error: 'server_error' }, 'ok:false is a rejection')
  responses.token = { body: { ok: false } }
  t.same(await outcome(self), { error: 'server_error' })
  responses.token = { body: { authed_user: {} } }
  t.same(await outcome(self), { error: 'server_error' }, 'no token at the path')
})

t.test(
  'oauth2: a 200 response with an error is a rejection, and a plain text response is unusable',
  async (t) => {
    const responses: PeerAnswers = {}
    const self = await startPeer(t, responses)
    for (const token of [
      { body: { error: 'bad_verification_code' } },
      { body: 'access_token=a&token_type=bearer' },
      { body: { ...bearer, token_type: 'mac' } },
    ]) {
      responses.token = token
      t.same(await outcome(self), { error: 'server_error' })
    }
  },
)

t.test('oauth2: prompt=login is rejected because it cannot be honored', async (t) => {
  const self = await startPeer(t, {})
  const again = await login(self.rig, { client_id: self.clientId, prompt: 'login' })
  t.equal(again.response.searchParams.get('error'), 'login_required')
  t.equal(self.seen('/authorize').length, 0)
})

t.test('oauth2: max_age and prompt=none are rejected because they cannot be honored', async (t) => {
  const self = await startPeer(t, {})
  const aged = await login(self.rig, { client_id: self.clientId, max_age: '60' })
  t.equal(aged.response.searchParams.get('error'), 'login_required')
})
