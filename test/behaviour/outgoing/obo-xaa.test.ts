/** On-behalf-of and cross-application access: the requests, the rejections and the caches. */
import { generateKeyPair, SignJWT } from 'jose'
import t, { type Test } from 'tap'
import { makeOutgoing, type StrategyConfig } from '../../../runtime/outgoing/index.ts'
import type { OutgoingParts } from '../../../runtime/outgoing/registry.ts'
import { type PeerResponse, startLoopback } from '../../helpers/loopback.ts'
import { testCaller, testRequest, testUpstream } from '../../helpers/outgoing/outgoing.ts'
import { proves } from '../../helpers/proves.ts'

async function rig(
  t: Test,
  make: (url: string) => StrategyConfig,
  response: (path: string) => PeerResponse | Promise<PeerResponse>,
  parts: OutgoingParts = {},
) {
  const server = await startLoopback(({ path }) => response(path))
  t.teardown(() => server.close())
  const outgoing = makeOutgoing(parts)
  t.teardown(() => outgoing.close())
  const strategy = outgoing.strategy(make(server.url))
  const send = async (caller = testCaller()) => {
    const request = testRequest({ headers: {} })
    await strategy.apply(request, caller)
    return request.headers['authorization']
  }
  return { server, strategy, send }
}

const good: PeerResponse = { body: { access_token: 'at', token_type: 'Bearer', expires_in: 3600 } }
const oboConfig = (url: string): StrategyConfig => ({
  type: 'obo',
  obo: {
    tokenUrl: `${url}/tenant/oauth2/v2.0/token`,
    clientId: 'app',
    clientSecret: 'sec',
    audience: 'api://backend',
  },
})

await t.test(
  'obo: without the switch every use fails with enterprise-required, and no request is sent',
  async (t) => {
    proves('3.config.outgoingAuth.obo')
    const { server, send, strategy } = await rig(t, oboConfig, () => good)
    await t.rejects(send(), { code: 'ENTERPRISE_REQUIRED', status: 503 })
    await t.rejects(async () => strategy.apply(testRequest(), undefined), { code: 'ENTERPRISE_REQUIRED' })
    t.equal(server.seen.length, 0)
  },
)

await t.test('obo: assertion and secret in the body, audience as default scope', async (t) => {
  proves('2.auth.obo', '2.call.obo', '2.obo.audience', '2.obo.rule.identity')
  const { server, send } = await rig(t, oboConfig, () => good, { enableObo: true })
  t.equal(await send(), 'Bearer at')
  t.equal(await send(), 'Bearer at')
  t.equal(server.seen.length, 1, 'alive')
  t.same(Object.fromEntries(server.seen[0]?.form ?? []), {
    grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
    requested_token_use: 'on_behalf_of',
    assertion: 'token-of-alice',
    client_id: 'app',
    client_secret: 'sec',
    scope: 'api://backend/.default',
  })
  t.equal(server.seen[0]?.headers.authorization, undefined)
})

await t.test('obo: the default scope of an audience has one slash and one suffix', async (t) => {
  proves('2.obo.audience')
  for (const audience of ['api://backend/', 'api://backend/.default']) {
    const config = (url: string): StrategyConfig => ({
      type: 'obo',
      obo: { ...oboConfig(url).obo, audience },
    })
    const { server, send } = await rig(t, config, () => good, { enableObo: true })
    await send()
    t.equal(server.seen[0]?.form.get('scope'), 'api://backend/.default', audience)
  }
})

await t.test(
  'obo: scopes override the audience, an upstream token can be the assertion, and the skew is the renewal margin',
  async (t) => {
    proves('2.obo.scopes', '2.obo.subjectTokenProviderName', '2.obo.cacheSkew')
    let now = 0
    const config = (url: string): StrategyConfig => ({
      type: 'obo',
      obo: {
        ...oboConfig(url).obo,
        scopes: ['s1', 's2'],
        subjectTokenProviderName: 'corp',
        cacheSkewSeconds: 600,
      },
    })
    const upstream = testUpstream({ 'alice corp': { accessToken: 'up' } })
    const { server, send } = await rig(t, config, () => good, { enableObo: true, upstream, now: () => now })
    await send()
    t.match(Object.fromEntries(server.seen[0]?.form ?? []), { scope: 's1 s2', assertion: 'up' })
    now = 2_999_999
    await send()
    t.equal(server.seen.length, 1)
    now = 3_000_000
    await send()
    t.equal(server.seen.length, 2)
  },
)

await t.test('obo: after a rejected assertion the user must sign in again', async (t) => {
  const { send } = await rig(t, oboConfig, () => ({ status: 400, body: { error: 'invalid_grant' } }), {
    enableObo: true,
  })
  await t.rejects(send(), { code: 'SUBJECT_REFUSED' })
})

const { privateKey } = await generateKeyPair('ES256')
const jagType = 'urn:ietf:params:oauth:token-type:id-jag'

async function assertion(change: { typ?: string; aud?: string | string[]; resource?: string }) {
  const {
    typ = 'oauth-id-jag+jwt',
    aud = 'https://target.example',
    resource = 'https://target.example/mcp',
  } = change
  return new SignJWT({ resource })
    .setProtectedHeader({ alg: 'ES256', typ })
    .setAudience(aud)
    .setExpirationTime('5m')
    .sign(privateKey)
}

const xaaConfig = (url: string): StrategyConfig => ({
  type: 'xaa',
  xaa: {
    idpTokenUrl: `${url}/idp`,
    idpClientId: 'at-idp',
    idpClientSecret: 'is',
    targetTokenUrl: `${url}/target`,
    targetClientId: 'at-target',
    targetClientSecret: 'ts',
    targetAudience: 'https://target.example',
    targetResource: 'https://target.example/mcp',
    scopes: ['chat'],
    subjectProviderName: 'corp',
  },
})
const upstream = testUpstream({ 'alice corp': { accessToken: 'no', idToken: 'id-of-alice' } })

await t.test(
  'xaa: the provider exchanges the ID token for an assertion, the target exchanges it for a token, and the token is cached',
  async (t) => {
    proves('3.config.outgoingAuth.xaa')
    const jag = await assertion({})
    const response = (path: string): PeerResponse =>
      path === '/idp'
        ? { body: { access_token: jag, token_type: 'N_A', issued_token_type: jagType, expires_in: 300 } }
        : good
    const { server, send } = await rig(t, xaaConfig, response, { upstream })
    t.equal(await send(), 'Bearer at')
    t.equal(await send(), 'Bearer at')
    t.same(
      server.seen.map(({ path, form }) => ({ path, ...Object.fromEntries(form) })),
      [
        {
          path: '/idp',
          grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
          requested_token_type: jagType,
          subject_token: 'id-of-alice',
          subject_token_type: 'urn:ietf:params:oauth:token-type:id_token',
          audience: 'https://target.example',
          resource: 'https://target.example/mcp',
          scope: 'chat',
        },
        { path: '/target', grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion: jag },
      ],
    )
  },
)

const wrong: readonly (readonly [
  string,
  { typ?: string; aud?: string | string[]; resource?: string },
  object,
])[] = [
  ['another typ', { typ: 'JWT' }, {}],
  ['another audience', { aud: 'https://other.example' }, {}],
  ['two audiences', { aud: ['https://target.example', 'https://other.example'] }, {}],
  ['another resource', { resource: 'https://target.example/other' }, {}],
  ['another issued type', {}, { issued_token_type: 'urn:ietf:params:oauth:token-type:access_token' }],
  ['a bearer token', {}, { token_type: 'Bearer' }],
]

for (const [title, change, body] of wrong) {
  await t.test(`xaa: ${title} is rejected and never reaches the target`, async (t) => {
    const jag = await assertion(change)
    const response = (): PeerResponse => ({
      body: { access_token: jag, token_type: 'N_A', issued_token_type: jagType, ...body },
    })
    const { server, send } = await rig(t, xaaConfig, response, { upstream })
    await t.rejects(send(), { code: 'BACKEND_AUTH_FAILED' })
    t.same(
      server.seen.map(({ path }) => path),
      ['/idp'],
    )
  })
}

await t.test('xaa: a rejected ID token requires a new login, a rejected assertion does not', async (t) => {
  const refused: PeerResponse = { status: 400, body: { error: 'invalid_grant' } }
  const atIdp = await rig(t, xaaConfig, () => refused, { upstream })
  await t.rejects(atIdp.send(), { code: 'SUBJECT_REFUSED' })
  const jag = await assertion({})
  const atTarget = await rig(
    t,
    xaaConfig,
    (path) =>
      path === '/idp'
        ? { body: { access_token: jag, token_type: 'N_A', issued_token_type: jagType } }
        : refused,
    { upstream },
  )
  await t.rejects(atTarget.send(), { code: 'BACKEND_AUTH_FAILED' })
  await t.rejects(atTarget.send(testCaller({ subject: 'bob' })), { code: 'UPSTREAM_NOT_CONNECTED' })
})

await t.test('xaa: a health check uses client credentials at the target', async (t) => {
  const { server, strategy } = await rig(t, xaaConfig, () => good, { upstream })
  const request = testRequest({ headers: {} })
  await strategy.apply(request, undefined)
  t.equal(request.headers['authorization'], 'Bearer at')
  t.match(
    server.seen.map(({ path, form }) => [path, form.get('grant_type')]),
    [['/target', 'client_credentials']],
  )
})
