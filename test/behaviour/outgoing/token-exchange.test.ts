/** Token exchange at a real OpenID provider with a custom grant: wire format, caching, failure classes. */
import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import { makeOutgoing, type StrategyConfig } from '../../../runtime/outgoing/index.ts'
import type { OutgoingParts } from '../../../runtime/outgoing/registry.ts'
import { startLoopback } from '../../helpers/loopback.ts'
import { type Context, startOidcProvider } from '../../helpers/authserver/oidc-provider.ts'
import { testCaller, testRequest, testUpstream, tokenlessCaller } from '../../helpers/outgoing/outgoing.ts'
import { proves } from '../../helpers/proves.ts'

const grant = 'urn:ietf:params:oauth:grant-type:token-exchange'
const backend = 'https://backend.example'
const resource = 'https://mcp.example/mcp'
const clients = [
  {
    client_id: 'gateway',
    client_secret: 'gw:secret/+',
    redirect_uris: [],
    response_types: [],
    grant_types: [grant, 'client_credentials'],
  },
  { client_id: 'app', client_secret: 's', redirect_uris: ['https://app.example/cb'] },
]

/** A provider whose exchange verifies the subject token's claims and issues a token for the same user. */
async function rig(
  t: Test,
  change: Partial<NonNullable<StrategyConfig['tokenExchange']>> = {},
  parts: OutgoingParts = {},
) {
  const seen: Record<string, string | undefined>[] = []
  const idp = await startOidcProvider({ clients, resources: { [backend]: {}, [resource]: {} } })
  t.teardown(() => idp.close())
  const exchange = async (ctx: Context) => {
    const { params } = ctx.oidc
    seen.push({ ...params })
    const { sub = '', iss } = decodeJwt(params['subject_token'] ?? '')
    if (iss !== idp.issuer)
      throw Object.assign(new Error('invalid_grant'), {
        expose: true,
        error: 'invalid_grant',
        status: 400,
        statusCode: 400,
      })
    const token = await idp.accessToken({
      clientId: ctx.oidc.client.clientId,
      resource: params['audience'] ?? '',
      accountId: sub,
      scope: params['scope'] ?? 'read',
    })
    ctx.body = {
      access_token: token,
      token_type: 'Bearer',
      issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      expires_in: 300,
    }
  }
  idp.provider.registerGrantType(grant, exchange, [
    'audience',
    'scope',
    'subject_token',
    'subject_token_type',
    'requested_token_type',
  ])
  const outgoing = makeOutgoing(parts)
  t.teardown(() => outgoing.close())
  const strategy = outgoing.strategy({
    type: 'token_exchange',
    tokenExchange: {
      tokenUrl: `${idp.issuer}/token`,
      audience: backend,
      clientId: 'gateway',
      clientSecret: 'gw:secret/+',
      ...change,
    },
  })
  const callerOf = async (subject: string) =>
    testCaller({
      subject,
      issuer: idp.issuer,
      token: await idp.accessToken({ clientId: 'app', resource, accountId: subject }),
    })
  const send = async (caller?: ReturnType<typeof testCaller>, headers: Record<string, string> = {}) => {
    const request = testRequest({ headers })
    await strategy.apply(request, caller)
    return request
  }
  return { idp, seen, strategy, callerOf, send }
}

await t.test(
  'token_exchange: the exchanged token replaces Authorization and belongs to the user',
  async (t) => {
    proves(
      '2.auth.tokenExchange',
      '2.call.token-exchange',
      '1.auth.outgoing.token-exchange',
      '3.config.outgoingAuth.tokenExchange.audience',
      '3.config.outgoingAuth.tokenExchange.scopes',
    )
    const { seen, callerOf, send } = await rig(t, { scopes: ['read', 'write'] })
    const caller = await callerOf('alice')
    const { headers } = await send(caller, { authorization: `Bearer ${caller.token}` })
    const claims = decodeJwt(headers['authorization']?.replace('Bearer ', '') ?? '')
    t.match(claims, { sub: 'alice', aud: backend, scope: 'read write' })
    t.match(seen, [
      {
        subject_token: caller.token,
        subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
        requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
        audience: backend,
        scope: 'read write',
      },
    ])
  },
)

await t.test('token_exchange: one exchange per caller and token, shared by all requests', async (t) => {
  const { seen, callerOf, send } = await rig(t)
  const [alice, bob] = [await callerOf('alice'), await callerOf('bob')]
  const sent = await Promise.all([send(alice), send(alice), send(alice), send(bob)])
  t.equal(seen.length, 2)
  t.equal(sent[0]?.headers['authorization'], sent[2]?.headers['authorization'])
  t.not(sent[0]?.headers['authorization'], sent[3]?.headers['authorization'])
  await send(await callerOf('alice'))
  t.equal(seen.length, 3, 'another token of the same user may carry other rights')
})

await t.test('token_exchange: with another header, the caller’s own token is not sent', async (t) => {
  proves('2.tokenExchange.externalTokenHeaderName')
  const { callerOf, send } = await rig(t, { externalTokenHeaderName: 'X-Exchanged' })
  const caller = await callerOf('alice')
  const { headers } = await send(caller, { authorization: `Bearer ${caller.token}` })
  t.match(headers['x-exchanged'], /^Bearer ey/)
  t.notOk('authorization' in headers)
  const other = await send(caller, { authorization: 'Basic configured' })
  t.equal(other.headers['authorization'], 'Basic configured', 'configured values are kept')
})

await t.test('token_exchange: an upstream id_token can be the subject', async (t) => {
  proves('2.tokenExchange.subjectTokenType', '2.tokenExchange.subjectProviderName')
  let idToken = ''
  const upstream = testUpstream({
    'alice corp': {
      accessToken: 'opaque',
      get idToken() {
        return idToken
      },
    },
  })
  const { seen, idp, callerOf, send } = await rig(
    t,
    { subjectProviderName: 'corp', subjectTokenType: 'id_token' },
    { upstream },
  )
  idToken = await idp.accessToken({ clientId: 'app', resource, accountId: 'alice' })
  await send(await callerOf('alice'))
  t.match(seen, [{ subject_token: idToken, subject_token_type: 'urn:ietf:params:oauth:token-type:id_token' }])
  await t.rejects(send(await callerOf('bob')), { code: 'UPSTREAM_NOT_CONNECTED' })
})

await t.test('token_exchange: a health check uses the gateway’s own credentials or none', async (t) => {
  const { idp, send } = await rig(t, { audience: undefined })
  const { headers } = await send(undefined)
  t.match(headers['authorization'], /^Bearer /)
  t.ok(idp.requests.includes('/token'))
  const publicClient = await rig(t, { clientSecret: undefined })
  t.same((await publicClient.send(undefined)).headers, {})
  t.equal(publicClient.idp.requests.length, 0)
})

await t.test(
  'token_exchange: a missing token, a rejected token and a wrong client secret have different errors',
  async (t) => {
    const { callerOf, send } = await rig(t)
    await t.rejects(send(tokenlessCaller()), { code: 'SUBJECT_REFUSED', status: 401 })
    const foreign = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from('{"iss":"x","sub":"a"}').toString('base64url')}.`
    await t.rejects(send(testCaller({ token: foreign })), { code: 'SUBJECT_REFUSED', status: 401 })
    const wrong = await rig(t, { clientSecret: 'no' })
    await t.rejects(wrong.send(await callerOf('alice')), {
      code: 'BACKEND_AUTH_FAILED',
      status: 502,
      message: /invalid_client/,
    })
  },
)

await t.test(
  'token_exchange: an outage is 503 with Retry-After, an invalid response is 502, and neither is cached',
  async (t) => {
    let response: object = { status: 503, headers: { 'retry-after': '9' }, body: 'down' }
    const server = await startLoopback(() => response)
    t.teardown(() => server.close())
    let now = 0
    const outgoing = makeOutgoing({ now: () => now })
    t.teardown(() => outgoing.close())
    const strategy = outgoing.strategy({
      type: 'token_exchange',
      tokenExchange: { tokenUrl: server.url, clientId: 'public' },
    })
    const send = async () => {
      const request = testRequest({ headers: {} })
      await strategy.apply(request, testCaller())
      return request
    }
    await t.rejects(send(), { code: 'BACKEND_AUTH_UNAVAILABLE', headers: { 'retry-after': '9' } })
    response = { body: { token_type: 'bearer' } }
    await t.rejects(send(), { code: 'BACKEND_AUTH_FAILED' })
    response = { body: { access_token: 'good', token_type: 'bearer', expires_in: 60 } }
    const request = await send()
    t.equal(request.headers['authorization'], 'Bearer good', 'issued_token_type may be absent')
    t.equal(server.seen[0]?.form.get('client_id'), 'public', 'a public client names itself')
    response = { body: { access_token: 'better', token_type: 'bearer', expires_in: 60 } }
    t.notOk(strategy.refused(request), 'a token this new is not replaced')
    now = 5_000
    t.ok(strategy.refused(request), 'the backend rejected it')
    t.equal((await send()).headers['authorization'], 'Bearer better')
    t.notOk(strategy.refused(testRequest()), 'a request without the gateway’s credentials')
  },
)

await t.test('token_exchange: without any client id the request names no client', async (t) => {
  const server = await startLoopback(() => ({ body: { access_token: 'a', token_type: 'bearer' } }))
  t.teardown(() => server.close())
  const outgoing = makeOutgoing()
  t.teardown(() => outgoing.close())
  await outgoing
    .strategy({ type: 'token_exchange', tokenExchange: { tokenUrl: server.url } })
    .apply(testRequest(), testCaller())
  t.notOk(server.seen[0]?.form.has('client_id'))
  t.equal(server.seen[0]?.headers.authorization, undefined)
})

await t.test('token_exchange: a rotated secret is reloaded', async (t) => {
  proves('3.config.outgoingAuth.tokenExchange.clientSecretEnv')
  let secret = 'old'
  const server = await startLoopback(() => ({
    body: { access_token: 'a', token_type: 'bearer', expires_in: 3600 },
  }))
  t.teardown(() => server.close())
  const outgoing = makeOutgoing({ secret: () => secret })
  t.teardown(() => outgoing.close())
  const strategy = outgoing.strategy({
    type: 'token_exchange',
    tokenExchange: { tokenUrl: server.url, clientId: 'c', clientSecretEnv: 'S' },
  })
  await strategy.apply(testRequest(), testCaller())
  secret = 'new'
  await strategy.apply(testRequest(), testCaller())
  t.same(
    server.seen.map(({ headers }) => Buffer.from(headers.authorization?.slice(6) ?? '', 'base64').toString()),
    ['c:old', 'c:new'],
  )
})
