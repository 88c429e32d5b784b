/** Start-up: every configuration error at once, files and variables, and what is readiness instead. */
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openAuthServer } from '../../../runtime/authserver/index.ts'
import { makeAuthServer } from '../../../runtime/authserver/server.ts'
import { openAuthServerStore } from '../../../runtime/authserver/storage/open.ts'
import {
  type AuthServerConfig,
  authServerViolations,
  loadAuthServerConfig,
  type OAuth2UpstreamConfig,
  type OidcUpstreamConfig,
} from '../../../runtime/config/index.ts'
import { parseAuthServerConfig } from '../../../runtime/config/authserver/file.ts'
import { silentLog } from '../../../runtime/net/index.ts'
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

const hub: OAuth2UpstreamConfig = {
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
  authCodeMs: hour / 6,
  grantMs: 720 * hour,
  upstreams: [oidc],
  disableUpstreamTokenInjection: false,
  storage: { type: 'memory' },
  secrets: () => ({ signingKeys: [], hmacSecrets: [] }),
}

t.test('errors: a good configuration has none', async (t) => {
  t.same(authServerViolations(good), [])
  t.same(authServerViolations({ ...good, upstreams: [oidc, hub] }), [])
})

t.test('errors: each rule, with the field’s own name', async (t) => {
  const cases: readonly (readonly [Partial<AuthServerConfig>, RegExp])[] = [
    [{ issuer: '' }, /^issuer "" must be an absolute URL$/],
    [{ issuer: '/relative' }, /^issuer .* absolute/],
    [{ issuer: 'https://a.example/' }, /^issuer .* slash/],
    [{ issuer: 'https://a.example/?q=1' }, /^issuer .* query/],
    [{ issuer: 'https://a.example#f' }, /^issuer .* fragment/],
    [
      { issuer: 'https://user:hunter2@a.example' },
      /^issuer "https:\/\/…@a.example" must not carry user information$/,
    ],
    [{ issuer: 'http://a.example' }, /^issuer .* must be https; http is for localhost/],
    [{ issuer: 'ftp://a.example' }, /^issuer .* https/],
    [{ authorizationEndpointBaseUrl: 'http://a.example' }, /^authorizationEndpointBaseUrl .* must be https/],
    [{ allowedAudiences: [] }, /^allowedAudiences must name at least one resource$/],
    [{ allowedAudiences: ['mcp'] }, /^allowedAudiences "mcp" must be an absolute/],
    [{ allowedAudiences: ['https://a.example/#x'] }, /^allowedAudiences /],
    [{ scopesSupported: [], baselineClientScopes: [] }, /^scopesSupported must not be empty$/],
    [{ baselineClientScopes: ['admin'] }, /^baselineClientScopes "admin" is not in scopesSupported$/],
    [{ accessTokenMs: 59_999 }, /^tokenLifespans.accessTokenLifespan must be from 1m to 24h$/],
    [{ accessTokenMs: 25 * hour }, /accessTokenLifespan/],
    [{ refreshTokenMs: hour - 1 }, /^tokenLifespans.refreshTokenLifespan must be from 1h to 720h$/],
    [{ refreshTokenMs: 721 * hour }, /refreshTokenLifespan/],
    [{ authCodeMs: 29_999 }, /^tokenLifespans.authCodeLifespan must be from 30s to 10m$/],
    [{ authCodeMs: 600_001 }, /authCodeLifespan/],
    [
      { cimd: { cacheMaxSize: 0, cacheTtlMs: 1, allowLoopback: false } },
      /^cimd.cacheMaxSize must be at least 1$/,
    ],
    [{ cimd: { cacheMaxSize: 1, cacheTtlMs: 0, allowLoopback: false } }, /^cimd.cacheFallbackTtl must be/],
    [{ upstreams: [] }, /^upstreamProviders must name at least one provider$/],
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
      { upstreams: [{ ...hub, clientId: undefined } as unknown as OAuth2UpstreamConfig] },
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
      /AUTHORIZATION is set by the gateway itself/,
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

function withDcr(dcr: object): OAuth2UpstreamConfig {
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

t.test('errors: http is fine on localhost, and elsewhere with insecureAllowHTTP', async (t) => {
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

t.test('start: ephemeral keys and registrations in memory are warned about loudly', async (t) => {
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

function folder(t: Test): { dir: string; file: (name: string, content: string | Buffer) => string } {
  const dir = mkdtempSync(join(tmpdir(), 'gatehouse-authserver-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return {
    dir,
    file(name, content) {
      writeFileSync(join(dir, name), content)
      return join(dir, name)
    },
  }
}

const pem = (): string =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' })
    .privateKey.export({ type: 'pkcs8', format: 'pem' })
    .toString()

t.test(
  'file: everything of the file arrives, with the defaults of docs/specification/external-auth.md',
  async (t) => {
    const { file } = folder(t)
    const path = file(
      'authserver.yaml',
      `
issuer: https://mcp.example.com
allowedAudiences: [https://mcp.example.com]
signingKeyFiles: [${file('key.pem', pem())}]
hmacSecretFiles: [${file('hmac', randomBytes(40))}]
cimd: { enabled: true }
storage:
  type: redis
  redis:
    addr: redis.example.com:6379
    usernameEnv: REDIS_USER
    passwordEnv: REDIS_PASSWORD
    tls: { caCertFile: ${file('ca.crt', 'CA')} }
upstreamProviders:
  - name: corp
    type: oidc
    oidcConfig:
      issuerUrl: https://idp.example.com
      clientId: gatehouse
      clientSecretFile: ${file('secret', 'from-file\n')}
      clientSecretEnv: IGNORED
  - name: hub
    type: oauth2
    oauth2Config:
      authorizationEndpoint: https://hub.example.com/authorize
      tokenEndpoint: https://hub.example.com/token
      clientId: our-id
      clientSecretEnv: HUB_SECRET
      userInfo: { endpointUrl: https://hub.example.com/me, fieldMapping: { subjectFields: [id] } }
      tokenResponseMapping: { accessTokenPath: a.b }
`,
    )
    const config = loadAuthServerConfig(path, { REDIS_USER: 'u', REDIS_PASSWORD: '', HUB_SECRET: 'from-env' })
    t.match(config, {
      issuer: 'https://mcp.example.com',
      insecureAllowHttp: false,
      scopesSupported: ['openid', 'profile', 'email', 'offline_access'],
      baselineClientScopes: [],
      accessTokenMs: hour,
      refreshTokenMs: 168 * hour,
      authCodeMs: hour / 6,
      consent: true,
      registration: { enabled: true, confidentialClients: false },
      cimd: { cacheMaxSize: 256, cacheTtlMs: 300_000, allowLoopback: false },
      disableUpstreamTokenInjection: false,
      storage: {
        type: 'redis',
        redis: {
          addr: 'redis.example.com:6379',
          username: 'u',
          password: '',
          tls: { ca: 'CA' },
          dialTimeoutMs: 5000,
          readTimeoutMs: 3000,
          writeTimeoutMs: 3000,
        },
      },
    })
    const [first, second] = config.upstreams
    t.match(first, {
      type: 'oidc',
      redirectUri: 'https://mcp.example.com/oauth/callback',
      scopes: ['openid', 'offline_access'],
      subjectClaim: 'sub',
    })
    t.equal(first?.clientSecret?.(), 'from-file')
    t.match(second, {
      type: 'oauth2',
      userInfo: { httpMethod: 'GET', subjectFields: ['id'], nameFields: ['name'], emailFields: ['email'] },
      tokenResponseMapping: {
        accessTokenPath: 'a.b',
        expiresInPath: 'expires_in',
        refreshTokenPath: 'refresh_token',
        scopePath: 'scope',
      },
    })
    t.equal(second?.clientSecret?.(), 'from-env')
    t.equal(config.secrets().hmacSecrets[0]?.length, 40, 'not trimmed')
  },
)

t.test('file: missing files and variables, unknown fields and broken YAML are all named', async (t) => {
  const text = `
issuer: https://mcp.example.com
allowedAudiences: [https://mcp.example.com]
storage: { type: redis, redis: { addr: 'a:1', passwordEnv: NO_PASSWORD } }
upstreamProviders:
  - { name: corp, type: oidc, oidcConfig: { issuerUrl: https://a.example.com, clientId: x, clientSecretEnv: NO_SECRET } }
  - { name: hub, type: oauth2, oauth2Config: { authorizationEndpoint: https://a.example.com/a, tokenEndpoint: https://a.example.com/t, clientId: x, clientSecretFile: /nowhere/secret } }
`
  t.throws(() => parseAuthServerConfig(text, {}), {
    code: 'INVALID_CONFIG',
    message:
      /clientSecretEnv names NO_SECRET, which is not set[^]*\/nowhere\/secret cannot be read[^]*NO_PASSWORD/,
  })
  t.throws(() => parseAuthServerConfig(`${text}\nsurprise: 1\n`, {}), { message: /surprise/ })
  t.throws(() => parseAuthServerConfig('issuer: [', {}), { code: 'INVALID_CONFIG' })
  t.throws(() => parseAuthServerConfig(text.replace('corp, type: oidc', 'corp, type: oauth2'), {}), {
    message: /oidcConfig/,
  })
  t.throws(() => loadAuthServerConfig('/nowhere/file.yaml', {}), {
    message: /\/nowhere\/file.yaml cannot be read/,
  })
  t.throws(
    () =>
      parseAuthServerConfig(
        text.replace("addr: 'a:1'", "addr: 'a:1', sentinelConfig: { masterName: m, sentinelAddrs: ['b:1'] }"),
        {},
      ),
    { message: /addr/ },
  )
})

t.test('file: switches of this process', async (t) => {
  const text = `
issuer: https://mcp.example.com
allowedAudiences: [https://mcp.example.com]
cimd: { enabled: true, cacheFallbackTtl: 90s, cacheMaxSize: 7 }
upstreamProviders: [{ name: corp, type: oidc, oidcConfig: { issuerUrl: https://a.example.com, clientId: x } }]
`
  const config = parseAuthServerConfig(text, {
    GATEHOUSE_AUTH_SERVER_CONSENT: 'off',
    GATEHOUSE_AUTH_SERVER_REGISTRATION: 'off',
    GATEHOUSE_AUTH_SERVER_CONFIDENTIAL_CLIENTS: 'true',
    GATEHOUSE_AUTH_SERVER_CIMD_HOSTS: 'a.example, B.example',
    GATEHOUSE_AUTH_SERVER_CIMD_LOOPBACK: 'true',
  })
  t.match(config, {
    consent: false,
    registration: { enabled: false, confidentialClients: true },
    cimd: {
      cacheMaxSize: 7,
      cacheTtlMs: 90_000,
      allowedHosts: ['a.example', 'b.example'],
      allowLoopback: true,
    },
  })
})

t.test('file: a host of metadata documents that could never match is refused', async (t) => {
  const text = `
issuer: https://mcp.example.com
allowedAudiences: [https://mcp.example.com]
cimd: { enabled: true, cacheFallbackTtl: 90s, cacheMaxSize: 7 }
upstreamProviders: [{ name: corp, type: oidc, oidcConfig: { issuerUrl: https://a.example.com, clientId: x } }]
`
  for (const host of ['https://a.example', '*.example', 'a.example:443', 'a.example b.example', '']) {
    const env = { GATEHOUSE_AUTH_SERVER_CIMD_HOSTS: `b.example,${host}` }
    t.throws(() => parseAuthServerConfig(text, env), { message: `hosts of metadata documents: "${host}"` })
  }
  const audiences = text.replace('[https://mcp.example.com]', '["https://a.example,https://b.example"]')
  t.throws(
    () => parseAuthServerConfig(audiences, {}),
    { message: /allowedAudiences/ },
    'so is a list in one resource',
  )
})

t.test(
  'reload: rotated key files count without a restart, bad ones do not, as Kubernetes mounts them',
  async (t) => {
    const { dir } = folder(t)
    const publish = (name: string, keys: readonly string[], secret: Buffer): void => {
      mkdirSync(join(dir, name))
      for (const [index, key] of keys.entries()) writeFileSync(join(dir, name, `key-${index}`), key)
      writeFileSync(join(dir, name, 'hmac'), secret)
      symlinkSync(name, join(dir, '..data.new'))
      renameSync(join(dir, '..data.new'), join(dir, '..data'))
    }
    const [old, next] = [pem(), pem()]
    publish('v1', [old, old], randomBytes(32))
    const text = `
issuer: https://mcp.example.com
allowedAudiences: [https://mcp.example.com]
signingKeyFiles: [${dir}/..data/key-0, ${dir}/..data/key-1]
hmacSecretFiles: [${dir}/..data/hmac]
upstreamProviders: [{ name: corp, type: oidc, oidcConfig: { issuerUrl: 'https://127.0.0.1:1', clientId: x } }]
`
    const config = parseAuthServerConfig(text, {})
    const server = await makeAuthServer(config, {
      store: openAuthServerStore(config.storage, silentLog),
      reloadEveryMs: 0,
    })
    t.teardown(() => server.close())
    const before = server.keys.version
    await server.reload()
    t.equal(server.keys.version, before, 'nothing changed, nothing is rebuilt')
    publish('v2', [next, old], randomBytes(32))
    await server.reload()
    t.ok(server.keys.version > before, 'verifiers are told that the set changed')
    publish('v3', ['junk', old], randomBytes(32))
    await t.rejects(server.reload(), { code: 'INVALID_CONFIG', message: /signingKeySecretRefs\[0\]/ })
    t.equal(server.keys.version, before + 1, 'the old keys stay in use')
  },
)

t.test(
  'host: from the file to a running server, and an error that the file does not show closes everything again',
  async (t) => {
    const { file } = folder(t)
    const write = (key: string): string =>
      file(
        'authserver.yaml',
        `
issuer: https://mcp.example.com
allowedAudiences: [https://mcp.example.com]
signingKeyFiles: [${file('key', key)}]
upstreamProviders: [{ name: corp, type: oidc, oidcConfig: { issuerUrl: 'https://127.0.0.1:1', clientId: x } }]
`,
      )
    const server = await openAuthServer(write(pem()), {}, { reloadEveryMs: 0 })
    t.equal(server.issuer, 'https://mcp.example.com')
    t.equal(server.config.disableUpstreamTokenInjection, false)
    t.type(server.routes('/oauth/token'), 'function')
    t.equal(server.routes('/mcp'), undefined)
    await server.close()
    await t.rejects(openAuthServer(write(pem()), {}, { maxUpstreams: 0 }), {
      message: /at most 0 is supported here/,
    })
    await t.rejects(openAuthServer(write('junk'), {}), {
      code: 'INVALID_CONFIG',
      message: /signingKeySecretRefs\[0\]/,
    })
  },
)
