/** Upstream providers that are chosen by the user's groups. */
import t, { type Test } from 'tap'
import { parseAuthServerConfig } from '../../../../runtime/config/authserver/file.ts'
import type { AuthServerConfig, OAuth2UpstreamSettings } from '../../../../runtime/config/index.ts'
import { corp, type Rig, startAuthServer } from '../../../helpers/authserver/authserver.ts'
import { type Hub, startHub } from '../../../helpers/authserver/oauth2-peer.ts'
import { startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { stateless } from '../../../helpers/mcp/wire.ts'
import { vmcpConfig } from '../../../helpers/vmcp/vmcp.ts'
import { startVmcp } from '../../../../runtime/vmcp/index.ts'
import { checkSettings } from '../../../../runtime/authserver/server/auth-server.ts'
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

t.test('filter: a connection that began before a group change stores no tokens', async (t) => {
  const account = { groups: ['sales'] }
  const self = await start(t, account)
  const { rig, hub } = self
  const client = self.client.with()
  const { caller } = await client.signIn()
  const accounts = await client.browser.open(new URL(`${rig.issuer}/oauth/accounts`))
  const atHub = `${hub.url}/authorize`
  const begun = await client.browser.send(accounts, { provider: 'hub', action: 'connect' }, atHub)
  t.ok(begun.url.href.startsWith(atHub))
  account.groups = ['engineering']
  await self.client.with().signIn()
  const end = await client.browser.open(begun.url)
  t.match(end.url.href, /\/oauth\/accounts\?problem=hub$/)
  t.equal(await rig.server.upstreamTokens.get(caller, 'hub'), undefined)
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

t.test('filter: a virtual server hides the tools that need a provider of other groups', async (t) => {
  const account = { groups: ['sales'] }
  const { rig, client } = await start(t, account)
  const [crm, code] = await Promise.all([startRawBackend(), startRawBackend()])
  const { issuer, resource } = rig
  const inject = (providerName: string) =>
    ({ type: 'upstream_inject', upstreamInject: { providerName } }) as const
  const vmcp = await startVmcp(
    vmcpConfig(
      { crm: crm.url, code: code.url },
      {
        incomingAuth: {
          type: 'oidc',
          oidc: { issuer, audience: resource, clientId: 'gateway', resource },
        },
        outgoingAuth: { source: 'inline', backends: { crm: inject('hub'), code: inject('desk') } },
        operational: { failureHandling: { partialFailureMode: 'fail' } },
      },
    ),
    { port: 0, graceMs: 200, authServer: { ...rig.server, config: rig.config } },
  )
  t.teardown(() => Promise.all([vmcp.close(), crm.close(), code.close()]))
  const tools = async (token: string): Promise<string> => {
    const headers = { authorization: `Bearer ${token}` }
    const { text } = await stateless(vmcp.url, 'tools/list', {}, { headers })
    return ['crm_echo', 'code_echo'].filter((name) => text.includes(`"${name}"`)).join()
  }
  const seller = await client.with().signIn()
  t.equal(await tools(seller.access), 'crm_echo')
  account.groups = ['engineering']
  const engineer = await client.with().signIn()
  t.equal(await tools(engineer.access), 'code_echo')
})

t.test('filter: unknown names and empty rules are configuration errors', async (t) => {
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

t.test('filter: groups require an identity from the first provider', async (t) => {
  const plain = {
    authorizationEndpoint: 'https://idp.example.com/authorize',
    tokenEndpoint: 'https://idp.example.com/token',
    clientId: 'c',
  }
  const parse = (oauth2Config: object) =>
    checkSettings(
      parseAuthServerConfig(
        JSON.stringify({
          issuer: 'https://a.example.com',
          allowedAudiences: ['https://a.example.com'],
          upstreamProviders: [{ name: 'hub', type: 'oauth2', oauth2Config: { ...plain, ...oauth2Config } }],
          upstreamFilter: { rules: [{ groups: ['a'], upstreamProviders: ['hub'] }] },
        }),
        {},
      ),
    )
  await t.rejects(async () => parse({}), {
    code: 'INVALID_CONFIG',
    message:
      /upstreamFilter\.claim cannot be read, because upstream hub has neither userInfo nor identityFromToken/,
  })
  await parse({ identityFromToken: { subjectPath: 'sub' } })
  await parse({ userInfo: { endpointUrl: 'https://idp.example.com/me' } })
})
