/** The login with a user's ID token (id-jag), and whether tokens are bound to a key: required and conflicting settings. */
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import {
  loadProxyFile,
  type ProxyInput,
  resolveProxyConfig,
  resolveProxyFile,
} from '../../../runtime/config/index.ts'

const dir = mkdtempSync(join(tmpdir(), 'identity-grant-'))
const file = (name: string, text: string): string => {
  writeFileSync(join(dir, name), text)
  return join(dir, name)
}
const resolve = (input: ProxyInput) =>
  resolveProxyConfig('demo', { targetUri: 'http://127.0.0.1:9000', ...input }, {})

/** The errors of an input, one per line; empty when it is accepted. */
function violations(input: ProxyInput): string[] {
  try {
    resolve(input)
    return []
  } catch (error) {
    return error instanceof Error ? error.message.split('\n') : ['?']
  }
}

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const keyFile = file('ec.pem', privateKey.export({ type: 'pkcs8', format: 'pem' }).toString())
const idToken = ['{"alg":"RS256"}', '{}', 'signature']
  .map((part) => Buffer.from(part).toString('base64url'))
  .join('.')

await t.test('id-jag: settings of the identity provider, and of the client at the target', async (t) => {
  const idTokenFile = file('id-token', idToken)
  const complete: ProxyInput = {
    remoteAuth: true,
    remoteAuthGrant: 'id-jag',
    remoteAuthClientId: 'job',
    remoteAuthPrivateKeyFile: keyFile,
    remoteAuthIdpTokenUrl: 'https://idp.example/token',
    remoteAuthIdpClientId: 'desktop',
    remoteAuthIdTokenFile: idTokenFile,
  }
  t.same(violations(complete), [])
  const remoteAuth = {
    enabled: true,
    grant: 'id-jag',
    clientId: 'job',
    privateKeyFile: keyFile,
    idpTokenUrl: 'https://idp.example/token',
    idpClientId: 'desktop',
    idpPrivateKeyFile: keyFile,
    idTokenFile,
    dpop: 'required',
  }
  const text = JSON.stringify({ name: 'x', targetUri: 'http://127.0.0.1:9000/mcp', remoteAuth })
  const { remote } = resolveProxyFile('x', loadProxyFile(file('id-jag.yaml', text)), {}, {})
  t.match(remote, { machineGrant: Function, idpTokenUrl: 'https://idp.example/token', dpop: 'required' })
  const broken = file('broken-id-token', 's3cret.not.jwt')
  const rows: readonly (readonly [ProxyInput, readonly string[]])[] = [
    [
      { remoteAuth: true, remoteAuthGrant: 'id-jag' },
      [
        '--remote-auth-grant: id-jag requires --remote-auth-client-id, because such a client is not registered dynamically',
        '--remote-auth-grant: id-jag requires --remote-auth-client-secret-file or --remote-auth-private-key-file',
        '--remote-auth-grant: id-jag requires --remote-auth-idp-token-url',
        '--remote-auth-grant: id-jag requires --remote-auth-idp-client-id',
        '--remote-auth-grant: id-jag requires --remote-auth-id-token-file',
      ],
    ],
    [
      {
        ...complete,
        remoteAuthTokenUrl: 'https://as.example/token',
        remoteAuthIdpTokenUrl: 'http://idp.example/token',
        remoteAuthIdTokenFile: broken,
        remoteAuthIdpClientSecretFile: idTokenFile,
        remoteAuthIdpPrivateKeyFile: idTokenFile,
        remoteAuthSkipBrowser: true,
      },
      [
        '--remote-auth-skip-browser: has no effect with the id-jag grant',
        '--remote-auth-token-url: cannot be used with id-jag, whose assertions contain the issuer; set --remote-auth-issuer',
        '--remote-auth-idp-token-url: must be https (http is allowed for loopback hosts)',
        '--remote-auth-idp-client-secret-file, --remote-auth-idp-private-key-file: set only one of them',
        `--remote-auth-idp-private-key-file: the file ${idTokenFile}: expected a private key as PEM or JWK`,
        `--remote-auth-id-token-file: the file ${broken}: expected a signed JWT`,
      ],
    ],
    [
      {
        remoteAuth: true,
        remoteAuthGrant: 'client_credentials',
        remoteAuthClientId: 'job',
        remoteAuthPrivateKeyFile: keyFile,
        remoteAuthIdpClientId: 'x',
        remoteAuthIdTokenFile: 'x',
      },
      ['--remote-auth-idp-client-id, --remote-auth-id-token-file: requires --remote-auth-grant id-jag'],
    ],
    [
      { remoteAuthIdpClientId: 'x' },
      ['--remote-auth-idp-client-id: requires --remote-auth or --remote-auth-client-id to have an effect'],
    ],
  ]
  for (const [input, expected] of rows) t.same(violations(input), expected)
})

await t.test('dpop: auto by default; other values and token exchange are rejected', async (t) => {
  const mode = (input: ProxyInput) => {
    const { remote } = resolve({ remoteAuth: true, ...input })
    return remote.kind === 'oauth' && remote.dpop
  }
  t.equal(mode({}), 'auto')
  for (const value of ['auto', 'off', 'required']) t.equal(mode({ remoteAuthDpop: value }), value)
  const tokenExchangeUrl = 'https://x.example/token'
  t.equal(mode({ tokenExchangeUrl }), 'off', 'the target receives the exchanged token')
  t.same(violations({ remoteAuth: true, remoteAuthDpop: 'always' }), [
    '--remote-auth-dpop: must be one of auto, off, required, found "always"',
  ])
  t.same(violations({ remoteAuth: true, remoteAuthDpop: 'required', tokenExchangeUrl }), [
    '--remote-auth-dpop: required cannot be combined with token exchange, because the target does not receive the token of the login',
  ])
  t.same(violations({ remoteAuthDpop: 'required' }), [
    '--remote-auth-dpop: requires --remote-auth or --remote-auth-client-id to have an effect',
  ])
})
