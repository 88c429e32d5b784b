/** The proxy's client without a user: required settings, conflicting settings, and when files are read. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import {
  loadProxyFile,
  type MachineGrantSource,
  offeredLogin,
  type ProxyInput,
  resolveProxyConfig,
  resolveProxyFile,
} from '../../../runtime/config/index.ts'
import { silentLog } from '../../../runtime/net/index.ts'
import type { OAuthClient } from '../../../runtime/oauth/index.ts'

const dir = mkdtempSync(join(tmpdir(), 'machine-client-'))
const file = (name: string, text: string): string => {
  writeFileSync(join(dir, name), text)
  return join(dir, name)
}
const resolve = (input: ProxyInput, env: Record<string, string> = {}) =>
  resolveProxyConfig('demo', { targetUri: 'http://127.0.0.1:9000', ...input }, env)

/** Returns the errors of an input, one per line; empty when it is accepted. */
function violations(input: ProxyInput, env: Record<string, string> = {}): string[] {
  try {
    resolve(input, env)
    return []
  } catch (error) {
    return error instanceof Error ? error.message.split('\n') : ['?']
  }
}

const warnings: unknown[] = []
const request = {
  audience: undefined,
  resource: undefined,
  scopes: [],
  log: { ...silentLog, warn: (_: string, fields?: object) => void warnings.push(fields) },
  fetch: () => Promise.reject(new Error('no request is expected')),
  signal: new AbortController().signal,
}

function currentClient(source: MachineGrantSource): OAuthClient {
  const grant = source(request)
  if (grant instanceof Promise || !grant.client) throw new Error('no client')
  return grant.client
}

const ecKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const pem = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }).toString()
const keyFile = file('ec.pem', pem(ecKey))
const machine: ProxyInput = {
  remoteAuth: true,
  remoteAuthGrant: 'client_credentials',
  remoteAuthClientId: 'job',
}

await t.test('client_credentials: the client has a secret or a key, read for each request', async (t) => {
  const client = (input: ProxyInput, env: Record<string, string> = {}) => {
    const { remote } = resolve({ ...machine, ...input }, env)
    if (remote.kind !== 'oauth' || !remote.machineGrant) throw new Error('no client')
    const { machineGrant } = remote
    return () => currentClient(machineGrant)
  }
  const path = file('machine-secret', 'one\n')
  const env = { GATEHOUSE_REMOTE_OAUTH_CLIENT_SECRET: 'from-env' }
  t.same(client({}, env)(), { clientId: 'job', clientSecret: 'from-env' })
  t.same(client({ remoteAuthClientSecret: 'typed', remoteAuthClientSecretFile: path })(), {
    clientId: 'job',
    clientSecret: 'typed',
  })
  const read = client({ remoteAuthClientSecretFile: path }, env)
  t.equal(read().clientSecret, 'one')
  file('machine-secret', 'two\n')
  t.equal(read().clientSecret, 'two')
  file('machine-secret', '')
  t.equal(read().clientSecret, 'two', 'an empty file keeps the last secret')
  t.match(client({ remoteAuthPrivateKeyFile: keyFile })(), { clientId: 'job', privateKey: { alg: 'ES256' } })
  const rotated = file('rotated.pem', pem(ecKey))
  const sign = client({ remoteAuthPrivateKeyFile: rotated })
  t.match(sign(), { privateKey: { alg: 'ES256' } })
  file('rotated.pem', pem(generateKeyPairSync('ed25519').privateKey))
  t.match(sign(), { privateKey: { alg: 'EdDSA' } })
  file('rotated.pem', 'half a key')
  t.match(sign(), { privateKey: { alg: 'EdDSA' } }, 'an invalid file keeps the last key')
  const { remote } = resolve({ remoteAuth: true })
  t.equal(remote.kind === 'oauth' ? remote.machineGrant : 'none', undefined, 'a user by default')
  const tokenUrl = 'https://i.example/token'
  t.same(violations({ ...machine, remoteAuthPrivateKeyFile: keyFile, remoteAuthTokenUrl: tokenUrl }), [])
})

await t.test('client_credentials: all conflicts are reported at once, one error each', async (t) => {
  const found = violations({
    ...machine,
    remoteAuthClientSecretFile: file('machine-secret', 's3cret'),
    remoteAuthPrivateKeyFile: keyFile,
    remoteAuthSigningAlg: 'RS256',
    remoteAuthIssuer: 'https://i.example',
    remoteAuthAuthorizeUrl: 'https://i.example/auth',
    remoteAuthCallbackPort: '8666',
    remoteAuthScopeParamName: 'scopes',
    remoteAuthSkipBrowser: true,
    remoteAuthTimeout: '1m',
    remoteAuthEphemeral: true,
    tokenExchangeUrl: 'https://x.example/t',
    tokenExchangeSubjectTokenType: 'id_token',
  })
  t.same(found.toSorted(), [
    '--remote-auth-authorize-url: has no effect with the client_credentials grant',
    '--remote-auth-callback-port: has no effect with the client_credentials grant',
    '--remote-auth-client-secret-file, --remote-auth-private-key-file: set only one of them',
    '--remote-auth-ephemeral: has no effect with the client_credentials grant',
    '--remote-auth-issuer, --remote-auth-authorize-url: set only one of them',
    `--remote-auth-private-key-file: the file ${keyFile}: the key cannot sign with RS256`,
    '--remote-auth-scope-param-name: has no effect with the client_credentials grant',
    '--remote-auth-skip-browser: has no effect with the client_credentials grant',
    '--remote-auth-timeout: has no effect with the client_credentials grant',
    '--token-exchange-subject-token-type: id_token requires a user login, because a login without a user returns no ID token',
  ])
})

await t.test('client_credentials: a missing or unusable setting is named', async (t) => {
  const secret = { GATEHOUSE_REMOTE_OAUTH_CLIENT_SECRET: 's' }
  const rows: readonly (readonly [ProxyInput, readonly string[], Record<string, string>?])[] = [
    [
      { remoteAuth: true, remoteAuthGrant: 'client_credentials' },
      [
        '--remote-auth-grant: client_credentials requires --remote-auth-client-id, because such a client is not registered dynamically',
        '--remote-auth-grant: client_credentials requires --remote-auth-client-secret-file or --remote-auth-private-key-file',
      ],
    ],
    [
      { ...machine, remoteAuthPrivateKeyFile: keyFile },
      ['GATEHOUSE_REMOTE_OAUTH_CLIENT_SECRET, --remote-auth-private-key-file: set only one of them'],
      secret,
    ],
    [
      { ...machine, remoteAuthGrant: 'password' },
      [
        '--remote-auth-grant: must be one of authorization_code, client_credentials, jwt-bearer, id-jag, found "password"',
      ],
    ],
    [
      { remoteAuth: true },
      [
        'GATEHOUSE_REMOTE_AUTH_GRANT: must be one of authorization_code, client_credentials, jwt-bearer, id-jag, found "implicit"',
      ],
      { GATEHOUSE_REMOTE_AUTH_GRANT: 'implicit' },
    ],
    [
      { ...machine, remoteAuthSigningAlg: 'ES256' },
      ['--remote-auth-signing-alg: requires --remote-auth-private-key-file'],
      secret,
    ],
    [
      { ...machine, remoteAuthPrivateKeyFile: keyFile, remoteAuthSigningAlg: 'HS256' },
      ['--remote-auth-signing-alg: must be one of ES256, ES384, RS256, PS256, EdDSA, found "HS256"'],
    ],
    [
      { ...machine, remoteAuthPrivateKeyFile: join(dir, 'absent') },
      [
        `--remote-auth-private-key-file: the secret file ${join(dir, 'absent')} cannot be read: file not found`,
      ],
    ],
    [
      { ...machine, remoteAuthClientSecretFile: join(dir, 'absent') },
      [
        `--remote-auth-client-secret-file: the secret file ${join(dir, 'absent')} cannot be read: file not found`,
      ],
    ],
    [
      { remoteAuth: true, remoteAuthPrivateKeyFile: keyFile, remoteAuthSigningAlg: 'ES256' },
      [
        '--remote-auth-private-key-file, --remote-auth-signing-alg: requires --remote-auth-grant client_credentials, jwt-bearer or id-jag',
      ],
    ],
    [
      { ...machine, remoteAuthPrivateKeyFile: keyFile, remoteAuthAssertionFile: 'token' },
      ['--remote-auth-assertion-file: requires --remote-auth-grant jwt-bearer'],
    ],
    [
      { remoteAuthGrant: 'client_credentials', remoteAuthPrivateKeyFile: keyFile },
      [
        '--remote-auth-grant, --remote-auth-private-key-file: requires --remote-auth or --remote-auth-client-id to have an effect',
      ],
    ],
  ]
  for (const [input, expected, env] of rows) t.same(violations(input, env), expected)
})

/** Returns a JWT with this payload; its signature is not checked here. */
const jwt = (payload: object): string =>
  ['{"alg":"RS256"}', JSON.stringify(payload), 'signature']
    .map((part) => Buffer.from(part).toString('base64url'))
    .join('.')
const bearer: ProxyInput = { remoteAuth: true, remoteAuthGrant: 'jwt-bearer' }

await t.test('jwt-bearer: the token file is read for each request, a client is optional', async (t) => {
  const [one, two] = [jwt({ jti: 'one' }), jwt({ jti: 'two' })]
  const remoteAuthAssertionFile = file('token', `${one}\n`)
  const current = (input: ProxyInput, env: Record<string, string> = {}) => {
    const { remote } = resolve({ ...bearer, remoteAuthAssertionFile, ...input }, env)
    if (remote.kind !== 'oauth' || !remote.machineGrant) throw new Error('no grant')
    const { machineGrant } = remote
    return () => machineGrant(request)
  }
  const read = current({})
  t.same(read(), { client: undefined, assertion: one })
  file('token', two)
  t.match(read(), { assertion: two })
  warnings.length = 0
  for (const text of ['', 'half.a.token', 'x'.repeat(20_000)]) {
    file('token', text)
    t.match(read(), { assertion: two }, 'an unusable file keeps the last token')
    void read()
  }
  const reasons = warnings.splice(0).map((fields) => JSON.stringify(fields))
  t.equal(reasons.length, 3, 'each reason is logged once')
  t.match(reasons, [/is empty/, /expected a signed JWT/, /longer than 16 KiB/])
  t.notMatch(reasons.join(' '), /half|xxx/)
  file('token', one)
  t.same(current({ remoteAuthClientId: 'job' })(), { client: { clientId: 'job' }, assertion: one })
  const env = { GATEHOUSE_REMOTE_OAUTH_CLIENT_SECRET: 's3cret', GATEHOUSE_REMOTE_AUTH_GRANT: 'jwt-bearer' }
  t.match(current({ remoteAuthGrant: undefined as never, remoteAuthClientId: 'job' }, env)(), {
    client: { clientId: 'job', clientSecret: 's3cret' },
    assertion: one,
  })
  t.match(current({ remoteAuthClientId: 'job', remoteAuthPrivateKeyFile: keyFile })(), {
    client: { clientId: 'job', privateKey: { alg: 'ES256' } },
  })
  t.same(violations({ ...bearer, remoteAuthAssertionFile, remoteAuthTokenUrl: 'https://i.example/t' }), [])

  for (const more of [{}, { tokenUrl: 'https://i.example/token' }]) {
    const text = {
      name: 'x',
      targetUri: 'http://127.0.0.1:9000/mcp',
      remoteAuth: { enabled: true, grant: 'jwt-bearer', assertionFile: remoteAuthAssertionFile, ...more },
    }
    const { remote } = resolveProxyFile('x', loadProxyFile(file('bearer.yaml', JSON.stringify(text))), {}, {})
    t.match(remote.kind === 'oauth' && remote.machineGrant?.(request), { assertion: one })
  }
})

await t.test('jwt-bearer: missing, unusable and conflicting settings are reported at once', async (t) => {
  const broken = file('broken-token', 's3cret.not.jwt')
  const long = file('long-token', `e30.${'x'.repeat(16_384)}.x`)
  const good = file('good-token', jwt({}))
  const rows: readonly (readonly [ProxyInput, readonly string[], Record<string, string>?])[] = [
    [{}, ['--remote-auth-grant: jwt-bearer requires --remote-auth-assertion-file']],
    [
      { remoteAuthAssertionFile: join(dir, 'absent') },
      [`--remote-auth-assertion-file: the secret file ${join(dir, 'absent')} cannot be read: file not found`],
    ],
    [
      { remoteAuthAssertionFile: broken },
      [`--remote-auth-assertion-file: the file ${broken}: expected a signed JWT`],
    ],
    [
      { remoteAuthAssertionFile: long },
      [`--remote-auth-assertion-file: the file ${long}: the JWT is longer than 16 KiB`],
    ],
    [{ remoteAuthAssertionFile: '' }, ['--remote-auth-assertion-file: must not be empty']],
    [
      { remoteAuthAssertionFile: good },
      ['the client secret for the target: requires --remote-auth-client-id'],
      { GATEHOUSE_REMOTE_OAUTH_CLIENT_SECRET: 's' },
    ],
    [
      {
        remoteAuthAssertionFile: broken,
        remoteAuthPrivateKeyFile: keyFile,
        remoteAuthSkipBrowser: true,
        remoteAuthTimeout: '1m',
      },
      [
        '--remote-auth-skip-browser: has no effect with the jwt-bearer grant',
        '--remote-auth-timeout: has no effect with the jwt-bearer grant',
        '--remote-auth-private-key-file: requires --remote-auth-client-id',
        `--remote-auth-assertion-file: the file ${broken}: expected a signed JWT`,
      ],
    ],
  ]
  for (const [input, expected, env] of rows) t.same(violations({ ...bearer, ...input }, env), expected)
  t.same(violations({ remoteAuthAssertionFile: good }), [
    '--remote-auth-assertion-file: requires --remote-auth or --remote-auth-client-id to have an effect',
  ])
  t.same(
    violations({
      ...bearer,
      remoteAuthAssertionFile: good,
      tokenExchangeUrl: 'https://x.example/t',
      tokenExchangeSubjectTokenType: 'id_token',
    }),
    [
      '--token-exchange-subject-token-type: id_token requires a user login, because a login without a user returns no ID token',
    ],
  )
  t.same(violations({ remoteAuth: true, remoteAuthAssertionFile: good }), [
    '--remote-auth-assertion-file: requires --remote-auth-grant jwt-bearer',
  ])
})

await t.test(
  'client_credentials: the variable does not change the login that a terminal offers',
  async (t) => {
    const env = { GATEHOUSE_REMOTE_AUTH_GRANT: 'client_credentials' }
    t.same(violations({}, env), [], 'it has no effect without a login')
    t.match(offeredLogin(resolve({}, env), env), { kind: 'oauth', machineGrant: undefined })
  },
)

await t.test('client_credentials: a configuration file has the same settings', async (t) => {
  const remoteAuth = {
    enabled: true,
    grant: 'client_credentials',
    clientId: 'job',
    privateKeyFile: keyFile,
    signingAlg: 'ES256',
  }
  const load = (more: object, env: Record<string, string> = {}) => {
    const text = JSON.stringify({
      name: 'x',
      targetUri: 'http://127.0.0.1:9000/mcp',
      remoteAuth: { ...remoteAuth, ...more },
    })
    const { remote } = resolveProxyFile('x', loadProxyFile(file('proxy.yaml', text)), {}, env)
    return remote.kind === 'oauth' ? remote.machineGrant && currentClient(remote.machineGrant) : 'none'
  }
  t.match(load({}), { clientId: 'job', privateKey: { alg: 'ES256' } })
  t.equal(
    load(
      {
        grant: 'authorization_code',
        privateKeyFile: undefined,
        signingAlg: undefined,
        issuer: 'https://i.example',
      },
      { GATEHOUSE_REMOTE_AUTH_GRANT: 'client_credentials' },
    ),
    undefined,
    'the file takes precedence over the variable',
  )
  t.match(load({ tokenUrl: 'https://i.example/token' }), { clientId: 'job' }, 'no authorization endpoint')
  t.throws(() => load({ callbackPort: 9999 }), { message: /--remote-auth-callback-port: has no effect/ })
  t.throws(() => load({ timeout: '1m' }), { message: /--remote-auth-timeout: has no effect/ })
  t.throws(() => load({ grant: 'password' }), { message: /remoteAuth\.grant/ })
  t.throws(() => load({ signingAlg: 'HS256' }), { message: /remoteAuth\.signingAlg/ })
  t.throws(() => load({ privateKeyFile: 'relative.pem' }), { message: /remoteAuth\.privateKeyFile/ })
})
