/** Declared clients get tokens for themselves, and no access to anything that belongs to a user. */
import { createRemoteJWKSet, decodeJwt, jwtVerify } from 'jose'
import * as openid from 'openid-client'
import t from 'tap'
import {
  authorizeUrl,
  jsonOf,
  pkce,
  postRegistration,
  redirectUri,
  refusal,
  type Rig,
  startAuthServer,
  textOf,
  tokenRequest,
  tokensOf,
} from '../../../helpers/authserver/authserver.ts'
import {
  assertionType,
  declared,
  makeKey,
  newSecret,
  requestWithAssertion,
  signAssertion,
} from '../../../helpers/authserver/declared-client.ts'
import { callerOf, startWithClient, TestClient } from '../../../helpers/authserver/test-client.ts'

const secret = newSecret()
const second = newSecret()
const key = await makeKey()

const resourcesOf = (issuer: string): string[] => [`${issuer}/mcp`, `${issuer}/other`]

/** Clients with a secret, two resources and a key. */
const clientsOf = (issuer: string) => [
  declared('job', [`${issuer}/mcp`], { secrets: [() => secret, () => second] }),
  declared('two', resourcesOf(issuer), { secrets: [() => secret] }),
  declared('signer', [`${issuer}/mcp`], { jwks: { keys: [key.jwk] } }),
]

const machines = (issuer: string) => ({
  upstreams: [],
  allowedAudiences: resourcesOf(issuer),
  clients: clientsOf(issuer),
})

/** Sends a token request as the client `job`, unless `parameters` names another client. */
const ask = (rig: Pick<Rig, 'issuer'>, parameters: Record<string, string | undefined> = {}) =>
  tokenRequest(rig, {
    grant_type: 'client_credentials',
    client_id: 'job',
    client_secret: secret,
    ...parameters,
  })

const post = (rig: Rig, endpoint: string, form: Record<string, string>, headers = {}) =>
  fetch(`${rig.issuer}/oauth/${endpoint}`, { method: 'POST', body: new URLSearchParams(form), headers })

const basic = (id: string, password: string) => ({
  authorization: `Basic ${Buffer.from(`${id}:${password}`).toString('base64')}`,
})

t.test('openid-client gets a token with each authentication method', async (t) => {
  const rig = await startAuthServer(t, { config: machines })
  const methods: readonly (readonly [string, openid.ClientAuth])[] = [
    ['job', openid.ClientSecretBasic(secret)],
    ['job', openid.ClientSecretPost(second)],
    ['signer', openid.PrivateKeyJwt({ key: key.privateKey, kid: key.jwk.kid })],
  ]
  for (const [id, method] of methods) {
    for (const algorithm of ['oauth2', 'oidc'] as const) {
      const options = { algorithm, execute: [openid.allowInsecureRequests] }
      const client = await openid.discovery(new URL(rig.issuer), id, undefined, method, options)
      const tokens = await openid.clientCredentialsGrant(client, { scope: 'tools:read' })
      t.match(tokens, { token_type: 'bearer', expires_in: 900, scope: 'tools:read' })
      t.match(await openid.tokenIntrospection(client, tokens.access_token), {
        active: true,
        sub: `client:${id}`,
      })
      await openid.tokenRevocation(client, tokens.access_token)
      t.equal((await openid.tokenIntrospection(client, tokens.access_token)).active, false)
    }
  }
})

t.test('a machine token names the client and contains nothing about a user or a session', async (t) => {
  const rig = await startAuthServer(t, { config: machines })
  const response = await ask(rig)
  t.equal(response.headers.get('cache-control'), 'no-store')
  const body = await jsonOf(response)
  t.strictSame(Object.keys(body).toSorted(), ['access_token', 'expires_in', 'scope', 'token_type'])
  t.equal(body['scope'], 'tools:read tools:write', 'all declared scopes')
  const token = textOf(body['access_token'])
  const keys = createRemoteJWKSet(new URL(`${rig.issuer}/.well-known/jwks.json`))
  const { payload, protectedHeader } = await jwtVerify(token, keys, { issuer: rig.issuer })
  t.equal(protectedHeader.typ, 'at+jwt')
  t.match(payload, {
    sub: 'client:job',
    client_id: 'job',
    auth_method: 'client_secret_post',
    aud: [`${rig.issuer}/mcp`],
    scope: 'tools:read tools:write',
    scp: ['tools:read', 'tools:write'],
    jti: String,
  })
  t.equal((payload.exp ?? 0) - (payload.iat ?? 0), 900)
  t.notOk('tsid' in payload || 'gid' in payload || 'auth_time' in payload)
  const userinfo = await post(rig, 'userinfo', {}, { authorization: `Bearer ${token}` })
  t.equal(await refusal(userinfo), '401 invalid_token')
  t.equal(await rig.server.isLive(callerOf(token)), true)
  t.match(
    rig.events.filter(({ type }) => type === 'token_issued'),
    [{ outcome: 'success', clientId: 'job', userId: 'client:job', source: '127.0.0.1' }],
  )
  t.notMatch(rig.logged(), secret)
})

t.test('tokenLifespan sets the lifetime of tokens', async (t) => {
  const rig = await startAuthServer(t, {
    config: (issuer) => ({
      ...machines(issuer),
      clients: [declared('job', [`${issuer}/mcp`], { secrets: [() => secret], tokenMs: 60_000 })],
    }),
  })
  const body = await jsonOf(await ask(rig))
  t.equal(body['expires_in'], 60)
  const { exp = 0, iat = 0 } = decodeJwt(textOf(body['access_token']))
  t.equal(exp - iat, 60)
})

t.test('a client gets only declared scopes', async (t) => {
  const rig = await startAuthServer(t, { config: machines })
  t.equal((await tokensOf(await ask(rig, { scope: 'tools:write tools:write' }))).scope, 'tools:write')
  for (const scope of ['tools:admin', 'tools:read tools:admin', 'openid', 'offline_access', 'TOOLS:READ'])
    t.equal(await refusal(await ask(rig, { scope })), '400 invalid_scope', scope)
})

t.test('a client gets a token for one declared resource', async (t) => {
  const rig = await startAuthServer(t, { config: machines })
  const [mcp = '', other = ''] = resourcesOf(rig.issuer)
  const audience = async (response: Promise<Response>) =>
    decodeJwt((await tokensOf(await response)).access_token).aud
  t.strictSame(await audience(ask(rig)), [mcp], 'optional when there is only one')
  t.strictSame(await audience(ask(rig, { resource: `${mcp}/` })), [mcp])
  t.strictSame(await audience(ask(rig, { client_id: 'two', resource: other })), [other])
  t.equal(await refusal(await ask(rig, { client_id: 'two' })), '400 invalid_target', 'one must be requested')
  t.equal(await refusal(await ask(rig, { resource: other })), '400 invalid_target', 'not declared')
  t.equal(await refusal(await ask(rig, { resource: 'https://elsewhere.example/mcp' })), '400 invalid_target')
  const both = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: 'two',
    client_secret: secret,
  })
  both.append('resource', mcp)
  both.append('resource', other)
  const response = await fetch(`${rig.issuer}/oauth/token`, { method: 'POST', body: both })
  t.equal(await refusal(response), '400 invalid_target', 'two are rejected')
})

t.test(
  'every failed authentication gets the same response, and the audit event has the reason',
  async (t) => {
    const rig = await startAuthServer(t, { config: machines })
    const assertion = await signAssertion(key, { clientId: 'job', issuer: rig.issuer })
    const type = 'urn:ietf:params:oauth:client-assertion-type:saml2-bearer'
    const rows: readonly (readonly [string, string | undefined, () => Promise<Response>])[] = [
      ['unknown client', undefined, () => ask(rig, { client_id: 'untrusted' })],
      ['wrong secret', 'job', () => ask(rig, { client_secret: newSecret() })],
      ['wrong secret', 'job', () => ask(rig, { client_secret: `${secret}x` })],
      ['wrong authentication method', 'job', () => ask(rig, { client_secret: undefined })],
      ['wrong authentication method', 'signer', () => ask(rig, { client_id: 'signer' })],
      ['wrong authentication method', 'job', () => requestWithAssertion(rig, assertion)],
      [
        'no client authentication',
        undefined,
        () => ask(rig, { client_id: undefined, client_secret: undefined }),
      ],
      [
        'client_assertion is missing, or client_assertion_type is not supported',
        undefined,
        () => requestWithAssertion(rig, assertion, { client_assertion_type: type }),
      ],
      ['the assertion does not name a client', undefined, () => requestWithAssertion(rig, 'x.y.z')],
    ]
    const bodies = new Set<string>()
    for (const [reason, clientId, send] of rows) {
      const response = await send()
      t.equal(response.status, 401, reason)
      bodies.add(await response.text())
      t.match(rig.events.at(-1), { type: 'client_rejected', outcome: 'denied', reason, source: '127.0.0.1' })
      t.equal(rig.events.at(-1)?.clientId, clientId)
    }
    t.equal(bodies.size, 1)
    t.equal(rig.events.length, rows.length)
    const challenged = await tokenRequest(rig, { grant_type: 'client_credentials' }, basic('job', 'wrong'))
    t.match(challenged.headers.get('www-authenticate'), /^Basic /)
  },
)

t.test('a request with two authentication methods or a repeated parameter is rejected', async (t) => {
  const rig = await startAuthServer(t, { config: machines })
  const assertion = await signAssertion(key, { clientId: 'signer', issuer: rig.issuer })
  const form = { grant_type: 'client_credentials' }
  const both = { client_assertion: assertion, client_assertion_type: assertionType }
  for (const [parameters, headers] of [
    [{ ...form, client_id: 'signer', client_secret: secret, ...both }, {}],
    [{ ...form, ...both }, basic('signer', secret)],
    [{ ...form, client_secret: secret }, basic('job', secret)],
    [{ ...form, client_id: 'two' }, basic('job', secret)],
  ] as const)
    t.equal(await refusal(await tokenRequest(rig, parameters, headers)), '400 invalid_request')
  for (const name of ['client_assertion', 'client_assertion_type', 'client_secret', 'scope', 'client_id']) {
    const repeated = new URLSearchParams({ ...form, ...both })
    repeated.append(name, 'x')
    repeated.append(name, 'x')
    const response = await fetch(`${rig.issuer}/oauth/token`, { method: 'POST', body: repeated })
    t.equal(await refusal(response), '400 invalid_request', name)
  }
  const bearer = { authorization: `Bearer ${(await tokensOf(await ask(rig))).access_token}` }
  const introspect = await post(rig, 'introspect', { token: 'x', client_secret: secret }, bearer)
  t.equal(await refusal(introspect), '400 invalid_request')
  t.equal((await requestWithAssertion(rig, assertion)).status, 200, 'the assertion was not used up')
})

t.test('a client sees and revokes only its own tokens', async (t) => {
  const rig = await startAuthServer(t, { config: machines })
  const job = { client_id: 'job', client_secret: secret }
  const two = { client_id: 'two', client_secret: secret }
  const { access_token: token } = await tokensOf(await ask(rig))
  const inspect = async (by: Record<string, string>, headers = {}) =>
    jsonOf(await post(rig, 'introspect', { token, ...by }, headers))
  t.match(await inspect(job), {
    active: true,
    client_id: 'job',
    sub: 'client:job',
    scope: 'tools:read tools:write',
    iss: rig.issuer,
  })
  t.match(await inspect({}, { authorization: `Bearer ${token}` }), { active: true, sub: 'client:job' })
  t.strictSame(await inspect(two), { active: false })
  t.equal((await post(rig, 'revoke', { token, ...two })).status, 200)
  t.equal(await rig.server.isLive(callerOf(token)), true, 'rejected from another client')
  t.equal((await post(rig, 'revoke', { token, ...job })).status, 200)
  t.equal(await rig.server.isLive(callerOf(token)), false)
  t.strictSame(await inspect(job), { active: false })
  t.match(rig.events.at(-1), { type: 'grant_ended', clientId: 'job', reason: 'revoked by the client' })
  const { access_token: another } = await tokensOf(await ask(rig))
  t.equal(await rig.server.isLive(callerOf(another)), true, 'other tokens stay')
  t.equal((await post(rig, 'revoke', { token: 'unknown', ...job })).status, 200)
})

t.test('a server without upstream providers advertises only what its clients can use', async (t) => {
  const rig = await startAuthServer(t, { config: machines })
  for (const name of ['oauth-authorization-server', 'openid-configuration']) {
    const metadata = await jsonOf(await fetch(`${rig.issuer}/.well-known/${name}`))
    t.strictSame(metadata, {
      issuer: rig.issuer,
      authorization_endpoint: `${rig.issuer}/oauth/authorize`,
      token_endpoint: `${rig.issuer}/oauth/token`,
      jwks_uri: `${rig.issuer}/.well-known/jwks.json`,
      revocation_endpoint: `${rig.issuer}/oauth/revoke`,
      introspection_endpoint: `${rig.issuer}/oauth/introspect`,
      grant_types_supported: ['client_credentials'],
      token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post', 'private_key_jwt'],
      revocation_endpoint_auth_methods_supported: [
        'client_secret_basic',
        'client_secret_post',
        'private_key_jwt',
      ],
      introspection_endpoint_auth_methods_supported: [
        'Bearer',
        'client_secret_basic',
        'client_secret_post',
        'private_key_jwt',
      ],
      token_endpoint_auth_signing_alg_values_supported: ['ES256'],
      revocation_endpoint_auth_signing_alg_values_supported: ['ES256'],
      introspection_endpoint_auth_signing_alg_values_supported: ['ES256'],
      response_types_supported: [],
    })
  }
})

t.test('a server without upstream providers rejects every step of a login with the reason', async (t) => {
  const rig = await startAuthServer(t, { config: machines })
  const accept = { accept: 'application/json' }
  const requests = [
    fetch(authorizeUrl(rig, { client_id: 'job', code_challenge: pkce().challenge }), { headers: accept }),
    fetch(`${rig.issuer}/oauth/callback?state=x&code=y`, { headers: accept }),
    fetch(`${rig.issuer}/oauth/consent?request=x`, { headers: accept }),
    fetch(`${rig.issuer}/oauth/confirm?request=x`, { headers: accept }),
    fetch(`${rig.issuer}/oauth/accounts`, { headers: accept }),
    postRegistration(rig, { redirect_uris: [redirectUri] }),
    fetch(`${rig.issuer}/oauth/register/some-client`, { headers: accept }),
  ]
  for (const pending of requests) {
    const response = await pending
    t.equal(response.status, 403, response.url)
    t.match(await jsonOf(response), {
      error: 'access_denied',
      error_description: /users cannot sign in here/,
    })
  }
  for (const grant_type of ['authorization_code', 'refresh_token', 'password'])
    t.equal(await refusal(await ask(rig, { grant_type })), '400 unsupported_grant_type', grant_type)
  t.strictSame(await rig.server.notReady(), [])
})

t.test('users and declared clients use one server, each with its own grants', async (t) => {
  const { rig, client } = await startWithClient(t, {
    config: (issuer) => ({ allowedAudiences: resourcesOf(issuer), clients: clientsOf(issuer) }),
  })
  const metadata = await jsonOf(await fetch(`${rig.issuer}/.well-known/oauth-authorization-server`))
  t.match(metadata, {
    authorization_endpoint: `${rig.issuer}/oauth/authorize`,
    grant_types_supported: ['authorization_code', 'refresh_token', 'client_credentials'],
    token_endpoint_auth_methods_supported: [
      'none',
      'client_secret_basic',
      'client_secret_post',
      'private_key_jwt',
    ],
  })
  const user = await client.signIn({ scope: 'openid offline_access', resource: `${rig.issuer}/mcp` })
  t.equal((await ask(rig)).status, 200)
  const taken = await client.token({ grant_type: 'client_credentials' })
  t.equal(taken.outcome, '400 unauthorized_client', 'a registered client has no such grant')
  for (const parameters of [
    { grant_type: 'refresh_token', refresh_token: user.refresh },
    { grant_type: 'authorization_code', code: 'x', code_verifier: 'y' },
  ])
    t.equal(await refusal(await ask(rig, parameters)), '400 unauthorized_client')
  const authorize = authorizeUrl(rig, { client_id: 'job', code_challenge: pkce().challenge })
  const response = await fetch(authorize, { headers: { accept: 'application/json' }, redirect: 'manual' })
  t.equal(await refusal(response), '401 invalid_client', 'a declared client cannot sign users in')
})

t.test('a server without declared clients does not advertise their grant', async (t) => {
  const { rig, client } = await startWithClient(t)
  const metadata = await jsonOf(await fetch(`${rig.issuer}/.well-known/oauth-authorization-server`))
  t.strictSame(metadata['grant_types_supported'], ['authorization_code', 'refresh_token'])
  t.notOk('token_endpoint_auth_signing_alg_values_supported' in metadata)
  const response = await client.token({ grant_type: 'client_credentials' })
  t.equal(response.outcome, '400 unsupported_grant_type')
})

t.test('a declared client inherits nothing from a registration with the same id', async (t) => {
  const rig = await startAuthServer(t)
  const client = await TestClient.register(rig)
  const user = await client.signIn({ scope: 'openid offline_access' })
  const other = await startAuthServer(t, {
    store: rig.store,
    config: {
      ...rig.config,
      clients: [declared(client.id, [rig.resource], { secrets: [() => secret] })],
    },
  })
  t.equal(await other.server.isLive(user.caller), false, 'tokens of the registration end')
  const own = { client_id: client.id, client_secret: secret }
  const form = { grant_type: 'refresh_token', refresh_token: user.refresh }
  t.equal(await refusal(await tokenRequest(other, { ...form, ...own })), '400 unauthorized_client')
  t.equal(await refusal(await tokenRequest(other, { ...form, client_id: client.id })), '401 invalid_client')
  const inspected = await post(other, 'introspect', { token: user.refresh, ...own })
  t.strictSame(await jsonOf(inspected), { active: false })
  t.equal((await post(other, 'revoke', { token: user.refresh, ...own })).status, 200)
  t.equal(await rig.server.isLive(user.caller), true, 'and its grants are not revoked')
  const url = `${other.issuer}/oauth/register/${client.id}`
  const authorization = `Bearer ${textOf(client.registration['registration_access_token'])}`
  t.equal(await refusal(await fetch(url, { headers: { authorization } })), '401 invalid_token')
})

t.test('a machine that needs upstream tokens gets the error that a user is required', async (t) => {
  const { rig } = await startWithClient(t, {
    config: (issuer) => ({ allowedAudiences: resourcesOf(issuer), clients: clientsOf(issuer) }),
  })
  const caller = callerOf((await tokensOf(await ask(rig))).access_token)
  const error = { code: 'USER_REQUIRED', message: /requires a user who signed in here/ }
  await t.rejects(rig.server.upstreamTokens.get(caller, 'corp'), error)
  await t.rejects(rig.server.upstreamTokens.required(caller), error)
})
