/** Start-up from files: their content, missing parts, reloads, and a running server. */
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { openAuthServer } from '../../../runtime/authserver/index.ts'
import { openAuthServerStore } from '../../../runtime/authserver/server/hosted-auth-server.ts'
import { makeAuthServer } from '../../../runtime/authserver/server/auth-server.ts'
import { loadAuthServerConfig } from '../../../runtime/config/index.ts'
import { parseAuthServerConfig } from '../../../runtime/config/authserver/file.ts'
import { silentLog } from '../../../runtime/net/index.ts'
import { keepingLog } from '../../helpers/authserver/authserver.ts'
import { proves } from '../../helpers/proves.ts'
import { until } from '../../helpers/redis.ts'

proves('2.oidcConfig.subjectClaim', '2.oidcConfig.redirectUri', '2.limit.store-timeouts')

const hour = 3_600_000

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
  'file: every field takes effect, with the defaults of docs/reference/specification/external-auth.md',
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

t.test('file: an unknown scope or provider is named in the error', (t) => {
  const text = `
issuer: https://mcp.example.com
allowedAudiences: [https://mcp.example.com]
baselineClientScopes: [openid, admin]
primaryUpstreamProvider: hub
upstreamProviders:
  - { name: corp, type: oidc, oidcConfig: { issuerUrl: https://a.example.com, clientId: x } }
`
  t.throws(() => parseAuthServerConfig(text, {}), {
    code: 'INVALID_CONFIG',
    message: /baselineClientScopes "admin" is not in scopesSupported[^]*primaryUpstreamProvider "hub" is not/,
  })
  t.end()
})

t.test('file: missing files and variables, unknown fields and invalid YAML are all reported', async (t) => {
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
      /clientSecretEnv refers to the variable NO_SECRET, which is not set[^]*\/nowhere\/secret cannot be read[^]*NO_PASSWORD/,
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

t.test('file: process-level switches take effect', async (t) => {
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

t.test('file: the field for confidential clients overrides the environment variable', async (t) => {
  const allowed = (field: string, env: Record<string, string> = {}): boolean =>
    parseAuthServerConfig(
      `
issuer: https://mcp.example.com
allowedAudiences: [https://mcp.example.com]
upstreamProviders: [{ name: corp, type: oidc, oidcConfig: { issuerUrl: https://a.example.com, clientId: x } }]
${field}
`,
      env,
    ).registration.confidentialClients
  const on = { GATEHOUSE_AUTH_SERVER_CONFIDENTIAL_CLIENTS: 'true' }
  t.equal(allowed('allowConfidentialClientRegistration: true'), true)
  t.equal(allowed('allowConfidentialClientRegistration: false', on), false)
  t.equal(allowed('', on), true, 'the variable is the fallback')
  t.equal(allowed(''), false)
  t.throws(() => allowed('allowConfidentialClientRegistration: "yes"'), {
    message: /allowConfidentialClientRegistration/,
  })
})

t.test('file: a host pattern for metadata documents that can never match is rejected', async (t) => {
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
    'and so is a list in one resource',
  )
})

t.test(
  'reload: rotated key files take effect without a restart, and invalid ones do not, as Kubernetes mounts them',
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
    t.equal(server.keys.version, before, 'nothing is rebuilt without a change')
    publish('v2', [next, old], randomBytes(32))
    await server.reload()
    t.ok(server.keys.version > before, 'verifiers are notified of the changed set')
    publish('v3', ['junk', old], randomBytes(32))
    await t.rejects(server.reload(), { code: 'INVALID_CONFIG', message: /signingKeySecretRefs\[0\]/ })
    t.equal(server.keys.version, before + 1, 'the old keys stay in use')
  },
)

t.test('reload: an invalid file is logged once, and again after it was valid', async (t) => {
  const { file } = folder(t)
  const { log, text } = keepingLog()
  const write = (key: string): string => file('key', key)
  const config = parseAuthServerConfig(
    `
issuer: https://mcp.example.com
allowedAudiences: [https://mcp.example.com]
signingKeyFiles: [${write(pem())}]
upstreamProviders: [{ name: corp, type: oidc, oidcConfig: { issuerUrl: 'https://127.0.0.1:1', clientId: x } }]
`,
    {},
  )
  const server = await makeAuthServer(config, {
    store: openAuthServerStore(config.storage, silentLog),
    log,
    reloadEveryMs: 10,
  })
  t.teardown(() => server.close())
  const logged = (): number => text().split('the changed keys are invalid').length - 1
  for (const times of [1, 2]) {
    write('junk')
    await until(() => logged() >= times)
    await setTimeout(100)
    t.equal(logged(), times, 'ten reloads later')
    write(pem())
    const { version } = server.keys
    await until(() => server.keys.version > version)
    await setTimeout(50)
  }
})

t.test('host: a file starts a server, and a later start-up error closes everything again', async (t) => {
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
})
