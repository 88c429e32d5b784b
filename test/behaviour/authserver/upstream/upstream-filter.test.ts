/** Upstream providers that are chosen by the user's groups. */
import t, { type Test } from 'tap'
import { parseAuthServerConfig } from '../../../../runtime/config/authserver/file.ts'
import type { AuthServerConfig, OAuth2UpstreamSettings } from '../../../../runtime/config/index.ts'
import { corp, type Rig, startAuthServer } from '../../../helpers/authserver/authserver.ts'
import { type Hub, startHub } from '../../../helpers/authserver/oauth2-peer.ts'
import { callerOf, TestClient, webRedirect } from '../../../helpers/authserver/test-client.ts'

type Filter = NonNullable<AuthServerConfig['upstreamFilter']>

const filter: Filter = {
  claim: 'groups',
  rules: [
    { groups: ['sales', 'support'], upstreamProviders: ['hub'] },
    { groups: ['engineering'], upstreamProviders: ['desk'] },
  ],
}

interface Three {
  readonly rig: Rig
  readonly hub: Hub
  readonly desk: Hub
  readonly client: TestClient
}

/** corp (the real provider), hub and desk (plain OAuth). `account` holds the claims of the user. */
async function start(
  t: Test,
  account: object,
  upstreamFilter: Filter = filter,
  subjectClaim = 'sub',
): Promise<Three> {
  const [hub, desk] = [await startHub(t), await startHub(t, { name: 'desk' })]
  const rig = await startAuthServer(t, {
    config: { upstreamFilter },
    provider: {
      claims: account as Record<string, unknown>,
      configuration: { claims: { openid: ['sub', 'oid', 'groups', 'teams'] } },
    },
    upstreams: ({ issuer, provider }) => [
      { ...corp(issuer, provider), subjectClaim } as AuthServerConfig['upstreams'][number],
      hub.upstream(issuer),
      desk.upstream(issuer),
    ],
  })
  return { rig, hub, desk, client: await TestClient.register(rig, { redirect_uris: [webRedirect] }) }
}

const logins = ({ hub, desk }: Three): readonly number[] =>
  [hub, desk].map((provider) => provider.count('/authorize'))

/** Signs in and returns the access tokens of hub and desk. */
async function tokensAfterLogin({ rig, client }: Three) {
  const { caller } = await client.with().signIn()
  const tokens = [
    await rig.server.upstreamTokens.get(caller, 'hub'),
    await rig.server.upstreamTokens.get(caller, 'desk'),
  ]
  return tokens.map((token) => token?.accessToken)
}

for (const { title, account, upstreamFilter, tokens } of [
  { title: 'one rule', account: { groups: ['support', 'x'] }, tokens: ['hub-at', undefined] },
  {
    title: 'every rule that matches',
    account: { groups: ['engineering', 'sales'] },
    tokens: ['hub-at', 'desk-at'],
  },
  {
    title: 'a single group that is not in a list',
    account: { groups: 'sales' },
    tokens: ['hub-at', undefined],
  },
  {
    title: 'another claim',
    account: { groups: ['sales'], teams: ['engineering'] },
    upstreamFilter: { ...filter, claim: 'teams' },
    tokens: [undefined, 'desk-at'],
  },
  {
    title: 'no rule, without a default',
    account: { groups: ['Sales', 'sale'] },
    tokens: [undefined, undefined],
  },
  {
    title: 'no rule, with a default',
    account: { groups: ['x'] },
    upstreamFilter: { ...filter, defaultUpstreams: ['desk'] },
    tokens: [undefined, 'desk-at'],
  },
  {
    title: 'no default when a rule matches',
    account: { groups: ['sales'] },
    upstreamFilter: { ...filter, defaultUpstreams: ['desk'] },
    tokens: ['hub-at', undefined],
  },
  { title: 'the default without the claim', account: {}, tokens: [undefined, undefined] },
  {
    title: 'the default when the claim has another type',
    account: { groups: { sales: true } },
    tokens: [undefined, undefined],
  },
] as const)
  t.test(`filter: the user gets ${title}`, async (t) => {
    const self = await start(t, account, upstreamFilter)
    t.same(await tokensAfterLogin(self), tokens)
    t.same(
      logins(self),
      tokens.map((token) => (token === undefined ? 0 : 1)),
    )
  })

t.test('filter: a user who has left a group loses the tokens at the next sign-in', async (t) => {
  const account = { groups: ['sales', 'engineering'] }
  const self = await start(t, account)
  const before = await self.client.with().signIn()
  account.groups = ['engineering']
  t.same(await tokensAfterLogin(self), [undefined, 'desk-at'])
  t.equal(
    await self.rig.server.upstreamTokens.get(before.caller, 'hub'),
    undefined,
    'the earlier access token of the same session',
  )
  account.groups = ['sales']
  t.same(await tokensAfterLogin(self), ['hub-at', undefined], 'and signs in again after a return')
  t.same(logins(self), [2, 1])
})

t.test('filter: the pages offer only the providers of the user', async (t) => {
  const account = { groups: ['sales'] }
  const self = await start(t, account)
  const client = self.client.with()
  const page = await client.authorize()
  t.match(page.text, /value="hub"/)
  t.match(page.text, /value="desk"/, 'the user is unknown')
  t.match(page.text, /After you sign in at corp, you continue only with the services for your groups/)
  await client.exchange(await client.consent(page))
  const accounts = await client.browser.open(new URL(`${self.rig.issuer}/oauth/accounts`))
  t.match(accounts.text, 'hub (')
  t.notMatch(accounts.text, 'desk (')
})

t.test('filter: the page of connected accounts rejects a provider of other groups', async (t) => {
  const self = await start(t, { groups: ['sales'] })
  const client = self.client.with()
  const { caller } = await client.signIn()
  const accounts = await client.browser.open(new URL(`${self.rig.issuer}/oauth/accounts`))
  const answer = await client.browser.send(accounts, { action: 'connect', provider: 'desk' })
  t.equal(answer.status, 400)
  t.same(logins(self), [1, 0])
  t.equal(await self.rig.server.upstreamTokens.get(caller, 'desk'), undefined)
})

t.test('filter: a page for another user does not add a provider', async (t) => {
  const account = { oid: 'alice', groups: ['sales', 'engineering'] }
  const self = await start(t, account, filter, 'oid')
  const client = self.client.with()
  await client.signIn()
  t.same(logins(self), [1, 1])
  Object.assign(account, { oid: 'bob', groups: [] })
  const page = await client.authorize()
  t.equal(page.url.pathname, '/oauth/confirm', 'bob signs in, and the remembered consent is from alice')
  t.notMatch(page.text, /value="(?:hub|desk)"/, 'bob is in no group')
  const shown = await client.browser.send(page, { action: 'approve', provider: 'hub' }, webRedirect)
  t.equal(shown.status, 0)
  t.same(logins(self), [1, 1])
})

for (const { title, config } of [
  {
    title: 'userinfo response',
    config: (url: string): Partial<OAuth2UpstreamSettings> => ({
      userInfo: {
        endpointUrl: `${url}/me`,
        httpMethod: 'GET',
        additionalHeaders: {},
        subjectFields: ['sub'],
        nameFields: ['name'],
        emailFields: ['email'],
      },
    }),
  },
  {
    title: 'token response',
    config: (): Partial<OAuth2UpstreamSettings> => ({ identityFromToken: { subjectPath: 'sub' } }),
  },
])
  t.test(`filter: groups come from the ${title} of a plain OAuth provider`, async (t) => {
    const body = { sub: 'alice', groups: ['sales'] }
    const first = await startHub(t, {
      name: 'first',
      token: () => ({ body: { access_token: 'a', token_type: 'bearer', ...body } }),
      me: () => ({ body }),
    })
    const hub = await startHub(t)
    const desk = await startHub(t, { name: 'desk' })
    const rig = await startAuthServer(t, {
      config: { upstreamFilter: filter },
      upstreams: ({ issuer }) => [
        first.upstream(issuer, config(first.url)),
        hub.upstream(issuer),
        desk.upstream(issuer),
      ],
    })
    const { access } = await (await TestClient.register(rig)).signIn()
    const { upstreamTokens } = rig.server
    t.ok(await upstreamTokens.get(callerOf(access), 'hub'))
    t.equal(await upstreamTokens.get(callerOf(access), 'desk'), undefined)
  })

t.test('filter: unknown names and empty rules are errors of the file', async (t) => {
  const parse = (upstreamFilter: object) =>
    parseAuthServerConfig(
      JSON.stringify({
        issuer: 'https://a.example.com',
        allowedAudiences: ['https://a.example.com'],
        upstreamProviders: [
          { name: 'corp', type: 'oidc', oidcConfig: { issuerUrl: 'https://i.example.com', clientId: 'c' } },
        ],
        upstreamFilter,
      }),
      {},
    ).upstreamFilter
  const rule = { groups: ['a'], upstreamProviders: ['corp'] }
  t.same(parse({ rules: [rule] }), { claim: 'groups', rules: [rule] })
  for (const [wrong, message] of [
    [
      { rules: [rule, { ...rule, upstreamProviders: ['hub'] }] },
      /upstreamFilter\.rules\[1\]\.upstreamProviders\[0\] must be the name of one of upstreamProviders, found "hub"/,
    ],
    [{ rules: [rule], defaultUpstreams: ['hub'] }, /upstreamFilter\.defaultUpstreams\[0\] must be the name/],
    [{ rules: [] }, /rules/],
    [{ rules: [{ ...rule, groups: [] }] }, /groups/],
  ] as const)
    t.throws(() => parse(wrong), { code: 'INVALID_CONFIG', message })
})
