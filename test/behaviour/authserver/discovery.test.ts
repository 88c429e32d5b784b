/** Discovery documents and key set: content, headers, methods and paths. */
import t from 'tap'
import { jsonOf, startAuthServer } from '../../helpers/authserver/authserver.ts'
import { proves } from '../../helpers/proves.ts'

proves('2.endpoint.discovery', '2.endpoint.authorize', '2.endpoint.authorize.override', '2.endpoint.jwks')
proves('2.endpoint.token', '2.endpoint.register', '2.embeddedAuthServer.authorizationEndpointBaseUrl')

const members = {
  response_types_supported: ['code'],
  grant_types_supported: ['authorization_code', 'refresh_token'],
  code_challenge_methods_supported: ['S256'],
  token_endpoint_auth_methods_supported: ['none'],
  scopes_supported: ['openid', 'profile', 'email', 'offline_access'],
  authorization_response_iss_parameter_supported: true,
}

t.test(
  'discovery: RFC 8414 and OpenID Connect documents list exactly what the server supports',
  async (t) => {
    const rig = await startAuthServer(t)
    const { issuer } = rig
    const as = await fetch(`${issuer}/.well-known/oauth-authorization-server`)
    t.match(Object.fromEntries(as.headers), {
      'content-type': 'application/json',
      'cache-control': 'public, max-age=3600',
      'x-content-type-options': 'nosniff',
      'access-control-allow-origin': '*',
    })
    const document = await jsonOf(as)
    t.match(document, {
      ...members,
      issuer,
      authorization_endpoint: `${issuer}/oauth/authorize`,
      token_endpoint: `${issuer}/oauth/token`,
      registration_endpoint: `${issuer}/oauth/register`,
      revocation_endpoint: `${issuer}/oauth/revoke`,
      introspection_endpoint: `${issuer}/oauth/introspect`,
      jwks_uri: `${issuer}/.well-known/jwks.json`,
    })
    for (const [name, value] of Object.entries(members)) t.same(document[name], value, name)
    t.notOk('client_id_metadata_document_supported' in document, 'absent while cimd is off')
    const openid = await jsonOf(await fetch(`${issuer}/.well-known/openid-configuration`))
    t.match(openid, {
      ...members,
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['ES256'],
      userinfo_endpoint: `${issuer}/oauth/userinfo`,
    })
  },
)

t.test('discovery: authorizationEndpointBaseUrl moves the authorization endpoint only', async (t) => {
  const base = 'https://login.example.com/auth'
  const rig = await startAuthServer(t, {
    config: {
      authorizationEndpointBaseUrl: base,
      cimd: { cacheMaxSize: 1, cacheTtlMs: 1, allowLoopback: false },
    },
  })
  const document = await jsonOf(await fetch(`${rig.issuer}/.well-known/oauth-authorization-server`))
  t.match(document, {
    issuer: rig.issuer,
    authorization_endpoint: `${base}/oauth/authorize`,
    token_endpoint: `${rig.issuer}/oauth/token`,
    client_id_metadata_document_supported: true,
  })
  t.equal(
    (await fetch(`${rig.issuer}/auth/oauth/authorize`)).status,
    400,
    'served at the path of the base URL',
  )
})

t.test('discovery: an issuer with a path serves its documents at the RFC 8414 and OIDC paths', async (t) => {
  const rig = await startAuthServer(t, { issuerPath: '/tenant' })
  const { origin } = new URL(rig.issuer)
  for (const path of [
    '/.well-known/oauth-authorization-server/tenant',
    '/.well-known/openid-configuration/tenant',
    '/tenant/.well-known/openid-configuration',
    '/tenant/.well-known/oauth-authorization-server',
  ]) {
    t.match(await jsonOf(await fetch(origin + path)), { issuer: rig.issuer }, path)
  }
  for (const path of [
    '/.well-known/oauth-authorization-server',
    '/.well-known/oauth-authorization-server/other',
    '/.well-known/openid-configuration',
    '/.well-known/oauth-protected-resource',
    '/.well-known/oauth-protected-resource/mcp',
    '/mcp',
  ]) {
    t.equal((await fetch(origin + path)).status, 404, `${path} is the host's own`)
  }
})

t.test('discovery: HEAD and OPTIONS work, and other methods are rejected', async (t) => {
  const { issuer } = await startAuthServer(t)
  const head = await fetch(`${issuer}/.well-known/jwks.json`, { method: 'HEAD' })
  t.equal(head.status, 200)
  t.equal(await head.text(), '')
  const post = await fetch(`${issuer}/.well-known/jwks.json`, { method: 'POST' })
  t.equal(post.status, 405)
  t.equal(post.headers.get('allow'), 'GET, HEAD, OPTIONS')
  for (const path of ['/oauth/token', '/oauth/register', '/.well-known/oauth-authorization-server']) {
    const preflight = await fetch(`${issuer}${path}`, {
      method: 'OPTIONS',
      headers: { origin: 'https://app.example' },
    })
    t.equal(preflight.status, 204, path)
    t.equal(preflight.headers.get('access-control-allow-origin'), '*')
    t.match(
      preflight.headers.get('access-control-allow-headers'),
      /authorization, content-type, dpop, mcp-protocol-version/i,
    )
    t.equal(preflight.headers.get('access-control-allow-credentials'), null)
  }
  for (const path of ['/oauth/authorize', '/oauth/callback', '/oauth/consent']) {
    const preflight = await fetch(`${issuer}${path}`, { method: 'OPTIONS' })
    t.equal(preflight.status, 405, `${path} is for users`)
    t.equal(preflight.headers.get('access-control-allow-origin'), null)
    t.equal(
      (await fetch(`${issuer}${path}`, { method: 'HEAD' })).status,
      405,
      'following a link must not consume a login',
    )
  }
  const get = await fetch(`${issuer}/oauth/token`)
  t.same([get.status, get.headers.get('allow')], [405, 'POST, OPTIONS'])
})

t.test('discovery: without registration, the endpoint neither exists nor is advertised', async (t) => {
  const { issuer } = await startAuthServer(t, {
    config: { registration: { enabled: false, confidentialClients: false } },
  })
  t.notOk(
    'registration_endpoint' in
      (await jsonOf(await fetch(`${issuer}/.well-known/oauth-authorization-server`))),
  )
  t.equal((await fetch(`${issuer}/oauth/register`, { method: 'POST', body: '{}' })).status, 404)
  t.equal((await fetch(`${issuer}/oauth/register/some-client`)).status, 404)
})
