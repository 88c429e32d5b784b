/** Several upstreams: the chain, skipped providers, a failed upstream step, connecting later. */
import t, { type Test } from 'tap'
import type { Caller } from '../../../../runtime/net/index.ts'
import { corp, type Rig, startAuthServer } from '../../../helpers/authserver/authserver.ts'
import { type Hub, startHub } from '../../../helpers/authserver/oauth2-peer.ts'
import { callerOf, TestClient, webRedirect } from '../../../helpers/authserver/test-client.ts'
import { proves } from '../../../helpers/proves.ts'

proves('2.embeddedAuthServer.upstreamProviders', '2.embeddedAuthServer.upstreamProviders.count')
proves('2.upstreamProviders.name', '2.upstreamProviders.type', '2.embeddedAuthServer.primaryUpstreamProvider')
proves('2.embeddedAuthServer.primaryUpstreamProvider.match')

interface Three {
  readonly rig: Rig
  readonly hub: Hub
  readonly desk: Hub
  readonly client: TestClient
  /** Parameters that hub's authorization endpoint returns instead of a code. */
  failing: string | undefined
}

/** corp (the real provider), hub and desk (plain OAuth). */
async function three(t: Test, config: object = {}): Promise<Three> {
  const tokens = { token_type: 'Bearer', expires_in: 3600 }
  const hub = await startHub(t, {
    token: () =>
      self.failing === undefined
        ? { body: { ...tokens, access_token: 'hub-at', refresh_token: 'hub-rt' } }
        : { status: 400, body: { error: 'invalid_grant' } },
    back: () => (self.failing === undefined ? { code: 'c' } : { error: self.failing }),
  })
  const desk = await startHub(t, { name: 'desk' })
  const rig = await startAuthServer(t, {
    config,
    upstreams: ({ issuer, provider }) => [
      corp(issuer, provider),
      hub.upstream(issuer),
      desk.upstream(issuer),
    ],
  })
  const client = await TestClient.register(rig)
  const self: Three = { rig, hub, desk, client, failing: undefined }
  return self
}

async function tokensAt({ rig }: Three, caller: Caller): Promise<readonly (string | undefined)[]> {
  const { upstreamTokens: source } = rig.server
  const all = await Promise.all(source.providers.map((provider) => source.get(caller, provider)))
  return all.map((token) => token?.accessToken)
}

const logins = ({ hub, desk }: Three): readonly number[] =>
  [hub, desk].map((provider) => provider.count('/authorize'))

t.test('several: one click leads through all providers, and the first one identifies the user', async (t) => {
  const self = await three(t)
  const { caller } = await self.client.signIn()
  t.match(caller.subject, /^[0-9a-f-]{36}$/, 'the OIDC identity, not a synthesized one')
  const [corpToken, ...rest] = await tokensAt(self, caller)
  t.ok(corpToken)
  t.same(rest, ['hub-at', 'desk-at'])
  t.equal(
    (await self.rig.server.upstreamTokens.get(caller))?.accessToken,
    corpToken,
    'the first is the primary',
  )
  await t.rejects(self.rig.server.upstreamTokens.get(caller, 'nobody'), { code: 'NOT_FOUND' })
})

t.test('several: primaryUpstreamProvider selects another provider for the policy', async (t) => {
  const self = await three(t, { primaryUpstreamProvider: 'desk' })
  const { caller } = await self.client.signIn()
  t.equal(self.rig.server.upstreamTokens.primary, 'desk')
  t.equal((await self.rig.server.upstreamTokens.get(caller))?.accessToken, 'desk-at')
  await t.rejects(three(t, { primaryUpstreamProvider: 'nobody' }), {
    message: /primaryUpstreamProvider "nobody"/,
  })
})

t.test('several: providers unticked on the page are skipped, except the first', async (t) => {
  const self = await three(t)
  const page = await self.client.authorize()
  t.match(page.text, /<input type="checkbox" checked disabled> corp/)
  t.match(page.text, /name="provider" value="hub" checked/)
  const back = await self.client.consent(page, 'approve', ['hub'])
  t.same(logins(self), [0, 1])
  const { access } = await self.client.exchange(back)
  t.same((await tokensAt(self, callerOf(access))).slice(1), [undefined, 'desk-at'])
})

t.test('several: when a later step fails, the user can retry, skip it or cancel', async (t) => {
  const self = await three(t)
  self.failing = 'access_denied'
  const one = self.client.with()
  const failed = await one.login()
  t.equal(failed.url.pathname, '/oauth/confirm')
  t.match(failed.text, 'hub could not be connected')
  t.notMatch(failed.text, 'access_denied')
  const again = await one.consent(failed, 'retry')
  t.match(again.text, 'hub could not be connected', 'still failing')
  const { access } = await one.exchange(await one.consent(again, 'skip'))
  t.same((await tokensAt(self, callerOf(access))).slice(1), [undefined, 'desk-at'])

  const two = self.client.with()
  const page = await two.login()
  self.failing = undefined
  t.match((await two.consent(page, 'retry')).code, /^gh_ac_/)

  self.failing = 'server_error'
  const last = await TestClient.register(self.rig)
  t.equal((await last.consent(await last.login(), 'cancel')).error, 'access_denied')
})

t.test(
  'several: a returning user of the same client only visits providers that are not connected',
  async (t) => {
    const self = await three(t)
    const first = await self.client.with().signIn()
    t.same(logins(self), [1, 1])
    const second = await self.client.with().signIn()
    t.same(logins(self), [1, 1], 'hub and desk are still connected')
    t.equal(second.claims['tsid'], first.claims['tsid'], 'the same session')
    const other = await (await TestClient.register(self.rig)).signIn()
    t.same(logins(self), [2, 2], 'another client starts from nothing')
    t.not(other.claims['tsid'], first.claims['tsid'])
  },
)

t.test('several: an abandoned chain stores no tokens', async (t) => {
  const self = await three(t)
  self.failing = 'access_denied'
  await self.client.with().login()
  self.failing = undefined
  await self.client.signIn()
  t.same(logins(self), [2, 1], 'hub got another request')
})

t.test(
  'several: with prompt=none, an upstream step that needs the user ends with interaction_required',
  async (t) => {
    const self = await three(t)
    const client = await TestClient.register(self.rig, { redirect_uris: [webRedirect] })
    const { caller } = await client.signIn()
    t.match((await client.authorize({ prompt: 'none' })).code, /^gh_ac_/, 'everything is connected')
    self.failing = 'access_denied'
    self.rig.pass(3_600_000)
    await t.rejects(self.rig.server.upstreamTokens.get(caller, 'hub'), { code: 'UPSTREAM_TOKEN_MISSING' })
    const missing = await client.authorize({ prompt: 'none' })
    t.equal(missing.error, 'interaction_required', 'hub would need the user')
  },
)
