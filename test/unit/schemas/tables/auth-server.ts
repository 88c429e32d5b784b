/** docs/reference/specification/external-auth.md: the embedded authorization server. */
import { externalAuth } from './external-auth.ts'
import { dpopRows } from './dpop.ts'
import {
  absent,
  booleanRow,
  type Doc,
  document,
  durationRow,
  type Json,
  notDuration,
  notProvider,
  notString,
  type Row,
  secretRef,
  secretRows,
  type Table,
} from './table.ts'
import { spiffeTables } from './spiffe.ts'
import { trustedIssuerTables } from './trusted-issuers.ts'

const at = 'spec.embeddedAuthServer'
const oidc = { issuerUrl: 'https://idp.example.com', clientId: 'gatehouse' }
const oauth2 = {
  authorizationEndpoint: 'https://idp.example.com/authorize',
  tokenEndpoint: 'https://idp.example.com/token',
  clientId: 'gatehouse',
}

function server(extra: Doc): Doc {
  return document('MCPExternalAuthConfig', {
    type: 'embeddedAuthServer',
    embeddedAuthServer: {
      issuer: 'https://auth.example.com',
      upstreamProviders: [{ name: 'corp', type: 'oidc', oidcConfig: oidc }],
      ...extra,
    },
  })
}

const urls: readonly Json[] = [
  'https://auth.example.com',
  'https://a.example.com/path',
  'http://localhost:8080',
  'http://auth.ns.svc',
]
const notIssuer: readonly Json[] = [
  '',
  'auth.example.com',
  'https://a.example.com/',
  'https://a.example.com?x',
  'https://a.example.com#x',
  'ftp://a.example.com',
  1,
]

const top: Table = {
  name: 'embeddedAuthServer',
  base: externalAuth('embeddedAuthServer'),
  rows: [
    {
      id: '2.embeddedAuthServer.issuer.form',
      at: `${at}.issuer`,
      required: true,
      good: urls,
      bad: notIssuer,
    },
    {
      id: '2.embeddedAuthServer.upstreamProviders',
      at: `${at}.upstreamProviders`,
      required: true,
      bad: [[], {}],
    },
    { id: '', at: `${at}.authorizationEndpointBaseUrl`, good: [absent, ...urls], bad: notIssuer },
    {
      id: '',
      at: `${at}.baselineClientScopes`,
      good: [absent, [], ['openid', 'offline_access']],
      bad: [[''], ['a b'], ['a"b'], ['a\\b'], Array.from({ length: 11 }, (_, i) => `s${i}`)],
      failure: '*',
    },
    { id: '', at: `${at}.allowConfidentialClientRegistration`, good: [absent, true, false], bad: ['yes'] },
    booleanRow('', `${at}.disableUpstreamTokenInjection`, false),
    booleanRow('', `${at}.insecureAllowHTTP`, false),
    { id: '', at: `${at}.hmacSecretRefs`, good: [absent, [], [secretRef, secretRef]], bad: [secretRef] },
    {
      id: '2.version.rotation',
      at: `${at}.signingKeySecretRefs`,
      good: [absent, [secretRef, { name: 'old', key: 'k' }]],
      bad: [Array.from({ length: 6 }, () => secretRef)],
    },
    { id: '', at: `${at}.primaryUpstreamProvider`, good: [absent, 'corp'], bad: [...notProvider, 'other'] },
    { id: '2.limit.provider-name', at: `${at}.primaryUpstreamProvider`, bad: ['', 'x'.repeat(64)] },
    { id: '', at: `${at}.delegateClients`, bad: [[]] },
  ],
}

const several: Table = {
  name: 'embeddedAuthServer with several upstreams',
  base: server({
    upstreamProviders: [
      { name: 'corp', type: 'oidc', oidcConfig: oidc },
      { name: 'partner', type: 'oauth2', oauth2Config: oauth2 },
    ],
  }),
  rows: [
    {
      id: '2.embeddedAuthServer.primaryUpstreamProvider.match',
      at: `${at}.primaryUpstreamProvider`,
      good: ['corp', 'partner'],
      bad: ['elsewhere'],
    },
    { id: '', at: `${at}.upstreamProviders[1].name`, bad: ['corp'], failure: `${at}.upstreamProviders[1]` },
  ],
}

const cimd: Table = {
  name: 'cimd',
  base: server({ cimd: { enabled: true } }),
  rows: [
    booleanRow('', `${at}.cimd.enabled`, false),
    durationRow('2.limit.cimd.cacheFallbackTtl', `${at}.cimd.cacheFallbackTtl`, '5m'),
    {
      id: '2.limit.cimd.cacheMaxSize',
      at: `${at}.cimd.cacheMaxSize`,
      default: 256,
      good: [1, 10_000],
      bad: [0, -1, '1'],
    },
  ],
}

const lifespans: Table = {
  name: 'tokenLifespans',
  base: server({ tokenLifespans: {} }),
  rows: [
    lifespanRow('accessTokenLifespan', '1h', ['1m', '90s', '24h'], ['0s', '59s', '24h1s']),
    lifespanRow('refreshTokenLifespan', '168h', ['1h', '720h'], ['0s', '59m', '721h']),
    lifespanRow('refreshTokenGracePeriod', '60s', ['0s', '10m'], ['-1s', '10m1s']),
    lifespanRow('authCodeLifespan', '10m', ['30s', '1m30s'], ['0s', '29s', '11m']),
    ...['accessTokenLifespan', 'refreshTokenLifespan', 'refreshTokenGracePeriod', 'authCodeLifespan'].map(
      (field): Row => ({ id: '', at: `${at}.tokenLifespans.${field}`, bad: notDuration }),
    ),
  ],
}

/**
 * Bounds on both sides: a token that never expires acts as a password, and a token that expires at once blocks all
 * users.
 */
function lifespanRow(field: string, value: string, good: readonly string[], bad: readonly string[]): Row {
  return { id: '2.limit.tokenLifespans', at: `${at}.tokenLifespans.${field}`, default: value, good, bad }
}

const redis = { aclUserConfig: { passwordSecretRef: secretRef }, addr: 'redis:6379' }
const storage: Table = {
  name: 'storage',
  base: server({ storage: { type: 'redis', redis } }),
  rows: [
    { id: '2.storage.type', at: `${at}.storage.type`, default: 'memory', bad: ['etcd', 'Redis', ''] },
    { id: '2.storage.type', at: `${at}.storage`, good: [absent, {}, { type: 'memory' }] },
    { id: '2.storage.redis', at: `${at}.storage.redis`, required: true },
    { id: '', at: `${at}.storage`, bad: [{ type: 'memory', redis }], failure: `${at}.storage.redis` },
    { id: '2.storage.redis.aclUserConfig', at: `${at}.storage.redis.aclUserConfig`, required: true },
    {
      id: '2.storage.redis.aclUserConfig.passwordSecretRef',
      at: `${at}.storage.redis.aclUserConfig.passwordSecretRef`,
      required: true,
    },
    ...secretRows(`${at}.storage.redis.aclUserConfig.passwordSecretRef`),
    { id: '', at: `${at}.storage.redis.aclUserConfig.usernameSecretRef`, good: [absent, secretRef] },
    {
      id: '',
      at: `${at}.storage.redis.addr`,
      good: ['h:1', '[::1]:6379'],
      bad: ['', 'redis', 'redis:', 'redis://h:1'],
    },
    {
      id: '2.error.exclusive.addr-sentinelConfig',
      at: `${at}.storage.redis.sentinelConfig`,
      bad: [{ masterName: 'm', sentinelAddrs: ['s:26379'] }],
      failure: `${at}.storage.redis`,
    },
    { id: '', at: `${at}.storage.redis.addr`, bad: [absent], failure: `${at}.storage.redis` },
    { id: '', at: `${at}.storage.redis.clusterMode`, good: [absent, true, false] },
    {
      id: '',
      at: `${at}.storage.redis.tls`,
      good: [absent, {}, { caCertSecretRef: secretRef, insecureSkipVerify: true }],
    },
    { id: '', at: `${at}.storage.redis.sentinelTls`, bad: [{}] },
    durationRow('2.limit.store-timeouts', `${at}.storage.redis.dialTimeout`, '5s'),
    durationRow('2.limit.store-timeouts', `${at}.storage.redis.readTimeout`, '3s'),
    durationRow('2.limit.store-timeouts', `${at}.storage.redis.writeTimeout`, '3s'),
  ],
}

const sentinel: Table = {
  name: 'storage.redis.sentinelConfig',
  base: server({
    storage: {
      type: 'redis',
      redis: {
        aclUserConfig: { passwordSecretRef: secretRef },
        sentinelConfig: { masterName: 'main', sentinelService: { name: 'sentinel' } },
      },
    },
  }),
  rows: [
    {
      id: '2.storage.redis.sentinelConfig.masterName',
      at: `${at}.storage.redis.sentinelConfig.masterName`,
      required: true,
      bad: ['', 1],
    },
    {
      id: '2.storage.redis.sentinelConfig.db',
      at: `${at}.storage.redis.sentinelConfig.db`,
      default: 0,
      good: [3],
      bad: [-1, '0'],
    },
    {
      id: '2.error.exclusive.sentinelAddrs-sentinelService',
      at: `${at}.storage.redis.sentinelConfig.sentinelAddrs`,
      bad: [['a:26379']],
      failure: `${at}.storage.redis.sentinelConfig`,
    },
    {
      id: '2.storage.redis.sentinelConfig.sentinelService',
      at: `${at}.storage.redis.sentinelConfig.sentinelService.name`,
      required: true,
      bad: [''],
    },
    {
      id: '',
      at: `${at}.storage.redis.sentinelConfig.sentinelService.namespace`,
      good: [absent, 'db'],
      bad: ['a.b', ''],
    },
    {
      id: '2.limit.sentinelService.port',
      at: `${at}.storage.redis.sentinelConfig.sentinelService.port`,
      default: 26379,
      good: [1, 65535],
      bad: [0, 65536, '26379'],
    },
    {
      id: '',
      at: `${at}.storage.redis.clusterMode`,
      good: [false],
      bad: [true],
      failure: `${at}.storage.redis.addr`,
    },
    { id: '', at: `${at}.storage.redis.sentinelTls`, good: [absent, {}] },
  ],
}

const first = `${at}.upstreamProviders[0]`
const provider: Table = {
  name: 'upstreamProviders item',
  base: externalAuth('embeddedAuthServer'),
  rows: [
    {
      id: '2.upstreamProviders.name',
      at: `${first}.name`,
      required: true,
      good: ['a', 'a-1', 'x'.repeat(63)],
      bad: notProvider,
    },
    { id: '2.upstreamProviders.type', at: `${first}.type`, required: true, bad: ['saml', ''] },
    { id: '2.upstreamProviders.oidcConfig', at: `${first}.oidcConfig`, required: true },
    { id: '2.error.upstream.config-mismatch', at: `${first}.oauth2Config`, bad: [oauth2] },
    {
      id: '2.upstreamProviders.oidcConfig',
      at: `${first}.type`,
      bad: ['oauth2'],
      failure: `${first}.oidcConfig`,
    },
    {
      id: '2.upstreamProviders.oauth2Config',
      at: `${first}.type`,
      bad: ['oauth2'],
      failure: `${first}.oauth2Config`,
    },
    { id: '', at: `${first}.oidcConfig.issuerUrl`, required: true, bad: ['http://idp.example.com', ''] },
    { id: '2.oidcConfig.clientId', at: `${first}.oidcConfig.clientId`, required: true, bad: ['', 1] },
    {
      id: '',
      at: `${first}.oidcConfig.clientSecretRef`,
      good: [absent, secretRef],
      bad: [{ name: 'x' }],
      failure: '*',
    },
    { id: '', at: `${first}.clientCertificateSecretRef`, good: [absent, { name: 'x' }], bad: ['x'] },
    { id: '', at: `${first}.clientCertificateSecretRef`, bad: [{}, { name: '' }], failure: '*' },
    {
      id: '',
      at: `${first}.oidcConfig.redirectUri`,
      good: [absent, 'https://x.example.com/oauth/callback'],
      bad: ['/oauth/callback'],
    },
    {
      id: '',
      at: `${first}.oidcConfig.scopes`,
      default: ['openid', 'offline_access'],
      good: [['openid']],
      bad: ['openid', [], ['profile']],
    },
    {
      id: '2.oidcConfig.additionalAuthorizationParams.managed',
      at: `${first}.oidcConfig.additionalAuthorizationParams`,
      good: [absent, {}, { prompt: 'consent', access_type: 'offline' }],
      bad: [
        'response_type client_id redirect_uri scope state code_challenge code_challenge_method nonce',
        'response_mode request request_uri client_secret',
      ].flatMap((names) => names.split(' ').map((name) => ({ [name]: 'x' }))),
    },
    {
      id: '',
      at: `${first}.oidcConfig.additionalAuthorizationParams`,
      bad: [Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`p${i}`, 'x'])), { p: 1 }],
      failure: '*',
    },
    {
      id: '2.limit.subjectClaim',
      at: `${first}.oidcConfig.subjectClaim`,
      good: [absent, '', 'oid', '_a1', 'x'.repeat(128)],
      bad: ['1a', 'a-b', 'a.b', 'x'.repeat(129)],
    },
    {
      id: '',
      at: `${first}.oidcConfig.userInfoOverride`,
      good: [absent, { endpointUrl: 'https://idp.example.com/me' }],
      bad: [{}],
      failure: '*',
    },
  ],
}

const oauth: Table = {
  name: 'oauth2Config',
  base: server({ upstreamProviders: [{ name: 'corp', type: 'oauth2', oauth2Config: oauth2 }] }),
  rows: [
    {
      id: '2.oauth2Config.authorizationEndpoint',
      at: `${first}.oauth2Config.authorizationEndpoint`,
      required: true,
      good: ['http://idp/a'],
      bad: ['', 'idp/a'],
    },
    {
      id: '2.oauth2Config.tokenEndpoint',
      at: `${first}.oauth2Config.tokenEndpoint`,
      required: true,
      good: ['http://idp/t'],
      bad: ['', 'idp/t'],
    },
    { id: '', at: `${first}.oauth2Config.clientId`, bad: [absent], failure: `${first}.oauth2Config` },
    {
      id: '2.error.exclusive.clientId-dcrConfig',
      at: `${first}.oauth2Config.dcrConfig`,
      bad: [{ discoveryUrl: 'https://idp.example.com/.well-known/openid-configuration' }],
      failure: `${first}.oauth2Config`,
    },
    { id: '', at: `${first}.clientCertificateSecretRef`, good: [{ name: 'x' }] },
    { id: '', at: `${first}.oauth2Config.scopes`, good: [absent, [], ['read']], bad: ['read'] },
    {
      id: '',
      at: `${first}.oauth2Config.additionalAuthorizationParams`,
      good: [{ a: 'b' }],
      bad: [{ state: 'x' }],
    },
    {
      id: '',
      at: `${first}.oauth2Config.tokenResponseMapping`,
      good: [absent, { accessTokenPath: 'a.b' }],
      bad: [{}],
      failure: '*',
    },
    {
      id: '2.limit.identity-paths',
      at: `${first}.oauth2Config.identityFromToken`,
      good: [
        absent,
        { subjectPath: 'access_token|@upstreamjwt|sub', namePath: 'n', emailPath: 'x'.repeat(256) },
      ],
      bad: [
        {},
        { subjectPath: '' },
        { subjectPath: 'x'.repeat(257) },
        { subjectPath: 'a', namePath: '' },
        { subjectPath: 'a', emailPath: '' },
      ],
      failure: '*',
    },
    {
      id: '',
      at: `${first}.oauth2Config.userInfo`,
      good: [absent, { endpointUrl: 'http://idp/me' }],
      bad: [{}, { endpointUrl: 'me' }],
      failure: '*',
    },
  ],
}

const dcr: Table = {
  name: 'dcrConfig',
  base: server({
    upstreamProviders: [
      {
        name: 'corp',
        type: 'oauth2',
        oauth2Config: {
          authorizationEndpoint: 'https://idp.example.com/authorize',
          tokenEndpoint: 'https://idp.example.com/token',
          dcrConfig: { discoveryUrl: 'https://idp.example.com/.well-known/oauth-authorization-server' },
        },
      },
    ],
  }),
  rows: [
    {
      id: '2.limit.dcr-urls',
      at: `${first}.oauth2Config.dcrConfig.discoveryUrl`,
      good: [`https://idp.example.com/${'x'.repeat(2024)}`],
      bad: [
        'http://idp.example.com/x',
        'https://idp.example.com/x?y',
        `https://idp.example.com/${'x'.repeat(2025)}`,
      ],
    },
    {
      id: '2.error.exclusive.discoveryUrl-registrationEndpoint',
      at: `${first}.oauth2Config.dcrConfig.registrationEndpoint`,
      bad: ['https://idp.example.com/register'],
      failure: `${first}.oauth2Config.dcrConfig`,
    },
    {
      id: '',
      at: `${first}.oauth2Config.dcrConfig.discoveryUrl`,
      bad: [absent],
      failure: `${first}.oauth2Config.dcrConfig`,
    },
    {
      id: '',
      at: `${first}.oauth2Config.dcrConfig`,
      bad: [{ registrationEndpoint: 'https://idp.example.com/register' }],
      failure: `${first}.oauth2Config.scopes`,
    },
    { id: '', at: `${first}.oauth2Config.clientSecretRef`, bad: [secretRef] },
    { id: '', at: `${first}.oauth2Config.dcrConfig.initialAccessTokenRef`, good: [absent, secretRef] },
    {
      id: '2.limit.softwareId',
      at: `${first}.oauth2Config.dcrConfig.softwareId`,
      good: ['x'.repeat(255)],
      bad: ['x'.repeat(256)],
    },
    {
      id: '2.limit.softwareStatement',
      at: `${first}.oauth2Config.dcrConfig.softwareStatement`,
      good: ['x'.repeat(16384)],
      bad: ['x'.repeat(16385)],
    },
  ],
}

const mapping: Table = {
  name: 'tokenResponseMapping and userInfo',
  base: server({
    upstreamProviders: [
      {
        name: 'corp',
        type: 'oauth2',
        oauth2Config: {
          ...oauth2,
          tokenResponseMapping: { accessTokenPath: 'authed_user.access_token' },
          userInfo: { endpointUrl: 'https://idp.example.com/me', fieldMapping: {} },
        },
      },
    ],
  }),
  rows: [
    {
      id: '',
      at: `${first}.oauth2Config.tokenResponseMapping.accessTokenPath`,
      required: true,
      bad: ['', 1],
    },
    {
      id: '',
      at: `${first}.oauth2Config.tokenResponseMapping.expiresInPath`,
      default: 'expires_in',
      bad: notString,
    },
    {
      id: '',
      at: `${first}.oauth2Config.tokenResponseMapping.refreshTokenPath`,
      default: 'refresh_token',
      bad: notString,
    },
    { id: '', at: `${first}.oauth2Config.tokenResponseMapping.scopePath`, default: 'scope', bad: notString },
    { id: '', at: `${first}.oauth2Config.userInfo.endpointUrl`, required: true, bad: ['', 'me'] },
    {
      id: '',
      at: `${first}.oauth2Config.userInfo.httpMethod`,
      default: 'GET',
      good: ['POST'],
      bad: ['PUT', 'get'],
    },
    {
      id: '',
      at: `${first}.oauth2Config.userInfo.additionalHeaders`,
      good: [absent, { Accept: 'application/json' }],
      bad: [{ authorization: 'x' }, { A: 'a\nb' }],
      failure: '*',
    },
    {
      id: '',
      at: `${first}.oauth2Config.userInfo.fieldMapping.subjectFields`,
      default: ['sub'],
      good: [['id', 'sub']],
      bad: ['sub', ['']],
      failure: '*',
    },
    { id: '', at: `${first}.oauth2Config.userInfo.fieldMapping.nameFields`, default: ['name'] },
    { id: '', at: `${first}.oauth2Config.userInfo.fieldMapping.emailFields`, default: ['email'] },
  ],
}

const client = `${at}.clients[0]`
const scopes = ['tools:read']
const ecKey = { kty: 'EC', crv: 'P-256', x: 'eA', y: 'eQ' }

/** Returns `count` clients with secrets and different ids. */
function clientsNamed(count: number): Json {
  return Array.from({ length: count }, (_, i) => ({
    clientId: `c${i}`,
    clientSecretRefs: [secretRef],
    scopes,
  }))
}

const declared: Table = {
  name: 'clients with a secret',
  base: server({ clients: [{ clientId: 'ci', clientSecretRefs: [secretRef], scopes }] }),
  rows: [
    {
      id: '',
      at: `${at}.clients`,
      good: [absent, [], clientsNamed(50)],
      bad: [clientsNamed(51), {}],
    },
    {
      id: '',
      at: `${at}.clients[1]`,
      bad: [{ clientId: 'ci', jwksUri: 'https://ci.example.com/jwks', scopes }],
    },
    {
      id: '',
      at: `${client}.clientId`,
      required: true,
      good: ['a', 'Build.eu_1-x', '1', 'x'.repeat(128)],
      bad: ['', '-a', '.a', 'a b', 'a/b', 'client:a', 'a#b', 'x'.repeat(129), 1],
    },
    {
      id: '',
      at: `${client}.clientSecretRefs`,
      good: [[secretRef, { name: 'next', key: 'k' }]],
      bad: [[], [secretRef, secretRef, secretRef], secretRef],
    },
    { id: '', at: `${client}.clientSecretRefs`, bad: [absent], failure: client },
    ...secretRows(`${client}.clientSecretRefs[0]`),
    { id: '', at: `${client}.jwks`, bad: [{ keys: [ecKey] }], failure: client },
    { id: '', at: `${client}.jwksUri`, bad: ['https://ci.example.com/jwks'], failure: client },
    { id: '', at: `${client}.clientSecret`, bad: ['inline'] },
    {
      id: '',
      at: `${client}.signingAlg`,
      default: 'ES256',
      good: ['ES384', 'RS256', 'PS256', 'EdDSA'],
      bad: ['', 'none', 'HS256', 'es256', 'ES512'],
    },
    {
      id: '',
      at: `${client}.scopes`,
      required: true,
      good: [['a', 'b'], ['x'.repeat(256)], Array.from({ length: 10 }, (_, i) => `s${i}`)],
      bad: [
        [],
        'tools:read',
        ['openid'],
        ['a', 'profile'],
        ['email'],
        ['offline_access'],
        Array.from({ length: 11 }, (_, i) => `s${i}`),
      ],
    },
    {
      id: '',
      at: `${client}.scopes`,
      bad: [[''], ['a b'], ['a"b'], ['a\\b'], ['x'.repeat(257)]],
      failure: `${client}.scopes[0]`,
    },
    { id: '', at: `${client}.scopes`, bad: [['a', 'a']], failure: `${client}.scopes[1]` },
    {
      id: '',
      at: `${client}.resources`,
      good: [
        absent,
        ['https://mcp.example.com/mcp', 'http://mcp.ns.svc'],
        Array.from({ length: 10 }, (_, i) => `https://s${i}.example.com`),
      ],
      bad: [[], 'https://mcp.example.com', Array.from({ length: 11 }, (_, i) => `https://s${i}.example.com`)],
    },
    {
      id: '',
      at: `${client}.resources`,
      bad: [[''], ['mcp.example.com'], ['ftp://mcp.example.com']],
      failure: `${client}.resources[0]`,
    },
    {
      id: '',
      at: `${client}.resources`,
      bad: [['https://a.example.com', 'https://a.example.com']],
      failure: `${client}.resources[1]`,
    },
    {
      id: '',
      at: `${client}.tokenLifespan`,
      default: '15m',
      good: ['1m', '90s', '1h'],
      bad: [...notDuration, '0s', '59s', '1h1s'],
    },
    {
      id: '',
      at: `${at}.issuer`,
      good: ['http://localhost:8080', 'http://127.0.0.1', 'http://[::1]:80/x'],
      bad: ['http://auth.ns.svc', 'http://localhost.example.com', 'http://127.0.0.1.example.com'],
    },
  ],
}

const keys = `${client}.jwks.keys`
const keyed: Table = {
  name: 'clients with public keys',
  base: server({ clients: [{ clientId: 'ci', jwks: { keys: [ecKey] }, scopes }] }),
  rows: [
    {
      id: '',
      at: keys,
      required: true,
      good: [[{ ...ecKey, kid: '1', use: 'sig', note: 'x' }], Array.from({ length: 10 }, () => ecKey)],
      bad: [[], ecKey, Array.from({ length: 11 }, () => ecKey)],
    },
    {
      id: '',
      at: `${keys}[0].kty`,
      required: true,
      good: ['EC', 'RSA', 'OKP'],
      bad: ['oct', 'ec', '', 1],
    },
    { id: '', at: `${client}.jwks.url`, bad: ['https://ci.example.com/jwks'] },
    { id: '', at: `${client}.jwks`, bad: [absent], failure: client },
    { id: '', at: `${client}.jwksUri`, bad: ['https://ci.example.com/jwks'], failure: client },
    { id: '', at: `${at}.issuer`, good: ['http://auth.ns.svc'] },
  ],
}

const keyedByUrl: Table = {
  name: 'clients with a URL of public keys',
  base: server({ clients: [{ clientId: 'ci', jwksUri: 'https://ci.example.com/jwks', scopes }] }),
  rows: [
    {
      id: '',
      at: `${client}.jwksUri`,
      good: ['https://keys.example.com:8443/a?b=c', `https://ci.example.com/${'x'.repeat(2025)}`],
      bad: ['', 'ci.example.com', 'http://ci.example.com/jwks', `https://ci.example.com/${'x'.repeat(2026)}`],
    },
    { id: '', at: `${client}.jwksUri`, bad: [absent], failure: client },
  ],
}

const withoutUpstreams: Table = {
  name: 'clients without upstreams',
  base: server({
    upstreamProviders: [],
    clients: [{ clientId: 'ci', clientSecretRefs: [secretRef], scopes }],
  }),
  rows: [
    { id: '', at: `${at}.upstreamProviders`, default: [], good: [absent, []] },
    { id: '', at: `${at}.clients`, bad: [absent, []], failure: `${at}.upstreamProviders` },
    { id: '', at: `${at}.primaryUpstreamProvider`, bad: ['corp'] },
  ],
}

const exchange = `${at}.inboundGrants.tokenExchange`
const exchanging: Table = {
  name: 'token exchange',
  base: server({
    clients: [{ clientId: 'ci', clientSecretRefs: [secretRef], scopes, subjectClients: ['*'] }],
    inboundGrants: { tokenExchange: {} },
  }),
  rows: [
    {
      id: '',
      at: `${client}.subjectClients`,
      good: [
        ['ci', 'https://app.example.com/client.json'],
        ['x'.repeat(2048)],
        Array.from({ length: 50 }, (_, i) => `c${i}`),
      ],
      bad: [[], '*', ['*', 'ci'], Array.from({ length: 51 }, (_, i) => `c${i}`)],
    },
    {
      id: '',
      at: `${client}.subjectClients`,
      bad: [[''], ['a b'], ['é'], ['x'.repeat(2049)], [1]],
      failure: `${client}.subjectClients[0]`,
    },
    { id: '', at: `${client}.subjectClients`, bad: [['a', 'a']], failure: `${client}.subjectClients[1]` },
    { id: '', at: `${client}.subjectClients`, bad: [absent], failure: `${at}.inboundGrants` },
    { id: '', at: `${at}.inboundGrants`, bad: [absent, {}] },
    { id: '', at: `${at}.inboundGrants.passwordGrant`, bad: [{}] },
    { id: '', at: `${exchange}.allowMayAct`, bad: [true] },
    { id: '', at: `${at}.upstreamProviders`, bad: [[]] },
    {
      id: '',
      at: `${exchange}.delegationLifespan`,
      default: '15m',
      good: ['1m', '90s', '1h'],
      bad: [...notDuration, '0s', '59s', '1h1s'],
    },
    {
      id: '',
      at: `${exchange}.maxDelegationDepth`,
      default: 5,
      good: [1, 10],
      bad: [0, 11, 1.5, '5'],
    },
  ],
}

const boundTokens: Table = {
  name: 'dpop',
  base: server({ dpop: {} }),
  rows: dpopRows(`${at}.dpop`),
}

const boundClients: Table = {
  name: 'clients with bound tokens',
  base: server({
    dpop: { mode: 'required' },
    clients: [{ clientId: 'ci', jwks: { keys: [ecKey] }, scopes, dpopBoundAccessTokens: true }],
  }),
  rows: [
    { id: '', at: `${client}.dpopBoundAccessTokens`, good: [absent, true, false], bad: ['yes', 1] },
    {
      id: '',
      at: `${at}.dpop`,
      good: [{ mode: 'optional' }],
      bad: [absent, {}, { mode: 'off' }],
      failure: `${at}.dpop`,
    },
  ],
}

const certificateBound: Table = {
  name: 'tokens that are bound to certificates',
  base: server({
    tlsClientCertificateBoundAccessTokens: true,
    clients: [
      { clientId: 'ci', jwks: { keys: [ecKey] }, scopes, tlsClientCertificateBoundAccessTokens: true },
    ],
  }),
  rows: [
    {
      id: '',
      at: `${client}.tlsClientCertificateBoundAccessTokens`,
      good: [absent, true, false],
      bad: ['yes', 1],
    },
    {
      id: '',
      at: `${at}.tlsClientCertificateBoundAccessTokens`,
      bad: [absent, false],
      failure: `${at}.tlsClientCertificateBoundAccessTokens`,
    },
  ],
}

export const authServerTables: readonly Table[] = [
  boundTokens,
  boundClients,
  certificateBound,
  top,
  several,
  cimd,
  lifespans,
  storage,
  sentinel,
  provider,
  oauth,
  dcr,
  mapping,
  declared,
  keyed,
  keyedByUrl,
  withoutUpstreams,
  exchanging,
  ...trustedIssuerTables,
  ...spiffeTables,
]
