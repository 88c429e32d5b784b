/** How this server authenticates at an upstream provider: keys, platform tokens, secrets and client certificates. */
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates, type TLSSocket } from 'node:tls'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import t, { type Test } from 'tap'
import type { AuthServerConfig, OAuth2UpstreamSettings } from '../../../../runtime/config/index.ts'
import { parseAuthServerConfig } from '../../../../runtime/config/authserver/file.ts'
import { checkSettings } from '../../../../runtime/authserver/server/auth-server.ts'
import { corp, startAuthServer } from '../../../helpers/authserver/authserver.ts'
import { startHub } from '../../../helpers/authserver/oauth2-peer.ts'
import { type Context } from '../../../helpers/authserver/oidc-provider.ts'
import { TestClient } from '../../../helpers/authserver/test-client.ts'
import { makeAuthority, mountSecret, secretOf } from '../../../helpers/certificates.ts'
import { startPassingTime } from '../../../helpers/outgoing/passing-time.ts'

type ClientAuth = NonNullable<OAuth2UpstreamSettings['clientAuth']>

function makeKey() {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return {
    pem: privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(),
    jwk: { ...publicKey.export({ format: 'jwk' }), use: 'sig', alg: 'ES256' },
  }
}

function writeTo(t: Test, name: string, text: string): string {
  const path = mkdtempSync(join(tmpdir(), 'upstream-client-'))
  t.teardown(() => rmSync(path, { recursive: true }))
  writeFileSync(join(path, name), text)
  return join(path, name)
}

const lives = Object.fromEntries(
  ['AuthorizationCode', 'Grant', 'IdToken', 'Interaction', 'RefreshToken', 'Session'].map((name) => [
    name,
    86_400,
  ]),
)

/** A client of the provider without a secret. */
const clientOf = (issuer: string, more: object) => ({
  client_id: 'gatehouse',
  redirect_uris: [`${issuer}/oauth/callback`],
  grant_types: ['authorization_code', 'refresh_token'],
  ...more,
})

/** The upstream of most tests, without its secret. */
function withoutSecret(issuer: string, provider: Parameters<typeof corp>[1], more: object) {
  const { clientSecret: _, ...upstream } = corp(issuer, provider)
  return { ...upstream, ...more } as AuthServerConfig['upstreams'][number]
}

await t.test('a provider accepts the key, and a rotated key without a restart', async (t) => {
  const [first, second] = [makeKey(), makeKey()]
  const privateKeyPath = writeTo(t, 'key', first.pem)
  const rig = await startAuthServer(t, {
    provider: (issuer) => ({
      configuration: { ttl: { ...lives, AccessToken: 600 } },
      clients: [
        clientOf(issuer, {
          token_endpoint_auth_method: 'private_key_jwt',
          token_endpoint_auth_signing_alg: 'ES256',
          jwks: { keys: [first.jwk, second.jwk] },
        }),
      ],
    }),
    upstreams: ({ issuer, provider }) => [
      withoutSecret(issuer, provider, { clientAuth: { method: 'privateKeyJwt', privateKeyPath } }),
    ],
  })
  const client = await TestClient.register(rig)
  const { caller } = await client.signIn()
  const before = await rig.server.upstreamTokens.get(caller)
  t.ok(before?.accessToken)

  writeFileSync(privateKeyPath, second.pem)
  rig.pass(3_600_000)
  const renewed = await rig.server.upstreamTokens.get(caller)
  t.ok(renewed?.accessToken)
  t.not(renewed?.accessToken, before?.accessToken, 'the refresh request is signed as well')

  writeFileSync(privateKeyPath, makeKey().pem)
  rig.pass(3_600_000)
  t.equal((await client.with().login()).error, 'server_error', 'the provider does not know the key')

  writeFileSync(privateKeyPath, 'not a key')
  rig.pass(3_600_000)
  t.equal((await client.with().login()).error, 'temporarily_unavailable')
  t.match(
    rig.logged(),
    /"upstreamProviders\[corp\]\.oidcConfig\.clientAuth\.privateKeyPath: expected a private key as PEM or JWK"/,
  )
  t.notMatch(rig.logged(), /backend/)
  t.notMatch(rig.logged(), /PRIVATE KEY|not a key/)

  writeFileSync(privateKeyPath, second.pem)
  rig.pass(3_600_000)
  t.match((await client.with().login()).code, /^gh_ac_/)
})

async function signInAtHub(t: Test, clientAuth: ClientAuth, more: Partial<OAuth2UpstreamSettings> = {}) {
  const hub = await startHub(t)
  const rig = await startAuthServer(t, {
    upstreams: ({ issuer }) => [hub.upstream(issuer, { clientAuth, ...more })],
  })
  await (await TestClient.register(rig)).signIn()
  const request = hub.seen.find(({ path }) => path === '/token')
  if (!request) throw new Error('no token request')
  return { form: request.form, headers: request.headers, url: hub.url }
}

await t.test('assertions for a plain OAuth provider name its token endpoint', async (t) => {
  const privateKeyPath = writeTo(t, 'key', makeKey().pem)
  const key = { method: 'privateKeyJwt', privateKeyPath } as const
  const { form, url } = await signInAtHub(t, key)
  const assertion = form.get('client_assertion') ?? ''
  t.match(decodeJwt(assertion), { iss: 'our-id', sub: 'our-id', aud: `${url}/token`, jti: /./ })
  t.match(decodeProtectedHeader(assertion), { alg: 'ES256', typ: 'client-authentication+jwt' })
  t.notOk(form.has('client_secret'))
  const old = await signInAtHub(t, { ...key, assertionAudience: 'https://old.example' })
  t.equal(decodeJwt(old.form.get('client_assertion') ?? '').aud, 'https://old.example')
})

await t.test('federated sends the token of the platform', async (t) => {
  const assertionPath = writeTo(t, 'token', 'from-the-platform')
  const { form } = await signInAtHub(t, { method: 'federated', assertionPath })
  t.equal(form.get('client_assertion'), 'from-the-platform')
  t.equal(form.get('client_id'), 'our-id')
})

await t.test('the secret is sent as configured, also when a preset has another method', async (t) => {
  const clientSecret = () => 's'
  const basic = await signInAtHub(t, { method: 'clientSecretBasic' }, { clientSecret, provider: 'github' })
  t.equal(basic.headers.authorization, `Basic ${Buffer.from('our-id:s').toString('base64')}`)
  const post = await signInAtHub(t, { method: 'clientSecretPost' }, { clientSecret })
  t.equal(post.form.get('client_secret'), 's')
  t.equal(post.headers.authorization, undefined)
})

await t.test(
  'a provider identifies the client by its certificate, before and after a rotation',
  async (t) => {
    const pass = startPassingTime(t)
    const authority = await makeAuthority()
    const [first, second] = [
      await authority.leaf({ usage: 'clientAuth' }),
      await authority.leaf({ usage: 'clientAuth' }),
    ]
    const mounted = mountSecret(secretOf(first, authority.ca))
    // The test's browser must trust the authority.
    const trusted = getCACertificates('default')
    setDefaultCACertificates([...trusted, authority.ca])
    t.teardown(() => setDefaultCACertificates(trusted))
    const server = await authority.leaf()
    const serials = new Set<string>()
    const peer = (context: Context) => (context as unknown as { req: { socket: TLSSocket } }).req.socket
    const rig = await startAuthServer(t, {
      provider: (issuer) => ({
        clients: [
          clientOf(issuer, {
            token_endpoint_auth_method: 'tls_client_auth',
            tls_client_auth_subject_dn: 'CN=localhost',
          }),
        ],
        configuration: { clientAuthMethods: ['tls_client_auth'] },
        features: {
          mTLS: {
            enabled: true,
            tlsClientAuth: true,
            getCertificate: (context: Context) => peer(context).getPeerX509Certificate(),
            certificateAuthorized: (context: Context) => peer(context).authorized,
            certificateSubjectMatches: (context: Context, _property: string, expected: string) => {
              serials.add(peer(context).getPeerCertificate().serialNumber)
              return peer(context).getPeerX509Certificate()?.subject === expected
            },
          },
        },
        tls: { ...server, ca: authority.ca },
      }),
      upstreams: ({ issuer, provider }) => [
        withoutSecret(issuer, provider, {
          caBundlePath: mounted.caFile,
          clientCertificatePath: mounted.certFile,
          clientKeyPath: mounted.keyFile,
        }),
      ],
    })
    const client = await TestClient.register(rig)
    const { caller } = await client.signIn()
    t.ok((await rig.server.upstreamTokens.get(caller))?.accessToken)
    t.same([...serials], [first.serialNumber])

    serials.clear()
    mounted.write(secretOf(second, authority.ca))
    rig.provider.endConnections()
    pass(10_000)
    t.ok(await client.with().signIn())
    t.same([...serials], [second.serialNumber])
  },
)

await t.test('a client with a certificate uses the token endpoint for such clients', async (t) => {
  const authority = await makeAuthority()
  const mounted = mountSecret(secretOf(await authority.leaf({ usage: 'clientAuth' })))
  const certificate = { clientCertificatePath: mounted.certFile, clientKeyPath: mounted.keyFile }
  const login = async (more: object, alias?: unknown): Promise<readonly [string | undefined, string[]]> => {
    const hub = await startHub(t)
    const metadata = { mtls_endpoint_aliases: { token_endpoint: alias ?? `${hub.url}/token` } }
    const rig = await startAuthServer(t, {
      provider: { configuration: { discovery: metadata } },
      upstreams: ({ issuer, provider }) => [{ ...corp(issuer, provider), ...more }],
    })
    const { error } = await (await TestClient.register(rig)).login()
    return [error, [...hub.seen, ...rig.provider.requests.map((path) => ({ path }))].map(({ path }) => path)]
  }
  const [, withCertificate] = await login(certificate)
  t.same(
    withCertificate.filter((path) => path === '/token'),
    ['/token'],
  )
  t.equal(withCertificate[0], '/token', 'at the alias')
  const [error, without] = await login({})
  t.equal(error, undefined)
  t.not(without[0], '/token', 'without a certificate, the alias is not used')
  for (const alias of [7, '/token', 'http://idp.example.com/token'])
    t.equal((await login(certificate, alias))[0], 'server_error', `alias ${alias}`)
})

await t.test('start-up reports unusable keys, tokens and certificates', async (t) => {
  const authority = await makeAuthority()
  const [one, two] = [await authority.leaf(), await authority.leaf()]
  const mixed = mountSecret({ 'tls.crt': one.cert, 'tls.key': two.key })
  const upstream = (more: object) =>
    withoutSecret('https://a.example.com', { issuer: 'https://idp.example.com' } as never, more)
  const check = (more: object) =>
    checkSettings({ ...parseAuthServerConfig(file({}), {}), upstreams: [upstream(more)] })
  const rejected = async (more: object, message: RegExp) =>
    t.rejects(check(more), { code: 'INVALID_CONFIG', message })
  const auth = (clientAuth: object) => ({ clientAuth })
  await rejected(
    auth({ method: 'privateKeyJwt', privateKeyPath: '/gone' }),
    /upstreamProviders\[0\]\.oidcConfig\.clientAuth\.privateKeyPath: .*\/gone cannot be read/,
  )
  await rejected(
    auth({ method: 'privateKeyJwt', privateKeyPath: writeTo(t, 'key', makeKey().pem), signingAlg: 'RS256' }),
    /clientAuth\.privateKeyPath: /,
  )
  await rejected(
    auth({ method: 'federated', assertionPath: '/gone' }),
    /oidcConfig\.clientAuth\.assertionPath: .*\/gone cannot be read/,
  )
  await rejected(
    { clientCertificatePath: mixed.certFile, clientKeyPath: mixed.keyFile },
    /upstreamProviders\[0\]\.clientKeyPath: the key does not belong to the certificate/,
  )
})

/** A configuration file with one provider. */
function file(more: object, oidc: object = {}): string {
  const oidcConfig = { issuerUrl: 'https://idp.example.com', clientId: 'gatehouse', ...oidc }
  return JSON.stringify({
    issuer: 'https://a.example.com',
    allowedAudiences: ['https://a.example.com'],
    upstreamProviders: [{ name: 'corp', type: 'oidc', oidcConfig, ...more }],
  })
}

await t.test('file: the settings take effect, and impossible combinations are errors', async (t) => {
  const authority = await makeAuthority()
  const mounted = mountSecret(secretOf(await authority.leaf()))
  const paths = { clientCertificatePath: mounted.certFile, clientKeyPath: mounted.keyFile }
  const clientAuth = { method: 'privateKeyJwt', privateKeyPath: '/key', signingAlg: 'ES256' }
  const [upstream] = parseAuthServerConfig(file(paths, { clientAuth }), {}).upstreams
  t.match(upstream, { ...paths, clientAuth })
  const rejects = (text: string, message: RegExp) =>
    t.throws(() => parseAuthServerConfig(text, { SECRET: 's' }), { code: 'INVALID_CONFIG', message })
  rejects(file({ clientCertificatePath: '/tls.crt' }), /must be set together/)
  rejects(
    file({ ...paths, clientKeyPath: '/gone' }),
    /upstreamProviders\[0\]\.clientKeyPath \/gone cannot be read/,
  )
  const oauth2Config = {
    authorizationEndpoint: 'https://idp.example.com/authorize',
    tokenEndpoint: 'http://idp.example.com/token',
    clientId: 'gatehouse',
  }
  rejects(
    file({ ...paths, type: 'oauth2', oidcConfig: undefined, oauth2Config }),
    /needs an https issuerUrl or tokenEndpoint/,
  )
  rejects(
    file({}, { clientAuth, clientSecretEnv: 'SECRET' }),
    /a client secret must be set with clientAuth exactly when/,
  )
  rejects(
    file({}, { clientAuth: { method: 'clientSecretPost' } }),
    /a client secret must be set with clientAuth exactly when/,
  )
  rejects(file({}, { clientAuth: { method: 'federated' } }), /assertionPath must be set/)
})
