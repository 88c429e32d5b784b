/** Attacks on the choice of upstream providers by groups. */
import t, { type Test } from 'tap'
import type { AuthServerConfig } from '../../../runtime/config/index.ts'
import { type Rig, startAuthServer } from '../../helpers/authserver/authserver.ts'
import { type Hub, startHub } from '../../helpers/authserver/oauth2-peer.ts'
import { TestClient, webRedirect } from '../../helpers/authserver/test-client.ts'

type Filter = NonNullable<AuthServerConfig['upstreamFilter']>

const rules: Filter['rules'] = [
  { groups: ['sales'], upstreamProviders: ['hub'] },
  { groups: ['engineering'], upstreamProviders: ['desk'] },
]

interface Three {
  readonly rig: Rig
  readonly hub: Hub
  readonly desk: Hub
  readonly client: TestClient
  /** Members of the first provider's token response, as JSON text. */
  claims: string
}

/** The provider `first` identifies the user; hub and desk only add tokens. */
async function start(t: Test, config: Partial<AuthServerConfig> = {}, claims = ''): Promise<Three> {
  const token = () => ({
    headers: { 'content-type': 'application/json' },
    body: `{"access_token":"a","token_type":"bearer","sub":"alice"${self.claims && ','}${self.claims}}`,
  })
  const first = await startHub(t, { name: 'first', token })
  const [hub, desk] = [await startHub(t), await startHub(t, { name: 'desk' })]
  const rig = await startAuthServer(t, {
    config: { upstreamFilter: { claim: 'groups', rules }, ...config },
    upstreams: ({ issuer }) => [
      first.upstream(issuer, { identityFromToken: { subjectPath: 'sub' } }),
      hub.upstream(issuer),
      desk.upstream(issuer),
    ],
  })
  const client = await TestClient.register(rig, { redirect_uris: [webRedirect] })
  const self: Three = { rig, hub, desk, client, claims }
  return self
}

const groups = (...names: readonly string[]): string => `"groups":${JSON.stringify(names)}`

const accountsPage = ({ rig }: Three, client: TestClient) =>
  client.browser.open(new URL(`${rig.issuer}/oauth/accounts`))

/** Names of the other providers that the user signed in to. */
async function signedInAt(self: Three, client = self.client.with()): Promise<readonly string[]> {
  const counts = [self.hub.count('/authorize'), self.desk.count('/authorize')]
  const { caller } = await client.signIn()
  const { upstreamTokens } = self.rig.server
  if (!(await upstreamTokens.get(caller, 'first'))) throw new Error('the first provider always applies')
  for (const [index, hub] of [self.hub, self.desk].entries()) {
    const name = ['hub', 'desk'][index] ?? ''
    const token = await upstreamTokens.get(caller, name)
    if ((token === undefined) !== (hub.count('/authorize') === counts[index])) throw new Error('not asked')
  }
  const has = async (name: string) => (await upstreamTokens.get(caller, name)) !== undefined
  return [...((await has('hub')) ? ['hub'] : []), ...((await has('desk')) ? ['desk'] : [])]
}

const many = Array.from({ length: 10_000 }, (_, index) => `group-${index}`)
const allRules: Filter['rules'] = Array.from({ length: 50 }, (_, rule) => ({
  groups: Array.from({ length: 50 }, (_, index) => `${'x'.repeat(200)}-${rule}-${index}`),
  upstreamProviders: ['hub'],
}))

for (const { title, claims, filter = { claim: 'groups', rules }, expected } of [
  { title: 'a missing claim', claims: '', expected: [] },
  { title: 'null', claims: '"groups":null', expected: [] },
  { title: 'a number', claims: '"groups":7', expected: [] },
  {
    title: 'an object with the names as members',
    claims: '"groups":{"sales":"sales","0":"sales"}',
    expected: [],
  },
  { title: 'nested lists', claims: '"groups":[["sales"],{"name":"sales"},null,7]', expected: [] },
  {
    title: 'a valid name next to other values',
    claims: '"groups":[null,["desk"],"sales"]',
    expected: ['hub'],
  },
  { title: 'names in one string', claims: '"groups":"sales engineering"', expected: [] },
  {
    title: 'other spellings',
    claims: groups('Sales', 'sales ', 'ſales', '/sales', 'sale', ''),
    expected: [],
  },
  {
    title: 'ten thousand groups, the last of which matches',
    claims: groups(...many, 'engineering'),
    expected: ['desk'],
  },
  { title: 'a group of a megabyte', claims: groups('s'.repeat(500_000), 'sales'), expected: ['hub'] },
  {
    title: 'a claim with the name of a prototype',
    claims: '"__proto__":["sales"]',
    expected: [],
  },
  {
    title: 'a filter on such a claim',
    claims: '"__proto__":["sales"]',
    filter: { claim: '__proto__', rules },
    expected: ['hub'],
  },
  {
    title: 'a filter on an inherited name',
    claims: '',
    filter: { claim: 'constructor', rules },
    expected: [],
  },
  {
    title: 'ten thousand groups and the largest filter',
    claims: groups(...many, `${'x'.repeat(200)}-49-49`),
    filter: { claim: 'groups', rules: allRules },
    expected: ['hub'],
  },
] satisfies readonly {
  title: string
  claims: string
  filter?: Filter
  expected: readonly string[]
}[])
  t.test(`upstream filter: ${title}`, async (t) => {
    const self = await start(t, { upstreamFilter: filter }, claims)
    t.same(await signedInAt(self), expected)
  })

t.test('upstream filter: forms cannot force a provider', async (t) => {
  const self = await start(t, {}, groups('sales'))
  const client = self.client.with()
  const page = await client.authorize()
  const forced = await client.browser.send(page, { action: 'approve', provider: 'desk' }, webRedirect)
  t.equal(forced.status, 0)
  const { caller } = await client.signIn()
  for (const action of ['connect', 'retry', 'approve'])
    t.equal(
      (await client.browser.send(await accountsPage(self, client), { action, provider: 'desk' })).status,
      400,
    )
  t.equal(self.desk.count('/authorize'), 0)
  t.equal(await self.rig.server.upstreamTokens.get(caller, 'desk'), undefined)
})

t.test('upstream filter: a response for a provider without a request is rejected', async (t) => {
  const self = await start(t, {}, groups('sales'))
  const client = self.client.with()
  const hubUrl = `${self.hub.url}/authorize`
  const page = await client.authorize()
  const at = await client.consent(page, 'approve', [], hubUrl)
  t.ok(at.url.href.startsWith(hubUrl), 'the login waits at hub')
  const state = at.url.searchParams.get('state') ?? ''
  const callback = (value: string) => new URL(`${self.rig.issuer}/oauth/callback?code=c&state=${value}`)
  t.equal((await client.browser.open(callback('forged'))).status, 400)
  await client.browser.open(callback(state), webRedirect)
  t.equal((await client.browser.open(callback(state))).status, 400, 'each response is valid once')
  t.equal(self.desk.count('/token'), 0)
})

t.test(
  'upstream filter: a login with groups from before a change ends with the groups it read',
  async (t) => {
    const self = await start(t, {}, groups('sales'))
    const hubUrl = `${self.hub.url}/authorize`
    const slow = self.client.with()
    const at = await slow.consent(await slow.authorize(), 'approve', [], hubUrl)
    self.claims = groups('engineering')
    t.same(await signedInAt(self), ['desk'], 'the other login overtakes')
    const end = await slow.browser.open(at.url, webRedirect)
    t.equal(end.status, 0, 'the slow login ends')
    const code = { code: end.url.searchParams.get('code') ?? '', verifier: at.verifier }
    t.equal((await slow.exchange(code)).outcome, '200')
    t.same(await signedInAt(self), ['desk'], 'and the next sign-in takes hub away again')
  },
)

t.test('upstream filter: two logins at once store only selected providers', async (t) => {
  const self = await start(t, {}, groups('sales'))
  await Promise.all([self.client.with().signIn(), self.client.with().signIn()])
  self.claims = groups('engineering')
  const both = await Promise.all([self.client.with().signIn(), self.client.with().signIn()])
  for (const { caller } of both) {
    t.ok(await self.rig.server.upstreamTokens.get(caller, 'desk'))
    t.equal(await self.rig.server.upstreamTokens.get(caller, 'hub'), undefined)
  }
})

t.test('upstream filter: a remembered consent selects no provider of other groups', async (t) => {
  const self = await start(t, {}, groups('sales', 'engineering'))
  const client = self.client.with()
  t.same(await signedInAt(self, client), ['hub', 'desk'])
  self.claims = groups('engineering')
  const again = await client.authorize()
  t.match(again.code, /^gh_ac_/, 'no page is shown')
  const { access } = await client.exchange(again)
  t.ok(access)
  const accounts = await accountsPage(self, client)
  t.notMatch(accounts.text, 'hub (')
  t.match(accounts.text, 'desk (')
})

t.test('upstream filter: refreshing a grant reads no groups and adds no provider', async (t) => {
  const self = await start(t, {}, groups('sales'))
  const client = self.client.with()
  const tokens = await client.signIn({ scope: 'openid offline_access' })
  self.claims = groups('engineering')
  t.equal((await client.refresh(tokens)).outcome, '200')
  t.ok(await self.rig.server.upstreamTokens.get(tokens.caller, 'hub'))
  t.equal(await self.rig.server.upstreamTokens.get(tokens.caller, 'desk'), undefined)
})

t.test('upstream filter: a changed filter applies at the next sign-in', async (t) => {
  const self = await start(t, {}, groups('sales'))
  const config = self.rig.config as { -readonly [K in keyof AuthServerConfig]: AuthServerConfig[K] }
  t.same(await signedInAt(self), ['hub'])
  config.upstreamFilter = { claim: 'groups', rules: [{ groups: ['sales'], upstreamProviders: ['desk'] }] }
  t.same(await signedInAt(self), ['desk'])
  delete config.upstreamFilter
  const { caller } = await self.client.with().signIn()
  const { upstreamTokens } = self.rig.server
  t.ok(await upstreamTokens.get(caller, 'hub'))
  t.ok(await upstreamTokens.get(caller, 'desk'))
})

t.test('upstream filter: a required provider that the groups do not select is not asked', async (t) => {
  const self = await start(t, { primaryUpstreamProvider: 'desk' }, groups('sales'))
  t.same(await signedInAt(self), ['hub'])
  const { caller } = await self.client.with().signIn()
  t.equal(await self.rig.server.upstreamTokens.required(caller), undefined)
})

t.test('upstream filter: disconnecting the only selected provider signs the client out', async (t) => {
  const self = await start(t, {}, groups('other'))
  const client = self.client.with()
  const tokens = await client.signIn({ scope: 'openid offline_access' })
  const press = async () =>
    client.browser.send(await accountsPage(self, client), { action: 'disconnect', provider: 'first' })
  await press()
  t.equal((await client.refresh(tokens)).outcome, '400 invalid_grant')
  self.claims = groups('sales')
  const more = await client.signIn({ scope: 'openid offline_access' })
  await press()
  t.equal((await client.refresh(more)).outcome, '200', 'hub is still connected')
})

t.test('upstream filter: the log names the claim when the provider reports no groups', async (t) => {
  const self = await start(t, { upstreamFilter: { claim: 'teams', rules } }, groups('sales'))
  t.same(await signedInAt(self), [])
  t.match(
    self.rig.logged(),
    /"the provider reported no groups; the default upstreams apply".*"claim":"teams"/,
  )
  t.notMatch(self.rig.logged(), /sales/)
})
