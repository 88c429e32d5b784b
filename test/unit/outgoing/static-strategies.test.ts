/** Strategies that obtain nothing: no credential, a fixed header, a fixed token, an upstream's token. */
import t from 'tap'
import { makeOutgoing, type StrategyConfig } from '../../../runtime/outgoing/index.ts'
import type { OutgoingParts } from '../../../runtime/outgoing/registry.ts'
import { testCaller, testRequest, testUpstream } from '../../helpers/outgoing/outgoing.ts'
import { proves } from '../../helpers/proves.ts'

async function apply(config: StrategyConfig, parts: OutgoingParts = {}, caller = testCaller()) {
  const outgoing = makeOutgoing(parts)
  const request = testRequest({ headers: { accept: 'x', 'X-Api-Key': 'old' } })
  await outgoing.strategy(config).apply(request, caller)
  await outgoing.close()
  return request.headers
}

await t.test('unauthenticated: the request is not changed', async (t) => {
  proves('2.auth.unauthenticated')
  t.same(await apply({ type: 'unauthenticated' }), { accept: 'x', 'X-Api-Key': 'old' })
})

await t.test('header_injection: sets one header, replacing the same name in any case', async (t) => {
  proves('2.auth.headerInjection', '3.config.outgoingAuth.headerInjection.headerValue')
  const config = {
    type: 'header_injection',
    headerInjection: { headerName: 'X-API-Key', headerValue: 'new' },
  } as const
  t.same(await apply(config), { accept: 'x', 'x-api-key': 'new' })
})

await t.test(
  'header_injection: a variable is read at each use, and an unset variable is an error',
  async (t) => {
    proves('3.config.outgoingAuth.headerInjection.headerValueEnv')
    let value: string | undefined = 'one'
    const outgoing = makeOutgoing({ secret: () => value })
    t.teardown(() => outgoing.close())
    const strategy = outgoing.strategy({
      type: 'header_injection',
      headerInjection: { headerName: 'x-k', headerValueEnv: 'K' },
    })
    const send = async () => {
      const request = testRequest()
      await strategy.apply(request, undefined)
      return request.headers['x-k']
    }
    t.equal(await send(), 'one')
    value = 'two'
    t.equal(await send(), 'two')
    value = undefined
    await t.rejects(send(), { code: 'BACKEND_AUTH_FAILED' })
    value = 'a\nb'
    await t.rejects(send(), { code: 'BACKEND_AUTH_FAILED' })
  },
)

await t.test('bearer: the fixed token is sent with and without a caller', async (t) => {
  proves('2.auth.bearerToken')
  t.match(await apply({ type: 'bearer_token', bearerToken: { token: 'tok' } }), {
    authorization: 'Bearer tok',
  })
})

await t.test('upstream_inject: sends the caller’s own token of that provider', async (t) => {
  proves('2.auth.upstreamInject', '2.upstreamInject.providerName')
  const upstream = testUpstream({
    'alice github': { accessToken: 'gh-alice' },
    'bob github': { accessToken: 'gh-bob' },
  })
  const config = { type: 'upstream_inject', upstreamInject: { providerName: 'github' } } as const
  t.match(await apply(config, { upstream }), { authorization: 'Bearer gh-alice' })
  t.match(await apply(config, { upstream }, testCaller({ subject: 'bob' })), {
    authorization: 'Bearer gh-bob',
  })
  await t.rejects(apply(config, { upstream }, testCaller({ subject: 'eve' })), {
    code: 'UPSTREAM_NOT_CONNECTED',
    message: 'the user has not connected github: ask the user to sign in again',
  })
  const accountsUrl = 'https://mcp.example/oauth/accounts'
  await t.rejects(apply(config, { upstream: { ...upstream, accountsUrl } }, testCaller({ subject: 'eve' })), {
    message:
      'the user has not connected github: ask the user to open https://mcp.example/oauth/accounts and connect github there, then try again',
  })
})

await t.test('upstream_inject: a health check without a caller sends no token', async (t) => {
  const outgoing = makeOutgoing({ upstream: testUpstream({}) })
  t.teardown(() => outgoing.close())
  const request = testRequest()
  await outgoing
    .strategy({ type: 'upstream_inject', upstreamInject: { providerName: 'p' } })
    .apply(request, undefined)
  t.notOk('authorization' in request.headers)
})

await t.test('upstream_inject: a token with characters invalid in a header is not sent', async (t) => {
  const upstream = testUpstream({ 'alice p': { accessToken: 'a\r\nx-evil: 1' } })
  await t.rejects(apply({ type: 'upstream_inject', upstreamInject: { providerName: 'p' } }, { upstream }), {
    code: 'BACKEND_AUTH_FAILED',
  })
})
