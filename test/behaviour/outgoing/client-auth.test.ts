/** clientAuth: how tokenExchange, obo and xaa authenticate at their token endpoints. */
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { decodeJwt, generateKeyPair, SignJWT } from 'jose'
import t, { type Test } from 'tap'
import { silentLog } from '../../../runtime/net/index.ts'
import { makeOutgoing, type StrategyConfig } from '../../../runtime/outgoing/index.ts'
import { type SeenRequest, startLoopback } from '../../helpers/loopback.ts'
import { testCaller, testRequest, testUpstream } from '../../helpers/outgoing/outgoing.ts'

type Auth = NonNullable<NonNullable<StrategyConfig['obo']>['clientAuth']>

const idJag = 'urn:ietf:params:oauth:token-type:id-jag'
const target = 'https://target.example'
const signing = await generateKeyPair('ES256')
const jag = await new SignJWT({ aud: target })
  .setProtectedHeader({ alg: 'ES256', typ: 'oauth-id-jag+jwt' })
  .sign(signing.privateKey)
const token = { access_token: 'at', token_type: 'Bearer', expires_in: 3600 }
const assertion = { access_token: jag, token_type: 'N_A', issued_token_type: idJag, expires_in: 60 }

function directory(t: Test): string {
  const path = mkdtempSync(join(tmpdir(), 'client-auth-'))
  t.teardown(() => rmSync(path, { recursive: true }))
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  writeFileSync(join(path, 'key'), privateKey.export({ format: 'pem', type: 'pkcs8' }))
  writeFileSync(join(path, 'token'), 'from-the-platform')
  return path
}

/** Strategy -> its settings with the client authentication, and the default audience of assertions per path. */
const strategies: Readonly<
  Record<
    string,
    (url: string, auth: Auth | undefined, secret: string | undefined) => readonly [StrategyConfig, object]
  >
> = {
  token_exchange: (url, clientAuth, clientSecret) => [
    {
      type: 'token_exchange',
      tokenExchange: { tokenUrl: `${url}/token`, clientId: 'gw', clientSecret, clientAuth },
    },
    { '/token': `${url}/token` },
  ],
  obo: (url, clientAuth, clientSecret) => [
    {
      type: 'obo',
      obo: { tokenUrl: `${url}/token`, clientId: 'gw', clientSecret, clientAuth, audience: 'api://crm' },
    },
    { '/token': `${url}/token` },
  ],
  xaa: (url, auth, secret) => [
    {
      type: 'xaa',
      xaa: {
        idpTokenUrl: `${url}/idp`,
        idpClientId: 'gw',
        idpClientSecret: secret,
        idpClientAuth: auth,
        targetTokenUrl: `${url}/token`,
        targetClientId: 'gw',
        targetClientSecret: secret,
        targetClientAuth: auth,
        targetAudience: target,
        subjectProviderName: 'corp',
      },
    },
    { '/idp': `${url}/idp`, '/token': target },
  ],
}

/** Sends one request and returns what the token endpoints received. */
async function requestsOf(t: Test, type: string, auth?: Auth, secret?: string) {
  const server = await startLoopback(({ path }) => ({ body: path === '/idp' ? assertion : token }))
  const upstream = testUpstream({ 'alice corp': { accessToken: 'at', idToken: 'id-of-alice' } })
  const outgoing = makeOutgoing({ enableObo: true, upstream })
  t.teardown(() => Promise.all([server.close(), outgoing.close()]))
  const [config, audiences] = strategies[type]?.(server.url, auth, secret) ?? []
  if (!config) throw new Error(type)
  await outgoing.strategy(config).apply(testRequest({ headers: {} }), testCaller())
  return { seen: server.seen, audiences }
}

const byPath = (seen: readonly SeenRequest[], read: (request: SeenRequest) => unknown) =>
  Object.fromEntries(seen.map((request) => [request.path, read(request)]))

for (const type of Object.keys(strategies)) {
  await t.test(`${type}: clientSecretBasic and clientSecretPost`, async (t) => {
    const basic = await requestsOf(t, type, { method: 'clientSecretBasic' }, 's')
    for (const { headers, form } of basic.seen) {
      t.equal(headers.authorization, `Basic ${Buffer.from('gw:s').toString('base64')}`)
      t.notOk(form.has('client_secret'))
    }
    const post = await requestsOf(t, type, { method: 'clientSecretPost' }, 's')
    for (const { headers, form } of post.seen) {
      t.equal(headers.authorization, undefined)
      t.equal(form.get('client_secret'), 's')
    }
  })

  await t.test(`${type}: privateKeyJwt signs for the server`, async (t) => {
    const key = { method: 'privateKeyJwt', privateKeyPath: join(directory(t), 'key') } as const
    const { seen, audiences } = await requestsOf(t, type, { ...key, signingAlg: 'PS256' })
    const claims = ({ form }: SeenRequest) => decodeJwt(form.get('client_assertion') ?? '')
    t.same(
      byPath(seen, (request) => claims(request).aud),
      audiences,
    )
    for (const request of seen) {
      t.match(claims(request), { iss: 'gw', sub: 'gw', jti: /./ })
      t.notOk(request.form.has('client_secret'))
    }
    const told = await requestsOf(t, type, { ...key, assertionAudience: 'https://old.example' })
    for (const request of told.seen) t.equal(claims(request).aud, 'https://old.example')
  })

  await t.test(`${type}: federated sends the platform's token`, async (t) => {
    const assertionPath = join(directory(t), 'token')
    const { seen } = await requestsOf(t, type, { method: 'federated', assertionPath })
    t.ok(seen.length > 0)
    for (const { form, headers } of seen) {
      t.same(
        [form.get('client_id'), form.get('client_assertion'), headers.authorization],
        ['gw', 'from-the-platform', undefined],
      )
    }
  })

  await t.test(`${type}: errors name the setting and the client that was rejected`, async (t) => {
    const outgoing = makeOutgoing({ enableObo: true, upstream: testUpstream({}) })
    t.teardown(() => outgoing.close())
    const problems = (auth: Auth, secret?: string) => {
      const [config] = strategies[type]?.('https://idp.example', auth, secret) ?? []
      return config ? outgoing.problems(config).join('\n') : ''
    }
    t.match(problems({ method: 'clientSecretPost' }), /lientSecret: set \w*lientSecret or/)
    t.match(problems({ method: 'privateKeyJwt' }), /lientAuth\.privateKeyPath: is required/)
    t.match(
      problems({ method: 'privateKeyJwt', privateKeyPath: '/gone' }),
      /privateKeyPath: .* cannot be read/,
    )
    t.match(
      problems({ method: 'federated', assertionPath: '/t' }, 's'),
      /lientSecret: is only for the methods/,
    )
  })
}

await t.test('token_exchange: a key also gets the token for health checks', async (t) => {
  const server = await startLoopback(() => ({ body: token }))
  const outgoing = makeOutgoing()
  t.teardown(() => Promise.all([server.close(), outgoing.close()]))
  const strategy = outgoing.strategy({
    type: 'token_exchange',
    tokenExchange: {
      tokenUrl: server.url,
      clientId: 'gw',
      clientAuth: { method: 'privateKeyJwt', privateKeyPath: join(directory(t), 'key') },
    },
  })
  const request = testRequest({ headers: {} })
  await strategy.apply(request, undefined)
  t.equal(request.headers['authorization'], 'Bearer at')
  t.equal(server.seen[0]?.form.get('grant_type'), 'client_credentials')
})

await t.test(
  'an unusable file is logged once for each change, and the last value stays in use',
  async (t) => {
    const server = await startLoopback(() => ({ body: { ...token, expires_in: 1 } }))
    const lines: string[] = []
    let now = 1_000_000
    const outgoing = makeOutgoing({
      now: () => now,
      log: { ...silentLog, warn: (message, fields) => lines.push(`${message} ${JSON.stringify(fields)}`) },
    })
    t.teardown(() => Promise.all([server.close(), outgoing.close()]))
    const assertionPath = join(directory(t), 'token')
    const strategy = outgoing.strategy({
      type: 'client_credentials',
      clientCredentials: {
        tokenUrl: server.url,
        clientId: 'gw',
        clientAuth: { method: 'federated', assertionPath },
      },
    })
    const linesAfter = async (change: () => void) => {
      change()
      for (let request = 0; request < 3; request++) {
        now += 2000
        await strategy.apply(testRequest({ headers: {} }), undefined)
      }
      return lines.splice(0)
    }
    const empty = [/^secret not reloaded; the last value stays in use .*is empty"}$/]
    t.match(await linesAfter(() => writeFileSync(assertionPath, '')), empty)
    t.match(await linesAfter(() => rmSync(assertionPath)), [/cannot be read/])
    t.same(await linesAfter(() => writeFileSync(assertionPath, 'second')), [])
    t.match(await linesAfter(() => writeFileSync(assertionPath, '')), empty, 'after a recovery')
    const sent = server.seen.map(({ form }) => form.get('client_assertion'))
    t.same(new Set(sent.slice(0, 6)), new Set(['from-the-platform']))
    t.same(new Set(sent.slice(6)), new Set(['second']))
  },
)

await t.test('xaa: a rejected client is reported with its own settings', async (t) => {
  for (const [path, name] of [
    ['/idp', /check outgoingAuth\.xaa\.idpClientId and outgoingAuth\.xaa\.idpClientSecret/],
    ['/token', /check outgoingAuth\.xaa\.targetClientId and outgoingAuth\.xaa\.targetClientSecret/],
  ] as const) {
    const server = await startLoopback((request) =>
      request.path === path
        ? { status: 401, body: { error: 'invalid_client' } }
        : { body: request.path === '/idp' ? assertion : token },
    )
    const upstream = testUpstream({ 'alice corp': { accessToken: 'at', idToken: 'id-of-alice' } })
    const outgoing = makeOutgoing({ upstream })
    t.teardown(() => Promise.all([server.close(), outgoing.close()]))
    const [config] = strategies['xaa']?.(server.url, undefined, 's') ?? []
    if (!config) throw new Error('xaa')
    const strategy = outgoing.strategy(config)
    await t.rejects(async () => strategy.apply(testRequest({ headers: {} }), testCaller()), {
      code: 'BACKEND_AUTH_FAILED',
      message: name,
    })
  }
})
