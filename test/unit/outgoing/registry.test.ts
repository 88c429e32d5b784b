/** Strategy configuration: every error by field, all at once, without secrets, and no incomplete setting. */
import t from 'tap'
import { makeOutgoing, type StrategyConfig } from '../../../runtime/outgoing/index.ts'
import { testUpstream } from '../../helpers/outgoing/outgoing.ts'
import { proves } from '../../helpers/proves.ts'

proves(
  '3.config.outgoingAuth.strategy.type',
  '3.config.outgoingAuth.headerInjection.headerName',
  '3.config.outgoingAuth.tokenExchange.tokenUrl',
  '3.config.outgoingAuth.upstreamInject.providerName',
  '3.config.outgoingAuth.xaa',
)

const outgoing = makeOutgoing({
  upstream: testUpstream({}),
  secret: (name) => ({ SET: 'value', EMPTY: '' })[name],
})
const bare = makeOutgoing({ enableObo: true })
t.teardown(() => Promise.all([outgoing.close(), bare.close()]))

const role = 'arn:aws:iam::123456789012:role/r'
const fine: readonly StrategyConfig[] = [
  { type: 'unauthenticated' },
  { type: 'bearer_token', bearerToken: { token: 'abc' } },
  { type: 'header_injection', headerInjection: { headerName: 'X-Api-Key', headerValueEnv: 'SET' } },
  { type: 'header_injection', headerInjection: { headerName: 'Authorization', headerValue: 'Basic abc' } },
  { type: 'token_exchange', tokenExchange: { tokenUrl: 'https://sts.example/t', subjectTokenType: '' } },
  { type: 'upstream_inject', upstreamInject: { providerName: 'github' } },
  { type: 'cloud_sts', cloudSts: { region: 'us-east-1', fallbackRoleArn: role } },
  { type: 'obo' },
  {
    type: 'xaa',
    xaa: {
      idpTokenUrl: 'https://i.example/t',
      targetTokenUrl: 'http://t.example/t',
      insecureTargetTokenUrl: true,
      targetAudience: 'a',
    },
  },
]

for (const config of fine) {
  await t.test(`strategy: ${config.type} is created`, async (t) => {
    t.same(outgoing.problems(config), [])
    t.equal(outgoing.strategy(config).type, config.type)
  })
}

const broken: readonly (readonly [StrategyConfig, readonly RegExp[]])[] = [
  [{ type: 'bearer_token' }, [/^outgoingAuth\.bearerToken: is required/]],
  [{ type: 'bearer_token', bearerToken: { token: 'a b' } }, [/bearerToken\.token: must be printable/]],
  [
    { type: 'bearer_token', bearerToken: { tokenEnv: 'UNSET' } },
    [/bearerToken\.tokenEnv: the variable UNSET is not set/],
  ],
  [
    { type: 'header_injection', headerInjection: {} },
    [/headerName: is required/, /headerValue: set headerValue or headerValueEnv/],
  ],
  [
    { type: 'header_injection', headerInjection: { headerName: 'Host', headerValue: 'x' } },
    [/headerName: Host is set by the gateway/],
  ],
  [
    {
      type: 'header_injection',
      headerInjection: { headerName: 'X-A', headerValue: 'x', headerValueEnv: 'SET' },
    },
    [/headerValue: excludes headerValueEnv/],
  ],
  [
    { type: 'header_injection', headerInjection: { headerName: 'X-A', headerValueEnv: 'EMPTY' } },
    [/headerValueEnv: the variable EMPTY/],
  ],
  [
    { type: 'header_injection', headerInjection: { headerName: 'X-A', headerValue: 'a\r\nb' } },
    [/headerValue: must not contain control/],
  ],
  [
    { type: 'token_exchange', tokenExchange: { subjectTokenType: 'saml' } },
    [/tokenUrl: is required/, /subjectTokenType: must be access_token/],
  ],
  [
    { type: 'token_exchange', tokenExchange: { tokenUrl: 'http://sts.example/t', clientSecret: 's' } },
    [/tokenUrl: must be https/, /clientId: must be set/],
  ],
  [
    {
      type: 'token_exchange',
      tokenExchange: { tokenUrl: 'https://s.example/t', externalTokenHeaderName: 'Transfer-Encoding' },
    },
    [/externalTokenHeaderName: Transfer-Encoding/],
  ],
  [{ type: 'upstream_inject', upstreamInject: {} }, [/providerName: is required/]],
  [
    { type: 'cloud_sts', cloudSts: { region: 'evil.example/', sessionDuration: 60 } },
    [
      /region: must be a region/,
      /sessionDuration: .*900 to 43200/,
      /cloudSts: set fallbackRoleArn or roleMappings/,
    ],
  ],
  ...[899, 43_201, 3600.5].map((sessionDuration): (typeof broken)[number] => [
    { type: 'cloud_sts', cloudSts: { region: 'us-east-1', fallbackRoleArn: role, sessionDuration } },
    [/sessionDuration: .*900 to 43200/],
  ]),
  [
    {
      type: 'cloud_sts',
      cloudSts: {
        region: 'us-east-1',
        roleMappings: [
          { roleArn: 'x', claim: 'a', matcher: 'true' },
          { roleArn: role, priority: -1 },
          { roleArn: role, matcher: '1 +' },
        ],
      },
    },
    [
      /\[0\]\.roleArn/,
      /\[0\]: set either claim or matcher/,
      /\[1\]: set either/,
      /\[1\]\.priority/,
      /not a CEL expression/,
    ],
  ],
  [
    {
      type: 'xaa',
      xaa: { targetTokenUrl: 'http://t.example/t', targetClientSecret: 's', subjectTokenType: undefined },
    },
    [/idpTokenUrl: is required/, /targetTokenUrl: must be https/, /targetAudience/, /targetClientId/],
  ],
]

for (const [config, expected] of broken) {
  await t.test(`strategy: ${config.type} rejected for ${expected.map(String).join(', ')}`, async (t) => {
    const problems = outgoing.problems(config)
    t.equal(problems.length, expected.length, problems.join('; '))
    for (const [index, pattern] of expected.entries()) t.match(problems[index], pattern)
    t.throws(() => outgoing.strategy(config), { code: 'INVALID_CONFIG', message: problems.join('\n') })
  })
}

await t.test('strategy: an unknown type lists the known ones', async (t) => {
  for (const type of ['basic', 'constructor', '__proto__']) {
    const config = JSON.parse(JSON.stringify({ type: 'x' }).replace('"x"', `"${type}"`))
    t.match(outgoing.problems(config, 'outgoingAuth.backends.b'), [
      /^outgoingAuth\.backends\.b\.type: must be one of unauthenticated/,
    ])
  }
})

await t.test('strategy: upstream tokens require a token store', async (t) => {
  for (const config of [
    { type: 'upstream_inject', upstreamInject: { providerName: 'p' } },
    { type: 'token_exchange', tokenExchange: { tokenUrl: 'https://s.example/t', subjectProviderName: 'p' } },
    { type: 'cloud_sts', cloudSts: { region: 'us-east-1', fallbackRoleArn: role, subjectProviderName: 'p' } },
  ] as const)
    t.match(bare.problems(config), [/requires an embedded authorization server/], config.type)
})

await t.test('strategy: obo is checked like the others when it is enabled', async (t) => {
  t.match(bare.problems({ type: 'obo', obo: { cacheSkewSeconds: -1 } }), [
    /tokenUrl: is required/,
    /clientId: must be set/,
    /clientSecret: set clientSecret or clientSecretEnv/,
    /audience: set audience or scopes/,
    /cacheSkewSeconds/,
  ])
})
