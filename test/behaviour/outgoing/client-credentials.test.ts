/** Type client_credentials: one token for all callers, from a real OpenID provider or from a scripted token endpoint. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import t, { type Test } from 'tap'
import { makeOutgoing, type StrategyConfig } from '../../../runtime/outgoing/index.ts'
import type { OutgoingParts } from '../../../runtime/outgoing/registry.ts'
import { startOidcProvider } from '../../helpers/authserver/oidc-provider.ts'
import { type PeerResponse, startLoopback } from '../../helpers/loopback.ts'
import { testCaller, testRequest } from '../../helpers/outgoing/outgoing.ts'

type Block = NonNullable<StrategyConfig['clientCredentials']>

const backend = 'https://backend.example'
const clientOf = (more: object) => ({
  client_id: 'gateway',
  redirect_uris: [],
  response_types: [],
  grant_types: ['client_credentials'],
  scope: 'read write',
  ...more,
})

function newKey(): { readonly pem: string; readonly jwk: object } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { pem: pemOf(privateKey), jwk: { ...publicKey.export({ format: 'jwk' }), use: 'sig', alg: 'ES256' } }
}

const pemOf = (key: KeyObject) => key.export({ format: 'pem', type: 'pkcs8' }).toString()

/** A strategy with files in a test directory. `send` returns the headers of one request. */
function strategyFor(t: Test, block: Block, parts: OutgoingParts = {}) {
  const outgoing = makeOutgoing(parts)
  t.teardown(() => outgoing.close())
  const strategy = outgoing.strategy({ type: 'client_credentials', clientCredentials: block })
  const send = async (subject?: string) => {
    const headers = { authorization: 'Bearer of-the-client' }
    const request = testRequest({ headers })
    await strategy.apply(request, subject === undefined ? undefined : testCaller({ subject }))
    return request
  }
  const token = async (subject?: string) =>
    (await send(subject)).headers['authorization']?.replace(/^Bearer /, '') ?? ''
  return { strategy, send, token }
}

/** A token endpoint that numbers its tokens, until `answer` returns another response. */
async function scripted(t: Test, expiresInSec: number | undefined = 3600) {
  const script: { answer: (() => PeerResponse) | undefined } = { answer: undefined }
  let count = 0
  const server = await startLoopback(
    () =>
      script.answer?.() ?? {
        body: { access_token: `token-${++count}`, token_type: 'Bearer', expires_in: expiresInSec },
      },
  )
  t.teardown(() => server.close())
  return { server, script }
}

/** Writes a file to its own directory and returns the path. */
function fileIn(t: Test, name: string, text: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'client-credentials-'))
  t.teardown(() => rmSync(directory, { recursive: true }))
  const path = join(directory, name)
  writeFileSync(path, text)
  return path
}

await t.test(
  'a secret gets a token for the resource and scopes from the endpoint that the issuer advertises',
  async (t) => {
    const idp = await startOidcProvider({
      clients: [clientOf({ client_secret: 'gw:secret/+' })],
      resources: { [backend]: {} },
    })
    t.teardown(() => idp.close())
    const clientSecretPath = fileIn(t, 'secret', 'gw:secret/+\n')
    const common = { clientId: 'gateway', clientSecretPath, scopes: ['read'], resource: backend }
    for (const server of [{ issuer: idp.issuer }, { tokenUrl: `${idp.issuer}/token` }]) {
      const { token } = strategyFor(t, { ...server, ...common })
      t.match(decodeJwt(await token('alice')), { aud: backend, client_id: 'gateway', scope: 'read' })
    }
    t.equal(idp.requests.filter((path) => path.endsWith('oauth-authorization-server')).length, 1)
  },
)

await t.test('a key gets a token: the assertion is for the issuer and expires after a minute', async (t) => {
  const { pem, jwk } = newKey()
  const client = clientOf({
    token_endpoint_auth_method: 'private_key_jwt',
    token_endpoint_auth_signing_alg: 'ES256',
    jwks: { keys: [jwk] },
  })
  const idp = await startOidcProvider({ clients: [client], resources: { [backend]: {} } })
  t.teardown(() => idp.close())
  const privateKeyPath = fileIn(t, 'key', pem)
  const clientAuth = { method: 'privateKeyJwt', privateKeyPath } as const
  const { token } = strategyFor(t, {
    issuer: idp.issuer,
    clientId: 'gateway',
    clientAuth,
    scopes: ['read'],
    resource: backend,
  })
  t.match(decodeJwt(await token()), { aud: backend, client_id: 'gateway' })

  const { server } = await scripted(t)
  const direct = strategyFor(t, { tokenUrl: server.url, clientId: 'gateway', clientAuth })
  await direct.token()
  const assertionAudience = 'https://idp.example'
  const told = strategyFor(t, {
    tokenUrl: server.url,
    clientId: 'gateway',
    clientAuth: { ...clientAuth, assertionAudience },
  })
  await told.token()
  const [first = '', second = ''] = server.seen.map(({ form }) => form.get('client_assertion') ?? '')
  t.equal(decodeProtectedHeader(first).alg, 'ES256')
  const { iss, sub, aud, exp = 0, iat = 0 } = decodeJwt(first)
  t.same([iss, sub, aud, exp - iat], ['gateway', 'gateway', server.url, 60])
  t.equal(decodeJwt(second).aud, assertionAudience)
  t.notOk(server.seen[0]?.form.has('client_secret'))
  t.equal(server.seen[0]?.headers.authorization, undefined)
})

await t.test('a ServiceAccount token is sent unchanged from its file, even after renewal', async (t) => {
  const { server } = await scripted(t, 60)
  const assertionPath = fileIn(t, 'token', 'platform-1')
  let now = 1_000_000
  const { token } = strategyFor(
    t,
    { tokenUrl: server.url, clientId: 'gateway', clientAuth: { method: 'federated', assertionPath } },
    { now: () => now },
  )
  t.equal(await token(), 'token-1')
  writeFileSync(assertionPath, 'platform-2')
  now += 2000
  t.equal(await token(), 'token-1', 'the issued token stays valid')
  now += 60_000
  t.equal(await token(), 'token-2')
  t.same(
    server.seen.map(({ form }) => [form.get('client_assertion'), form.get('client_assertion_type')]),
    [1, 2].map((n) => [`platform-${n}`, 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer']),
  )
})

await t.test('all callers and health checks share one token and one request for it', async (t) => {
  const { server } = await scripted(t)
  const settings = { tokenUrl: server.url, clientId: 'gateway', clientSecretEnv: 'S' }
  const { strategy, token } = strategyFor(t, settings, { secret: () => 'x' })
  t.notOk(strategy.perCaller)
  const tokens = await Promise.all(['alice', 'bob', 'carol', undefined].map((subject) => token(subject)))
  t.same(new Set(tokens), new Set(['token-1']))
  t.equal(server.seen.length, 1)
  t.notMatch(JSON.stringify(server.seen[0]), /of-the-client|token-of-/)
})

await t.test('a token is renewed 30 seconds before it expires', async (t) => {
  const { server } = await scripted(t, 600)
  let now = 1_000_000
  const settings = { tokenUrl: server.url, clientId: 'gateway', clientSecretEnv: 'S' }
  const { token } = strategyFor(t, settings, { secret: () => 'x', now: () => now })
  t.equal(await token(), 'token-1')
  now += 569_999
  t.equal(await token(), 'token-1')
  now += 1
  t.equal(await token(), 'token-2')
})

await t.test('a 401 from the backend renews the token once', async (t) => {
  const { server } = await scripted(t)
  let now = 1_000_000
  const settings = { tokenUrl: server.url, clientId: 'gateway', clientSecretEnv: 'S' }
  const { strategy, send, token } = strategyFor(t, settings, { secret: () => 'x', now: () => now })
  const [first, second] = [await send('alice'), await send('bob')]
  t.notOk(strategy.refused(first), 'a token this new is not renewed')
  now += 5000
  t.ok(strategy.refused(first))
  t.ok(strategy.refused(second), 'the other caller may retry as well')
  t.equal(await token('alice'), 'token-2')
  t.equal(await token('bob'), 'token-2')
  t.equal(server.seen.length, 2)
})

await t.test('a rotated secret and a rotated key take effect without a restart', async (t) => {
  const { server } = await scripted(t)
  let now = 1_000_000
  const secretPath = fileIn(t, 'secret', 'old')
  const byFile = strategyFor(
    t,
    { tokenUrl: server.url, clientId: 'gateway', clientSecretPath: secretPath },
    { now: () => now },
  )
  t.equal(await byFile.token(), 'token-1')
  writeFileSync(secretPath, 'new')
  now += 2000
  t.equal(await byFile.token(), 'token-2')
  writeFileSync(secretPath, '')
  now += 2000
  t.equal(await byFile.token(), 'token-2', 'an unfinished rotation keeps the last value')
  t.same(
    server.seen.map(({ headers }) => Buffer.from(headers.authorization?.slice(6) ?? '', 'base64').toString()),
    ['gateway:old', 'gateway:new'],
  )

  let variable: string | undefined = 'one'
  const byVariable = strategyFor(
    t,
    { tokenUrl: server.url, clientId: 'gateway', clientSecretEnv: 'S' },
    { secret: () => variable },
  )
  await byVariable.token()
  variable = undefined
  await t.rejects(byVariable.token(), { code: 'BACKEND_AUTH_FAILED', message: /clientSecretEnv/ })

  const [old, next] = [newKey(), newKey()]
  const registered = { keys: [old.jwk, next.jwk].map((jwk, n) => ({ ...jwk, kid: `key-${n}` })) }
  const client = clientOf({ token_endpoint_auth_method: 'private_key_jwt', jwks: registered })
  const idp = await startOidcProvider({ clients: [client] })
  t.teardown(() => idp.close())
  const privateKeyPath = fileIn(t, 'key', old.pem)
  const byKey = strategyFor(
    t,
    { issuer: idp.issuer, clientId: 'gateway', clientAuth: { method: 'privateKeyJwt', privateKeyPath } },
    { now: () => now },
  )
  const before = await byKey.token()
  writeFileSync(privateKeyPath, next.pem)
  now += 2000
  t.not(await byKey.token(), before)
  writeFileSync(privateKeyPath, 'no key')
  now += 2000
  await t.rejects(byKey.token(), { code: 'BACKEND_AUTH_FAILED', message: /clientAuth\.privateKeyPath/ })
})

await t.test('while the token endpoint is down, the current token stays in use', async (t) => {
  const { server, script } = await scripted(t, 600)
  let now = 1_000_000
  const results: unknown[] = []
  const settings = { tokenUrl: server.url, clientId: 'gateway', clientSecretEnv: 'S' }
  const { token } = strategyFor(t, settings, {
    secret: () => 'x',
    now: () => now,
    obtained: (strategy, error) => results.push([strategy, error === undefined]),
  })
  t.equal(await token(), 'token-1')
  script.answer = () => 'cut'
  t.equal(await token('alice'), 'token-1')
  now += 600_000
  await t.rejects(token('alice'), { code: 'BACKEND_AUTH_UNAVAILABLE', status: 503 })
  now += 1_000
  script.answer = () => ({ status: 503, headers: { 'retry-after': '7' } })
  await t.rejects(token(), { code: 'BACKEND_AUTH_UNAVAILABLE', headers: { 'retry-after': '7' } })
  script.answer = undefined
  now += 1_000
  t.equal(await token(), 'token-2')
  t.same(
    results,
    [true, false, false, true].map((ok) => ['client_credentials', ok]),
  )
})

await t.test('a rejected client is reported with its settings and without its secret', async (t) => {
  const { server, script } = await scripted(t)
  script.answer = () => ({ status: 401, body: { error: 'invalid_client', error_description: 'wrong' } })
  const settings = { tokenUrl: server.url, clientId: 'gateway', clientSecretEnv: 'S' }
  let now = 0
  const { token } = strategyFor(t, settings, { secret: () => 'pa55word', now: () => now })
  const error: Error = await token('alice').then(
    () => t.fail('rejected'),
    (reason) => reason,
  )
  t.match(error, { code: 'BACKEND_AUTH_FAILED', status: 502 })
  t.match(
    error.message,
    /invalid_client; check outgoingAuth\.clientCredentials\.clientId and outgoingAuth\.clientCredentials\.clientSecretEnv$/,
  )
  t.notMatch(`${error.message} ${error.stack} ${String(error.cause)}`, /pa55word/)
  now += 10_000
  script.answer = () => ({ status: 400, body: { error: 'invalid_scope' } })
  await t.rejects(token('alice'), { code: 'BACKEND_AUTH_FAILED', message: /invalid_scope$/ })
})

await t.test('callers do not cause a request each while the client is rejected', async (t) => {
  const { server, script } = await scripted(t)
  script.answer = () => ({ status: 401, body: { error: 'invalid_client' } })
  let [now, secret] = [0, 'old']
  const settings = { tokenUrl: server.url, clientId: 'gateway', clientSecretEnv: 'S' }
  const { token } = strategyFor(t, settings, { secret: () => secret, now: () => now })
  for (let call = 0; call < 20; call++)
    await t.rejects(token(`caller-${call}`), { code: 'BACKEND_AUTH_FAILED' })
  const requests = server.seen.length
  t.ok(requests <= 2, `one attempt, which may use both methods: ${requests}`)
  now += 9_999
  await t.rejects(token('alice'), { code: 'BACKEND_AUTH_FAILED' })
  t.equal(server.seen.length, requests)
  now += 1
  await t.rejects(token('alice'), { code: 'BACKEND_AUTH_FAILED' })
  t.equal(server.seen.length, 2 * requests, 'another attempt after ten seconds')
  script.answer = undefined
  secret = 'new'
  t.equal(await token('alice'), 'token-1', 'a new secret is used at once')
})

await t.test('metadata from another issuer or without a token endpoint is rejected', async (t) => {
  let document: object = { issuer: 'https://other.example' }
  const server = await startLoopback(() => ({ body: document }))
  t.teardown(() => server.close())
  const settings = { issuer: server.url, clientId: 'gateway', clientSecretEnv: 'S' }
  let now = 0
  const { token } = strategyFor(t, settings, { secret: () => 'x', now: () => (now += 10_000) })
  await t.rejects(token(), { code: 'BACKEND_AUTH_FAILED', message: /names another issuer/ })
  document = { issuer: server.url, token_endpoint: 'http://idp.example/token' }
  await t.rejects(token(), { code: 'BACKEND_AUTH_FAILED', message: /token_endpoint .* must be https/ })
  document = { issuer: server.url, token_endpoint: 'https://169.254.169.254/token' }
  await t.rejects(token(), { code: 'BACKEND_AUTH_FAILED', message: /address of .* is not allowed/ })
  t.ok(server.seen.every(({ method }) => method === 'GET'))
})

await t.test('a redirect from the token endpoint does not receive the secret', async (t) => {
  const { server, script } = await scripted(t)
  script.answer = () => ({ status: 307, headers: { location: `${server.url}/elsewhere` } })
  const settings = { tokenUrl: `${server.url}/token`, clientId: 'gateway', clientSecretEnv: 'S' }
  const { token } = strategyFor(t, settings, { secret: () => 'x' })
  await t.rejects(token(), { code: 'BACKEND_AUTH_FAILED' })
  t.same(
    server.seen.map(({ path }) => path),
    ['/token'],
  )
})

await t.test('an aborted caller does not cancel the request that other callers wait for', async (t) => {
  let respond: (() => void) | undefined
  const arrived = Promise.withResolvers<void>()
  const server = await startLoopback(async () => {
    arrived.resolve()
    await new Promise<void>((resolve) => (respond = resolve))
    return { body: { access_token: 'token-1', token_type: 'Bearer', expires_in: 60 } }
  })
  t.teardown(() => server.close())
  const settings = { tokenUrl: server.url, clientId: 'gateway', clientSecretEnv: 'S' }
  const { strategy, token } = strategyFor(t, settings, { secret: () => 'x' })
  const stop = new AbortController()
  const aborted = strategy.apply(testRequest({ headers: {} }), testCaller(), stop.signal)
  const other = token('bob')
  await arrived.promise
  stop.abort(new Error('gone'))
  await t.rejects(Promise.resolve(aborted), /gone/)
  respond?.()
  t.equal(await other, 'token-1')
  t.equal(server.seen.length, 1)
})

await t.test('settings: every error names its field and shows no secret', (t) => {
  const outgoing = makeOutgoing({ secret: (name) => (name === 'S' ? 'pa55word' : undefined) })
  t.teardown(() => outgoing.close())
  const tokenUrl = 'https://idp.example/token'
  const rsa = pemOf(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey)
  const [key, junk] = [fileIn(t, 'key', rsa), fileIn(t, 'junk', 'pa55word')]
  const good = { tokenUrl, clientId: 'gateway', clientSecretEnv: 'S' }
  const signed = (more: object) => ({
    tokenUrl,
    clientId: 'gateway',
    clientAuth: { method: 'privateKeyJwt', privateKeyPath: key, ...more } as const,
  })
  const rows: readonly [Block | undefined, RegExp | ''][] = [
    [good, ''],
    [signed({}), ''],
    [signed({ signingAlg: 'PS256' }), ''],
    [undefined, /clientCredentials: is required/],
    [{ ...good, issuer: 'https://idp.example' }, /set either issuer or tokenUrl/],
    [{ clientId: 'gateway', clientSecretEnv: 'S' }, /set either issuer or tokenUrl/],
    [{ ...good, tokenUrl: 'http://idp.example' }, /tokenUrl: must be https/],
    [{ issuer: 'http://idp.example', clientId: 'x', clientSecretEnv: 'S' }, /issuer: must be https/],
    [{ tokenUrl, clientSecretEnv: 'S' }, /clientId: must be set/],
    [{ tokenUrl, clientId: 'gateway' }, /clientSecret: set clientSecret or clientSecretEnv/],
    [{ ...good, clientSecretEnv: 'GONE' }, /clientSecretEnv: the variable GONE is not set or empty/],
    [{ tokenUrl, clientId: 'x', clientSecretPath: '/gone' }, /clientSecretPath: .*\/gone cannot be read/],
    [signed({ signingAlg: 'ES256' }), /clientAuth\.privateKeyPath: the key cannot sign with ES256/],
    [signed({ privateKeyPath: junk }), /clientAuth\.privateKeyPath: expected a private key as PEM or JWK/],
    [signed({ privateKeyPath: undefined }), /clientAuth\.privateKeyPath: is required/],
    [signed({ method: 'federated' }), /clientAuth\.assertionPath: is required/],
    [signed({ method: 'federated', assertionPath: '/gone' }), /clientAuth\.assertionPath: .*cannot be read/],
    [signed({ method: undefined }), /clientAuth\.method: is required/],
    [{ ...good, ...signed({}) }, /clientSecret: is only for the methods clientSecretBasic and/],
    [signed({ method: 'clientSecretPost' }), /clientSecret: set clientSecret or clientSecretEnv/],
  ]
  for (const [block, expected] of rows) {
    const found = outgoing.problems({ type: 'client_credentials', clientCredentials: block }).join('\n')
    if (expected === '') t.equal(found, '')
    else t.match(found, expected)
    t.notMatch(found, /pa55word|PRIVATE KEY/)
  }
  t.end()
})
