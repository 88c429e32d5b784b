/** The proxy command's settings: every rule between flags, all errors at once, secrets by precedence. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import {
  parseTarget,
  type ProxyInput,
  proxyFlags,
  resolveProxyConfig,
} from '../../../runtime/config/index.ts'
import { proves } from '../../helpers/proves.ts'

proves(
  '1.limit.callback-port',
  '1.rule.3',
  '1.rule.3.a',
  '1.rule.3.b',
  '1.rule.3.c',
  '1.rule.5',
  '1.rule.6',
  '1.rule.7',
)

const dir = mkdtempSync(join(tmpdir(), 'proxy-config-'))
const file = (name: string, text: string): string => {
  writeFileSync(join(dir, name), text)
  return join(dir, name)
}
const base: ProxyInput = { targetUri: 'http://127.0.0.1:9000' }
const resolve = (input: ProxyInput, env: Record<string, string> = {}) =>
  resolveProxyConfig('demo', { ...base, ...input }, env)

/** Returns the errors of an input, one per line; empty when it is accepted. */
function violations(input: ProxyInput, env: Record<string, string> = {}): string[] {
  try {
    resolveProxyConfig('demo', { ...base, ...input }, env)
    return []
  } catch (error) {
    return error instanceof Error ? error.message.split('\n') : ['?']
  }
}

await t.test(
  'settings: the target alone enables plain forwarding with the documented defaults',
  async (t) => {
    const config = resolve({})
    t.match(config, {
      name: 'demo',
      host: '127.0.0.1',
      port: 0,
      allowedOrigins: [],
      requestTimeoutMs: 60_000,
      oidc: undefined,
      remote: { kind: 'none' },
      exchange: undefined,
      inject: [],
      workers: 1,
    })
    t.match(resolve({ remoteAuth: true }).remote, {
      callbackPort: 8666,
      timeoutMs: 30_000,
      skipBrowser: false,
      required: true,
    })
  },
)

await t.test('settings: the target is an absolute http URL without a path', async (t) => {
  for (const targetUri of [
    'localhost:8080',
    'mcp.example',
    'ftp://mcp.example',
    'http://',
    'https://mcp.example/mcp',
    '/x',
  ]) {
    t.match(violations({ targetUri }), [/target URI/], targetUri)
  }
  t.match(violations({ targetUri: '' }), ['--target-uri: is required'])
  t.notMatch(violations({ targetUri: 'https://u:s3cret@h.example/p?k=s3cret' }).join(), /s3cret/)
  t.equal(resolve({ targetUri: 'HTTPS://MCP.Example:443/?key=1#f' }).target.origin, 'https://mcp.example')
})

await t.test('settings: an incomplete security setting is rejected', async (t) => {
  const cases: readonly [ProxyInput, RegExp][] = [
    [{ oidcAudience: 'a' }, /--oidc-audience: requires --oidc-issuer/],
    [{ oidcScopes: ['a'], oidcClientId: 'x' }, /--oidc-client-id, --oidc-scopes: requires --oidc-issuer/],
    [
      { oidcIssuer: 'https://i.example', oidcClientSecret: 's' },
      /--oidc-client-secret: requires --oidc-client-id/,
    ],
    [{ oidcIssuer: 'http://i.example' }, /--oidc-issuer: must be https/],
    [{ oidcIssuer: '' }, /--oidc-issuer: must not be empty/],
    [
      { remoteAuthIssuer: 'https://i.example' },
      /--remote-auth-issuer: requires --remote-auth or --remote-auth-client-id/,
    ],
    [{ remoteAuthSkipBrowser: true }, /--remote-auth-skip-browser: requires/],
    [{ remoteAuth: true, remoteAuthAuthorizeUrl: 'https://i.example/a' }, /set both or neither/],
    [{ remoteAuth: true, remoteAuthClientSecret: 's' }, /requires --remote-auth-client-id/],
    [{ tokenExchangeAudience: 'a' }, /--token-exchange-audience: requires --token-exchange-url/],
    [
      { tokenExchangeUrl: 'https://x.example/t', tokenExchangeClientSecret: 's' },
      /requires --token-exchange-client-id/,
    ],
    [{ tokenExchangeUrl: 'http://x.example/t' }, /--token-exchange-url: must be https/],
    [{ passAuthorization: true }, /--pass-authorization: requires an --oidc-\* flag/],
  ]
  for (const [input, expected] of cases)
    t.match(violations(input).join('\n'), expected, JSON.stringify(input))
})

await t.test('settings: alternatives exclude one another', async (t) => {
  const cases: readonly [ProxyInput, RegExp][] = [
    [
      {
        remoteAuth: true,
        remoteAuthIssuer: 'https://i.example',
        remoteAuthAuthorizeUrl: 'https://i.example/a',
        remoteAuthTokenUrl: 'https://i.example/t',
      },
      /--remote-auth-issuer, --remote-auth-authorize-url: set only one/,
    ],
    [
      {
        remoteAuth: true,
        remoteAuthIssuer: 'https://i.example',
        remoteAuthTokenUrl: 'https://i.example/t',
      },
      /--remote-auth-issuer, --remote-auth-token-url: set only one/,
    ],
    [{ remoteAuthBearerToken: 't', remoteAuthBearerTokenFile: file('b', 'x') }, /set only one of them/],
    [{ remoteAuthBearerToken: 't', remoteAuth: true }, /mutually exclusive/],
    [
      { remoteAuthBearerToken: 't', remoteAuthClientId: 'c', remoteAuthScopes: ['a'] },
      /--remote-auth-client-id, --remote-auth-scopes: --remote-auth-bearer-token and a login are mutually exclusive/,
    ],
    [
      {
        tokenExchangeUrl: 'https://x.example',
        tokenExchangeClientId: 'c',
        tokenExchangeClientSecret: 's',
        tokenExchangeClientSecretFile: file('e', 'x'),
      },
      /set only one of them/,
    ],
  ]
  for (const [input, expected] of cases) t.match(violations(input).join('\n'), expected)
  t.match(
    violations({ remoteAuth: true }, { GATEHOUSE_REMOTE_AUTH_BEARER_TOKEN: 't' }).join(),
    /mutually exclusive/,
  )
})

await t.test('target: a user name or password is rejected and not shown', async (t) => {
  for (const targetUri of [
    'https://user:secret@mcp.example',
    'https://secret@mcp.example',
    'https://:secret@mcp.example',
    'https://@mcp.example',
    'https:user:secret@mcp.example',
    'https:\\\\user:secret@mcp.example',
  ]) {
    const found = violations({ targetUri }).join()
    t.match(found, /must not contain a user name or password/, targetUri)
    t.match(found, /--remote-forward-headers-secret/, 'the alternative is named')
    t.notMatch(found, /secret@|:secret/)
    t.throws(() => parseTarget(targetUri, { withPath: true }), { code: 'INVALID_CONFIG' })
  }
  t.same(violations({ targetUri: 'https://mcp.example/?at=a@b' }), [])
})

await t.test('settings: an unknown provider is named', async (t) => {
  t.match(
    violations({ remoteAuth: true, remoteAuthProvider: 'oktta' }).join(),
    /--remote-auth-provider: .*found "oktta"/,
  )
  t.match(
    violations({ remoteForwardHeadersSecret: ['X-A=a'] }, { GATEHOUSE_SECRETS_PROVIDER: 'vault' }).join(),
    /environment or file, found "vault"/,
  )
})

await t.test('settings: an error contains the flag, the found value and the rule', async (t) => {
  const found = violations({
    targetUri: 'foo',
    host: '::1::2',
    port: 'abc',
    requestTimeout: '5',
    remoteAuthBearerTokenFile: join(dir, 'absent'),
    remoteForwardHeadersSecret: ['X-A=missing'],
  })
  t.match(found.join('\n'), /^--target-uri: invalid target URI "foo": must be/m)
  t.match(found.join('\n'), /^--host: must be an IP address or a host name, found "::1::2"$/m)
  t.match(found.join('\n'), /^--port: must be a whole number from 0 to 65535, found "abc"$/m)
  t.match(found.join('\n'), /^--request-timeout: must be a duration such as .*, found "5"$/m)
  t.match(
    found.join('\n'),
    /^--remote-auth-bearer-token-file: the secret file \S+absent cannot be read: file not found$/m,
  )
  t.match(found.join('\n'), /^--remote-forward-headers-secret: header "X-A": secret "missing": not found/m)
  t.equal(found.length, 6)
  for (const host of ['127.0.0.1', '::1', 'localhost', 'a.b-c.example', 'under_score']) {
    t.same(violations({ host }), [], host)
  }
  for (const host of ['127.0.0.1.5', '1.2.3', 'a b', '-x', 'http://x', '[::1]'])
    t.match(violations({ host }), [/^--host/], host)
})

await t.test('settings: values are checked one by one, and all errors are reported at once', async (t) => {
  const found = violations({
    targetUri: 'nonsense',
    port: '70000',
    requestTimeout: '5',
    allowedOrigins: [
      'https://ok.example',
      'null',
      'https://a.example,https://b.example',
      'https://*.c.example',
    ],
    resourceUrl: 'mcp.example',
    remoteAuth: true,
    remoteAuthTimeout: '0s',
    remoteAuthCallbackPort: '80',
    remoteAuthResource: 'https://r.example/#f',
    remoteAuthScopes: ['a b'],
    remoteAuthScopeParamName: 'state',
    remoteForwardHeaders: ['NoEquals', 'Host=x', 'X-A=1', 'x-a=2', 'X-B=a\u0007b', 'Mcp-Session-Id=1'],
    tokenExchangeUrl: 'https://x.example',
    tokenExchangeSubjectTokenType: 'saml',
    tokenExchangeHeaderName: 'Connection',
    workers: '0',
  })
  for (const expected of [
    /target URI/,
    /--port: .*0 to 65535/,
    /--request-timeout: .*duration/,
    /--allowed-origins: .*found "null"/,
    /--allowed-origins: must be a single origin.*found "https:\/\/a.example,https:\/\/b.example"; repeat the flag/,
    /--allowed-origins: .*wildcard.*found "https:\/\/\*.c.example"/,
    /--resource-url: .*absolute/,
    /--remote-auth-timeout: must be greater than zero/,
    /--remote-auth-callback-port: .*1024/,
    /--remote-auth-resource: .*fragment/,
    /--remote-auth-scopes: /,
    /--remote-auth-scope-param-name: state is reserved/,
    /--remote-forward-headers: value 1 must be of the form/,
    /--remote-forward-headers: Host is set by the gateway and cannot be configured/,
    /--remote-forward-headers: the header x-a is set twice/,
    /--remote-forward-headers: the value of X-B/,
    /--remote-forward-headers: Mcp-Session-Id is set by the gateway and cannot be configured/,
    /--token-exchange-subject-token-type: /,
    /--token-exchange-header-name: .*Connection/,
    /--workers: /,
  ]) {
    t.ok(
      found.some((line) => expected.test(line)),
      String(expected),
    )
  }
  t.equal(found.length, 20)
})

await t.test('settings: durations, lists and repeated values are parsed', async (t) => {
  const remote = (remoteAuthTimeout: string) => resolve({ remoteAuth: true, remoteAuthTimeout }).remote
  t.match(remote('30s'), { timeoutMs: 30_000 })
  t.match(remote('1m'), { timeoutMs: 60_000 })
  t.match(remote('2m30s'), { timeoutMs: 150_000 })
  t.match(resolve({ remoteAuth: true, remoteAuthScopes: ['a,b', 'c'] }).remote, { scopes: ['a', 'b', 'c'] })
  t.match(resolve({ remoteForwardHeaders: ['X-A=1,2=3', ' X-B =', 'X-C= v '] }).inject, [
    { name: 'X-A', value: '1,2=3' },
    { name: 'X-B', value: '' },
    { name: 'X-C', value: ' v ' },
  ])
})

await t.test('secrets: the flag wins over the file, and the file over the environment', async (t) => {
  const env = { GATEHOUSE_REMOTE_OAUTH_CLIENT_SECRET: 'from-env' }
  const secret = (input: ProxyInput, variables: Record<string, string>) => {
    const { remote } = resolve({ remoteAuthClientId: 'c', ...input }, variables)
    return remote.kind === 'oauth' ? remote.clientSecret?.reveal() : 'no login'
  }
  const path = file('secret', '  from-file\n')
  t.equal(secret({ remoteAuthClientSecret: 'from-flag', remoteAuthClientSecretFile: path }, env), 'from-flag')
  t.equal(secret({ remoteAuthClientSecretFile: path }, env), 'from-file')
  t.equal(secret({}, env), 'from-env')
  t.equal(secret({}, {}), undefined, 'optional with PKCE')
})

await t.test('secrets: an empty or missing file is named, and its content is never shown', async (t) => {
  t.match(
    violations({ remoteAuthClientId: 'c', remoteAuthClientSecretFile: file('empty', ' \n') }).join(),
    /secret file .*empty is empty/,
  )
  t.match(violations({ remoteAuthBearerTokenFile: join(dir, 'absent') }).join(), /absent cannot be read/)
  t.notMatch(violations({ remoteAuthBearerTokenFile: file('odd', 'two s3cret words') }).join(), /s3cret/)
})

await t.test(
  'secrets: a bearer token comes from flag, file or environment, and a changed file is reloaded',
  async (t) => {
    const token = (input: ProxyInput, env: Record<string, string> = {}) => {
      const { remote } = resolve(input, env)
      return remote.kind === 'bearer' ? remote.token().reveal() : 'no bearer'
    }
    const env = { GATEHOUSE_REMOTE_AUTH_BEARER_TOKEN: 'env-token' }
    t.equal(token({ remoteAuthBearerToken: 'flag-token' }, env), 'flag-token')
    t.equal(token({ remoteAuthBearerTokenFile: file('bearer', 'file-token\n') }, env), 'file-token')
    t.equal(token({}, env), 'env-token')
  },
)

await t.test('secrets: named secrets come from the provider that the environment selects', async (t) => {
  const inject = (env: Record<string, string>) =>
    resolve({ remoteForwardHeadersSecret: ['X-Key=my-key'] }, env).inject
  t.same(inject({ 'GATEHOUSE_SECRET_my-key': 'v1' }), [{ name: 'X-Key', value: 'v1' }])
  t.same(inject({ GATEHOUSE_SECRET_MY_KEY: 'v2' }), [{ name: 'X-Key', value: 'v2' }])
  file('my-key', 'v3\n')
  const provider = { GATEHOUSE_SECRETS_PROVIDER: 'file', GATEHOUSE_SECRETS_DIR: dir }
  t.same(inject(provider), [{ name: 'X-Key', value: 'v3' }])
  const elsewhere = { ...provider, GATEHOUSE_SECRETS_DIR: tmpdir(), GATEHOUSE_SECRET_MY_KEY: 'v4' }
  t.same(inject(elsewhere), [{ name: 'X-Key', value: 'v4' }], 'falls back to the environment')
  const bad = (input: string, env: Record<string, string> = {}) =>
    violations({ remoteForwardHeadersSecret: [input] }, env).join()
  t.match(
    bad('X-Key=my-key', { ...elsewhere, GATEHOUSE_DISABLE_ENV_FALLBACK: 'true' }),
    /not found in the directory/,
  )
  t.match(bad('X-Key=my-key'), /"my-key": not found in the environment/)
  t.match(bad('X-Key=../../etc/passwd', provider), /secret name/)
  t.match(bad('X-Key=__gatehouse_x'), /secret name/)
  t.match(
    bad('X-Key=k', { GATEHOUSE_SECRETS_PROVIDER: 'keychain' }),
    /GATEHOUSE_SECRETS_PROVIDER: must be environment or file/,
  )
  t.match(bad('X-Key=k', { GATEHOUSE_SECRETS_PROVIDER: 'file' }), /GATEHOUSE_SECRETS_DIR/)
})

await t.test('settings: token types are accepted in short form and as URN', async (t) => {
  const type = (tokenExchangeSubjectTokenType?: string) =>
    resolve({
      tokenExchangeUrl: 'https://x.example/t',
      ...(tokenExchangeSubjectTokenType ? { tokenExchangeSubjectTokenType } : {}),
    }).exchange?.subjectTokenType
  const urn = 'urn:ietf:params:oauth:token-type:'
  t.equal(type(), `${urn}access_token`)
  t.equal(type('id_token'), `${urn}id_token`)
  t.equal(type('jwt'), `${urn}jwt`)
  t.equal(type(`${urn}id_token`), `${urn}id_token`)
})

await t.test('settings: allowed but risky values cause warnings', async (t) => {
  const { warnings } = resolve({
    remoteAuthClientId: 'c',
    remoteAuthClientSecret: 's3cret',
    remoteForwardHeaders: ['Authorization=Basic x'],
  })
  t.equal(warnings.length, 2)
  t.notMatch(warnings.join(), /s3cret|Basic/)
})

await t.test('flags: names are the camelCase keys, and every flag has a help text', async (t) => {
  for (const [key, row] of Object.entries(proxyFlags)) {
    t.equal(row.flag, `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`, key)
    t.ok(row.help.length > 10, key)
  }
})
