/** Start-up: all configuration errors at once, files and variables, and the problems that only affect readiness. */

import t from 'tap'

import { makeAuthServer } from '../../../runtime/authserver/server/auth-server.ts'

import {
  type AuthServerConfig,
  authServerViolations,
  type OAuth2UpstreamSettings,
  type OidcUpstreamConfig,
} from '../../../runtime/config/index.ts'

import { makeMemoryStore } from '../../../runtime/store/index.ts'
import { keepingLog } from '../../helpers/authserver/authserver.ts'
import { proves } from '../../helpers/proves.ts'

proves(
  '2.embeddedAuthServer.issuer',
  '2.embeddedAuthServer.issuer.form',
  '2.embeddedAuthServer.insecureAllowHTTP',
)
proves('2.error.baselineClientScopes', '2.error.issuer.http', '2.error.upstream.config-mismatch')
proves('2.error.exclusive.clientId-dcrConfig', '2.error.exclusive.discoveryUrl-registrationEndpoint')
proves(
  '2.oidcConfig.additionalAuthorizationParams.managed',
  '2.limit.tokenLifespans',
  '2.limit.provider-name',
)
proves('2.limit.subjectClaim', '2.limit.identity-paths', '2.storage.type', '2.storage.redis')
proves('2.storage.redis.aclUserConfig', '2.upstreamProviders.oidcConfig', '2.upstreamProviders.oauth2Config')

const hour = 3_600_000

const oidc: OidcUpstreamConfig = {
  name: 'corp',
  type: 'oidc',
  issuerUrl: 'https://idp.example.com',
  clientId: 'gatehouse',
  redirectUri: 'https://mcp.example.com/oauth/callback',
  scopes: ['openid'],
  additionalAuthorizationParams: {},
  subjectClaim: 'sub',
}

const hub: OAuth2UpstreamSettings = {
  name: 'hub',
  type: 'oauth2',
  redirectUri: 'https://mcp.example.com/oauth/callback',
  scopes: ['repo'],
  additionalAuthorizationParams: {},
  authorizationEndpoint: 'https://hub.example.com/authorize',
  tokenEndpoint: 'https://hub.example.com/token',
  clientId: 'our-id',
}

const good: AuthServerConfig = {
  issuer: 'https://mcp.example.com',
  insecureAllowHttp: false,
  allowedAudiences: ['https://mcp.example.com/mcp'],
  scopesSupported: ['openid', 'offline_access'],
  baselineClientScopes: ['openid'],
  registration: { enabled: true, confidentialClients: false },
  consent: true,
  accessTokenMs: hour,
  refreshTokenMs: 168 * hour,
  refreshGraceMs: 60_000,
  authCodeMs: hour / 6,
  grantMs: 720 * hour,
  upstreams: [oidc],
  disableUpstreamTokenInjection: false,
  storage: { type: 'memory' },
  secrets: () => ({ signingKeys: [], hmacSecrets: [] }),
}

t.test('errors: a valid configuration has none', async (t) => {
  t.same(authServerViolations(good), [])
  t.same(authServerViolations({ ...good, upstreams: [oidc, hub] }), [])
})

t.test('errors: each rule reports the name of its field', async (t) => {
  const cases: readonly (readonly [Partial<AuthServerConfig>, RegExp])[] = [
    [{ issuer: '' }, /^issuer "" must be an absolute URL$/],
    [{ issuer: '/relative' }, /^issuer .* absolute/],
    [{ issuer: 'https://a.example/' }, /^issuer .* slash/],
    [{ issuer: 'https://a.example/?q=1' }, /^issuer .* query/],
    [{ issuer: 'https://a.example#f' }, /^issuer .* fragment/],
    [
      { issuer: 'https://user:hunter2@a.example' },
      /^issuer "https:\/\/…@a.example" must not contain a user name or password$/,
    ],
    [{ issuer: 'http://a.example' }, /^issuer .* must be https; http is for localhost/],
    [{ issuer: 'ftp://a.example' }, /^issuer .* https/],
    [{ authorizationEndpointBaseUrl: 'http://a.example' }, /^authorizationEndpointBaseUrl .* must be https/],
    [{ allowedAudiences: [] }, /^allowedAudiences must contain at least one resource$/],
    [{ allowedAudiences: ['mcp'] }, /^allowedAudiences "mcp" must be an absolute/],
    [{ allowedAudiences: ['https://a.example/#x'] }, /^allowedAudiences /],
    [{ scopesSupported: [], baselineClientScopes: [] }, /^scopesSupported must not be empty$/],
    [{ baselineClientScopes: ['admin'] }, /^baselineClientScopes "admin" is not in scopesSupported$/],
    [{ accessTokenMs: 59_999 }, /^tokenLifespans.accessTokenLifespan must be from 1m to 24h$/],
    [{ accessTokenMs: 25 * hour }, /accessTokenLifespan/],
    [{ refreshTokenMs: hour - 1 }, /^tokenLifespans.refreshTokenLifespan must be from 1h to 720h$/],
    [{ refreshTokenMs: 721 * hour }, /refreshTokenLifespan/],
    [{ refreshGraceMs: 600_001 }, /^tokenLifespans.refreshTokenGracePeriod must be from 0s to 10m$/],
    [{ authCodeMs: 29_999 }, /^tokenLifespans.authCodeLifespan must be from 30s to 10m$/],
    [{ authCodeMs: 600_001 }, /authCodeLifespan/],
    [
      { cimd: { cacheMaxSize: 0, cacheTtlMs: 1, allowLoopback: false } },
      /^cimd.cacheMaxSize must be at least 1$/,
    ],
    [{ cimd: { cacheMaxSize: 1, cacheTtlMs: 0, allowLoopback: false } }, /^cimd.cacheFallbackTtl must be/],
    [
      { upstreams: [] },
      /^upstreamProviders must contain at least one provider unless clients, inboundGrants.jwtBearer or inboundGrants.spiffeClientAuth is set$/,
    ],
    [{ upstreams: [oidc, { ...oidc }] }, /^upstreamProviders name "corp" is used twice$/],
    [{ upstreams: [oidc, { ...hub, name: 'default' }] }, /"default" is reserved/],
    [{ upstreams: [{ ...oidc, name: 'Corp' }] }, /"Corp" must be 1 to 63 lowercase/],
    [{ upstreams: [{ ...oidc, name: 'x'.repeat(64) }] }, /1 to 63/],
    [{ upstreams: [{ ...oidc, name: '-x' }] }, /1 to 63/],
    [
      { upstreams: [oidc, { ...hub, redirectUri: 'https://other.example.com/oauth/callback' }] },
      /every redirectUri must be on the same host/,
    ],
    [
      { upstreams: [{ ...oidc, redirectUri: 'http://mcp.example.com/cb' }] },
      /\[corp\].redirectUri must be https/,
    ],
    [{ upstreams: [{ ...oidc, issuerUrl: 'http://idp.example.com' }] }, /issuerUrl must be https/],
    [{ upstreams: [{ ...oidc, clientId: '' }] }, /clientId is required/],
    [{ upstreams: [{ ...oidc, scopes: ['profile'] }] }, /scopes must contain openid/],
    [{ upstreams: [{ ...oidc, subjectClaim: '1x' }] }, /subjectClaim must be a claim name/],
    [{ upstreams: [{ ...oidc, subjectClaim: 'x'.repeat(129) }] }, /at most 128/],
    [
      { upstreams: [{ ...hub, clientId: undefined } as unknown as OAuth2UpstreamSettings] },
      /exactly one of clientId and dcrConfig/,
    ],
    [
      { upstreams: [{ ...hub, dcr: { discoveryUrl: 'https://a.example/x' } }] },
      /exactly one of clientId and dcrConfig/,
    ],
    [{ upstreams: [withDcr({})] }, /exactly one of discoveryUrl and registrationEndpoint/],
    [
      {
        upstreams: [
          withDcr({ discoveryUrl: 'https://a.example/x', registrationEndpoint: 'https://a.example/y' }),
        ],
      },
      /exactly one of discoveryUrl/,
    ],
    [{ upstreams: [withDcr({ registrationEndpoint: 'http://a.example/y' })] }, /dcrConfig URL must be https/],
    [
      { upstreams: [{ ...withDcr({ registrationEndpoint: 'https://a.example/y' }), scopes: [] }] },
      /scopes must be set when/,
    ],
    [
      { upstreams: [{ ...withDcr({ discoveryUrl: 'https://a.example/x' }), clientSecret: () => 's' }] },
      /clientSecretRef and dcrConfig/,
    ],
    [
      { upstreams: [{ ...hub, authorizationEndpoint: 'nowhere' }] },
      /authorizationEndpoint must be an absolute/,
    ],
    [
      { upstreams: [{ ...hub, userInfo: { ...userInfo, endpointUrl: 'x' } }] },
      /userInfo.endpointUrl must be/,
    ],
    [
      { upstreams: [{ ...hub, userInfo: { ...userInfo, additionalHeaders: { AUTHORIZATION: 'x' } } }] },
      /AUTHORIZATION is set by the gateway and cannot be configured/,
    ],
    [
      { upstreams: [{ ...hub, identityFromToken: { subjectPath: 'a.#' } }] },
      /identityFromToken.subjectPath must not use "#"/,
    ],
    [{ upstreams: [{ ...hub, identityFromToken: { subjectPath: 'a'.repeat(257) } }] }, /1 to 256 characters/],
    [{ primaryUpstreamProvider: 'nobody' }, /^primaryUpstreamProvider "nobody" is not the name/],
  ]
  for (const [change, expected] of cases) {
    const violations = authServerViolations({ ...good, ...change })
    t.equal(violations.length, 1, `${String(expected)}: ${violations.join(' | ')}`)
    t.match(violations[0], expected)
    t.notMatch(violations.join(), 'hunter2')
  }
  for (const name of [
    'response_type',
    'client_id',
    'redirect_uri',
    'scope',
    'state',
    'code_challenge',
    'code_challenge_method',
    'nonce',
    'response_mode',
    'request',
    'request_uri',
    'client_secret',
  ]) {
    t.match(
      authServerViolations({
        ...good,
        upstreams: [{ ...oidc, additionalAuthorizationParams: { [name]: 'x' } }],
      }),
      [new RegExp(`must not set ${name}$`)],
    )
  }
})

function withDcr(dcr: object): OAuth2UpstreamSettings {
  const { clientId: _gone, ...rest } = hub
  return { ...rest, dcr }
}

const userInfo = {
  endpointUrl: 'https://a.example/me',
  httpMethod: 'GET' as const,
  additionalHeaders: {},
  subjectFields: ['sub'],
  nameFields: ['name'],
  emailFields: ['email'],
}

t.test('errors: http is allowed on localhost, and elsewhere with insecureAllowHTTP', async (t) => {
  t.same(authServerViolations({ ...good, issuer: 'http://localhost:8080' }), [])
  t.same(authServerViolations({ ...good, issuer: 'http://127.0.0.1:8080/base' }), [])
  t.same(
    authServerViolations({
      ...good,
      issuer: 'http://vmcp.ns.svc.cluster.local:4483',
      insecureAllowHttp: true,
    }),
    [],
  )
})

t.test('start: configuration, keys and secrets are checked together, in one error', async (t) => {
  const config: AuthServerConfig = {
    ...good,
    issuer: 'http://a.example',
    baselineClientScopes: ['admin'],
    secrets: () => ({ signingKeys: ['junk'], hmacSecrets: [Buffer.from('short')] }),
  }
  await t.rejects(makeAuthServer(config, { store: makeMemoryStore() }), {
    code: 'INVALID_CONFIG',
    message: /issuer .*baselineClientScopes "admin".*signingKeySecretRefs\[0\].*hmacSecretRefs\[0\]/,
  })
})

t.test('start: ephemeral keys and in-memory registrations cause a warning', async (t) => {
  const { log, text } = keepingLog()
  const server = await makeAuthServer(
    { ...good, upstreams: [withDcr({ registrationEndpoint: 'https://127.0.0.1:1/x' })] },
    { store: makeMemoryStore(), log },
  )
  t.teardown(() => server.close())
  t.match(text(), /NO SIGNING KEY IS CONFIGURED/)
  t.match(text(), /NO HMAC SECRET IS CONFIGURED/)
  t.match(text(), /registrations are stored in memory/)
})
