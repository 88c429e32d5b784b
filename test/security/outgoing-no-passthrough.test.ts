/** No strategy sends the client's own credentials or other callers' credentials to a backend. */
import { inspect } from 'node:util'
import t from 'tap'
import { makeOutgoing, type StrategyConfig } from '../../runtime/outgoing/index.ts'
import { startLoopback } from '../helpers/loopback.ts'
import { testCaller, testRequest, testUpstream } from '../helpers/outgoing/outgoing.ts'

const server = await startLoopback(({ form }) => ({
  body: {
    access_token: `for-${form.get('subject_token') ?? form.get('assertion')}`,
    token_type: 'bearer',
    expires_in: 3600,
  },
}))
t.teardown(() => server.close())
const upstream = testUpstream({ 'alice p': { accessToken: 'up-alice' }, 'bob p': { accessToken: 'up-bob' } })
const outgoing = makeOutgoing({ upstream, enableObo: true })
t.teardown(() => outgoing.close())

const configs: readonly StrategyConfig[] = [
  { type: 'token_exchange', tokenExchange: { tokenUrl: server.url } },
  { type: 'token_exchange', tokenExchange: { tokenUrl: server.url, externalTokenHeaderName: 'x-t' } },
  { type: 'token_exchange', tokenExchange: { tokenUrl: server.url, subjectProviderName: 'p' } },
  { type: 'upstream_inject', upstreamInject: { providerName: 'p' } },
  { type: 'obo', obo: { tokenUrl: server.url, clientId: 'c', clientSecret: 's', audience: 'a' } },
]

for (const config of configs) {
  await t.test(`${config.type}: callers do not see each other’s credentials under load`, async (t) => {
    const strategy = outgoing.strategy(config)
    t.equal(strategy.perCaller, true)
    const sent = await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        const subject = index % 2 === 0 ? 'alice' : 'bob'
        const request = testRequest({ headers: { authorization: `Bearer token-of-${subject}` } })
        await strategy.apply(request, testCaller({ subject }))
        return { subject, text: JSON.stringify(request.headers) }
      }),
    )
    for (const { subject, text } of sent) {
      t.notMatch(text, subject === 'alice' ? 'bob' : 'alice')
      t.notMatch(text, `"Bearer token-of-${subject}"`, 'the caller’s token is not forwarded')
    }
  })
}

await t.test('subject: a header cannot change the caller', async (t) => {
  const strategy = outgoing.strategy({ type: 'token_exchange', tokenExchange: { tokenUrl: server.url } })
  const request = testRequest({ headers: { authorization: 'Bearer forged', 'x-user': 'root' } })
  await strategy.apply(request, testCaller({ subject: 'carol' }))
  t.equal(request.headers['authorization'], 'Bearer for-token-of-carol')
})

await t.test(
  'errors: the message contains no text from the token endpoint, and nothing contains the token',
  async (t) => {
    const chatty = await startLoopback(() => ({
      status: 400,
      body: { error: 'invalid_request', error_description: 'token token-of-alice is bad, secret hush' },
    }))
    t.teardown(() => chatty.close())
    const strategy = outgoing.strategy({
      type: 'token_exchange',
      tokenExchange: { tokenUrl: chatty.url, clientId: 'c', clientSecret: 'hush' },
    })
    const error: unknown = await Promise.resolve(strategy.apply(testRequest(), testCaller())).catch(
      (thrown: unknown) => thrown,
    )
    t.match(error, { code: 'BACKEND_AUTH_FAILED' })
    t.notMatch(String(error), /hush|token-of-alice/)
    t.notMatch(inspect(strategy), /hush/)
  },
)
