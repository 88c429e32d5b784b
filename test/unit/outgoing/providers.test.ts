/** The upstream provider whose token represents the user: the named one, the only one, or an error with several. */
import t from 'tap'
import { makeOutgoing, type StrategyConfig, type UpstreamTokens } from '../../../runtime/outgoing/index.ts'
import { testCaller, testRequest } from '../../helpers/outgoing/outgoing.ts'
import { proves } from '../../helpers/proves.ts'

proves('3.config.outgoingAuth.upstreamInject.providerName')

const exchange = (subjectProviderName?: string): StrategyConfig => ({
  type: 'token_exchange',
  tokenExchange: { tokenUrl: 'https://sts.example/token', subjectProviderName },
})
const sts = (subjectProviderName?: string): StrategyConfig => ({
  type: 'cloud_sts',
  cloudSts: {
    region: 'us-east-1',
    fallbackRoleArn: 'arn:aws:iam::123456789012:role/reader',
    subjectProviderName,
  },
})
const crossApp = (subjectProviderName?: string): StrategyConfig => ({
  type: 'xaa',
  xaa: {
    idpTokenUrl: 'https://idp.example/token',
    targetTokenUrl: 'https://target.example/token',
    targetAudience: 'https://target.example',
    subjectProviderName,
  },
})
const inject = (providerName: string): StrategyConfig => ({
  type: 'upstream_inject',
  upstreamInject: { providerName },
})

function upstream(...providers: string[]): UpstreamTokens & { readonly asked: string[] } {
  const asked: string[] = []
  return {
    providers,
    asked,
    async get(_caller, provider) {
      asked.push(provider)
      return { accessToken: `at-${provider}`, idToken: `id-${provider}` }
    },
  }
}

t.test(
  'several providers: a strategy without a provider name is an error, and so is an unknown name',
  async (t) => {
    const outgoing = makeOutgoing({ upstream: upstream('corp', 'code') })
    t.teardown(() => outgoing.close())
    for (const make of [exchange, sts, crossApp]) {
      t.match(outgoing.problems(make(), 'auth'), [
        /^auth\.\w+\.subjectProviderName: must name one of the upstream providers: corp, code$/,
      ])
      t.match(outgoing.problems(make('other'), 'auth'), [
        /"other" is not an upstream provider; expected one of/,
      ])
      t.same(outgoing.problems(make('code'), 'auth'), [])
    }
    t.match(outgoing.problems(inject('other'), 'auth'), [/providerName: "other" is not an upstream provider/])
    t.same(outgoing.problems(inject('corp'), 'auth'), [])
    t.same(
      outgoing.problems({ type: 'token_exchange', tokenExchange: { tokenUrl: 'https://a.example/t' } }, 'x')
        .length,
      1,
    )
  },
)

t.test('one provider: it is the default, and its token is exchanged', async (t) => {
  const tokens = upstream('corp')
  const sent: string[] = []
  const outgoing = makeOutgoing({
    upstream: tokens,
    fetch: async (_url, init) => {
      const { body } = init ?? {}
      if (typeof body === 'string' || body instanceof URLSearchParams) sent.push(String(body))
      return Response.json({
        access_token: 'exchanged',
        token_type: 'Bearer',
        issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      })
    },
  })
  t.teardown(() => outgoing.close())
  const request = testRequest()
  await outgoing.strategy(exchange()).apply(request, testCaller())
  t.equal(request.headers['authorization'], 'Bearer exchanged')
  t.same(tokens.asked, ['corp'])
  t.match(sent[0], 'subject_token=at-corp')
})

t.test('no embedded server: the caller’s own token is used, and a provider name is an error', async (t) => {
  const outgoing = makeOutgoing()
  t.teardown(() => outgoing.close())
  t.same(outgoing.problems(exchange()), [])
  t.match(outgoing.problems(exchange('corp')), [/requires an embedded authorization server/])
  t.match(outgoing.problems(inject('corp')), [/requires an embedded authorization server/])
})
