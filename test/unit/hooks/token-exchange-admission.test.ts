/** Admission for policies of token exchange: one message for each invalid field, with the runtime's rules. */
import t from 'tap'
import { parseAuthServerConfig } from '../../../runtime/config/authserver/file.ts'
import { type Fields, messagesFor, url } from '../../helpers/hooks/trust-messages.ts'

const scopes = ['tools:read']
const exchangeAt = 'inboundGrants.tokenExchange.issuerPolicies[0]'

function exchangeSettings(policy: Fields, more: Fields = {}): Fields {
  const clients = [{ clientId: 'agent', jwksUri: 'https://ci.example.com/keys', scopes }]
  const given = {
    expectedAudience: 'api://agents',
    allowedActors: ['chat'],
    allowedDelegateClients: ['agent'],
  }
  return {
    clients,
    upstreamProviders: [],
    trustedIssuers: [{ name: 'idp', issuerUrl: 'https://idp.example.com' }],
    inboundGrants: { tokenExchange: { issuerPolicies: [{ issuerRef: 'idp', ...given, ...policy }] } },
    ...more,
  }
}

const exchangeRules: readonly (readonly [title: string, policy: Fields, path: string, message: string])[] = [
  ['an unknown issuer', { issuerRef: 'other' }, `${exchangeAt}.issuerRef`, 'one of trustedIssuers'],
  [
    'an undeclared client',
    { allowedDelegateClients: ['ghost'] },
    `${exchangeAt}.allowedDelegateClients[0]`,
    'one of clients',
  ],
  ['an invalid matcher', { actorMatcher: 'claims.' }, `${exchangeAt}.actorMatcher`, 'not a CEL expression'],
  [
    'a slow matcher',
    { actorMatcher: 'claims.a.all(x, claims.b.all(y, x == y))' },
    `${exchangeAt}.actorMatcher`,
    'too expensive',
  ],
  [
    'all clients next to a client',
    { allowedDelegateClients: ['*', 'agent'] },
    `${exchangeAt}.allowedDelegateClients`,
    '* must be the only entry',
  ],
  [
    'may_act for all clients',
    { allowedDelegateClients: ['*'], allowMayAct: true },
    `${exchangeAt}.allowedDelegateClients`,
    'must list the clients when allowMayAct is true',
  ],
  ['no rule for actors', { allowedActors: undefined }, `${exchangeAt}.allowedActors`, 'no token is accepted'],
  ['no audience', { expectedAudience: undefined }, `${exchangeAt}.expectedAudience`, 'is required'],
  [
    'no clients',
    { allowedDelegateClients: undefined },
    `${exchangeAt}.allowedDelegateClients`,
    'is required',
  ],
]

for (const [title, policy, path, message] of exchangeRules) {
  t.test(`admission and the runtime reject a policy for token exchange with ${title}`, async (t) => {
    const { door, shared, file } = messagesFor(exchangeSettings(policy))
    t.ok(door.includes(`${path}: `) && door.includes(message), door)
    t.equal(shared, door)
    t.ok(file.includes(path) && file.includes(message), file)
  })
}

t.test('valid policies for token exchange are accepted', async (t) => {
  const policies: readonly Fields[] = [
    {},
    { allowedDelegateClients: ['*'] },
    { allowedActors: undefined, actorMatcher: "claims.azp.startsWith('agent-')" },
    { allowedActors: undefined, allowMayAct: true },
    { actorClaim: 'cid' },
  ]
  for (const policy of policies)
    t.same(messagesFor(exchangeSettings(policy)), { door: '', shared: '', file: '' }, JSON.stringify(policy))
  const { upstreamProviders: _, clients, ...all } = exchangeSettings({ allowedDelegateClients: ['*'] })
  t.ok(clients)
  t.equal(
    messagesFor(all).door,
    `${exchangeAt}.allowedDelegateClients[0]: must be the clientId of one of clients`,
  )
})

t.test('the runtime fills in the defaults of a policy for token exchange', async (t) => {
  const { upstreamProviders: _, ...values } = exchangeSettings({})
  const file = { issuer: 'https://login.example.com', allowedAudiences: [url], ...values }
  const { exchangePolicies } = parseAuthServerConfig(JSON.stringify(file), {})
  t.match(exchangePolicies, [
    { issuer: { issuerUrl: 'https://idp.example.com' }, actorClaim: 'azp', allowMayAct: false },
  ])
})
