/**
 * Upstream connections that cannot be renewed: a later login keeps an earlier refresh token, a grant without usable
 * tokens ends so that the client signs in again, and the errors name the page where the user can renew them.
 */
import t, { type Test } from 'tap'
import { upstreamRowKey } from '../../../../runtime/authserver/model/identifiers.ts'
import { makeState } from '../../../../runtime/authserver/storage/state.ts'
import type { Caller } from '../../../../runtime/net/index.ts'
import { makeMemoryStore } from '../../../../runtime/store/index.ts'
import { startVmcp } from '../../../../runtime/vmcp/index.ts'
import { corp, type Rig, startAuthServer } from '../../../helpers/authserver/authserver.ts'
import { type Hub, startHub } from '../../../helpers/authserver/oauth2-peer.ts'
import { startWithClient, TestClient } from '../../../helpers/authserver/test-client.ts'
import type { PeerResponse } from '../../../helpers/loopback.ts'
import { startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { stateless } from '../../../helpers/mcp/wire.ts'
import { proves } from '../../../helpers/proves.ts'
import { until } from '../../../helpers/redis.ts'
import { vmcpConfig } from '../../../helpers/vmcp/vmcp.ts'

proves('2.auth.upstreamInject', '2.embeddedAuthServer.upstreamProviders.count')

const minute = 60_000

interface Self {
  readonly rig: Rig
  readonly hub: Hub
  /** Members of the hub token endpoint's next responses to a code. */
  atLogin: Record<string, unknown>
  /** Hub's response to a refresh token. */
  renew: (refreshToken: string, serial: number) => PeerResponse
}

/** A plain OAuth provider that names the account, alone or as the second provider. */
async function setup(t: Test, place: 'alone' | 'second', primary?: string): Promise<Self> {
  let serial = 0
  const hub = await startHub(t, {
    token({ form }) {
      const refreshToken = form.get('refresh_token')
      if (refreshToken !== null) return self.renew(refreshToken, ++serial)
      const tokens = { access_token: `at-${++serial}`, token_type: 'bearer', expires_in: 3600, account: 'a1' }
      return { body: { ...tokens, ...self.atLogin } }
    },
  })
  const rig = await startAuthServer(t, {
    config: primary === undefined ? {} : { primaryUpstreamProvider: primary },
    upstreams: ({ issuer, provider }) => [
      ...(place === 'second' ? [corp(issuer, provider)] : []),
      hub.upstream(issuer, { identityFromToken: { subjectPath: 'account' } }),
    ],
  })
  const self: Self = {
    rig,
    hub,
    atLogin: {},
    renew: (_old, n) => ({ body: { access_token: `at-${n}`, token_type: 'bearer', expires_in: 3600 } }),
  }
  return self
}

async function signIn({ rig }: Self, known?: TestClient) {
  const client = known ?? (await TestClient.register(rig, { client_name: 'Notes' }))
  const tokens = await client.signIn()
  return { caller: tokens.caller, client, browser: client.browser, tokens }
}

const tokenOf = async ({ rig }: Self, caller: Caller): Promise<string | undefined> =>
  (await rig.server.upstreamTokens.get(caller, 'hub'))?.accessToken

const sentRefreshTokens = ({ hub }: Self): readonly string[] =>
  hub.seen.flatMap(({ form }) => form.get('refresh_token') ?? [])

t.test('a second login without a refresh token keeps the first one', async (t) => {
  const self = await setup(t, 'alone')
  self.atLogin = { refresh_token: 'of-the-first-consent' }
  const first = await signIn(self)
  self.atLogin = {}
  const again = await signIn(self, first.client)
  self.rig.pass(61 * minute)
  t.match(await tokenOf(self, again.caller), /^at-/)
  t.same(sentRefreshTokens(self), ['of-the-first-consent'])
})

t.test('another client of the same user gets the refresh token, another account does not', async (t) => {
  const self = await setup(t, 'second')
  self.atLogin = { refresh_token: 'of-the-first-consent' }
  await signIn(self)
  self.atLogin = {}
  const other = await signIn(self)
  self.atLogin = { account: 'a2' }
  const untrusted = await signIn(self)
  self.rig.pass(61 * minute)
  t.match(await tokenOf(self, other.caller), /^at-/)
  await t.rejects(tokenOf(self, untrusted.caller), { code: 'UPSTREAM_TOKEN_MISSING' })
  t.same(sentRefreshTokens(self), ['of-the-first-consent'])
})

t.test('rows that share a refresh token survive its rotation, one refresh at a time', async (t) => {
  const self = await setup(t, 'alone')
  let valid = 'rt-0'
  self.renew = (old, n) => {
    // A second use of a refresh token would end the connection.
    if (old !== valid) return { status: 400, body: { error: 'invalid_grant' } }
    valid = `rt-${n}`
    return { body: { access_token: `at-${n}`, refresh_token: valid, token_type: 'bearer', expires_in: 3600 } }
  }
  self.atLogin = { refresh_token: valid }
  const first = await signIn(self)
  self.atLogin = {}
  const second = await signIn(self)
  for (let round = 0; round < 2; round++) {
    self.rig.pass(61 * minute)
    const got = await Promise.all([tokenOf(self, first.caller), tokenOf(self, second.caller)])
    t.ok(
      got.every((token) => token?.startsWith('at-')),
      `round ${round}`,
    )
  }
  t.equal(new Set(sentRefreshTokens(self)).size, 4, 'each was used once')
})

t.test('a rejected refresh token is replaced by a newer one of the same account', async (t) => {
  const self = await setup(t, 'alone')
  self.atLogin = { refresh_token: 'old' }
  const first = await signIn(self)
  self.rig.pass(minute)
  self.atLogin = { refresh_token: 'new' }
  await signIn(self)
  self.renew = (token) =>
    token === 'old'
      ? { status: 400, body: { error: 'invalid_grant' } }
      : { body: { access_token: 'at-new', token_type: 'bearer', expires_in: 3600 } }
  self.rig.pass(61 * minute)
  t.equal(await tokenOf(self, first.caller), 'at-new')
  t.same(sentRefreshTokens(self), ['old', 'new'])
})

t.test(
  'when the only provider cannot be renewed, the grant ends and the client signs in again',
  async (t) => {
    const self = await setup(t, 'alone')
    const { rig } = self
    const { caller, client, tokens, browser } = await signIn(self)
    rig.pass(61 * minute)
    await t.rejects(tokenOf(self, caller), {
      code: 'UPSTREAM_TOKEN_MISSING',
      status: 401,
      message: 'the sign-in session with hub has ended: ask the user to sign in again from this client',
    })
    t.equal(await rig.server.isLive(caller), false)
    t.equal((await client.refresh(tokens)).outcome, '400 invalid_grant')
    t.match(
      rig.events.filter(({ type }) => type === 'upstream_refused' || type === 'grant_ended'),
      [
        { type: 'upstream_refused', upstream: 'hub', reason: /expired and there is no refresh token/ },
        {
          type: 'grant_ended',
          upstream: 'hub',
          clientId: client.id,
          reason: 'the sign-in session with the provider has ended',
        },
      ],
    )
    const page = await browser.open(`${rig.issuer}/oauth/accounts`)
    t.match(page.text, /<bdi>Notes<\/bdi><\/legend><p>Signed out: the sign-in session with hub has ended/)
    t.match(page.text, /Sign in again from this client/)

    const again = await signIn(self, client)
    t.match(await tokenOf(self, again.caller), /^at-/)
    t.notMatch((await browser.open(`${rig.issuer}/oauth/accounts`)).text, /Signed out:/)
  },
)

t.test(
  'when one of several providers ends, the grant continues and the user learns where to renew it',
  async (t) => {
    const self = await setup(t, 'second')
    const { rig } = self
    const { caller, client, tokens } = await signIn(self)
    rig.pass(61 * minute)
    const advice = `the sign-in session with hub has ended: ask the user to open ${rig.issuer}/oauth/accounts and renew hub there, then try again`
    await t.rejects(tokenOf(self, caller), { code: 'UPSTREAM_TOKEN_MISSING', message: advice })
    await t.rejects(tokenOf(self, caller), { message: advice }, 'and again the next time')
    t.equal((await client.refresh(tokens)).outcome, '200')
    t.notOk(rig.events.some(({ type }) => type === 'grant_ended'))
  },
)

t.test('when a provider that every request needs ends, the grant ends', async (t) => {
  const self = await setup(t, 'second', 'hub')
  const { rig } = self
  const { caller, client, tokens } = await signIn(self)
  rig.pass(61 * minute)
  await t.rejects(tokenOf(self, caller), { code: 'UPSTREAM_TOKEN_MISSING' }, 'detected by a call')
  rig.pass(6_000)
  const required = () => rig.server.upstreamTokens.required(caller, 'hub')
  await t.rejects(required(), { code: 'UPSTREAM_TOKEN_MISSING' })
  rig.pass(6_000)
  await t.rejects(required(), { message: /sign in again from this client/ })
  t.equal((await client.refresh(tokens)).outcome, '400 invalid_grant')
})

t.test('tokens that the store has lost end the grant too, but not during a login', async (t) => {
  const store = makeMemoryStore()
  const { rig, client } = await startWithClient(t, { store })
  const tokens = await client.signIn()
  const { caller } = tokens
  const state = makeState(store, () => rig.config.secrets().hmacSecrets)
  await state.rows.delete(upstreamRowKey(String(tokens.claims['tsid']), 'corp'))
  await t.rejects(rig.server.upstreamTokens.get(caller), { code: 'UPSTREAM_TOKEN_MISSING' })
  t.equal(await rig.server.isLive(caller), true, 'the tokens may still arrive')
  rig.pass(5_000)
  await t.rejects(rig.server.upstreamTokens.get(caller), { code: 'UPSTREAM_TOKEN_MISSING' })
  t.equal((await client.refresh(tokens)).outcome, '400 invalid_grant')
})

t.test('disconnecting the only provider signs the client out', async (t) => {
  const self = await setup(t, 'alone')
  const { rig } = self
  const { client, tokens, browser } = await signIn(self)
  const page = await browser.open(`${rig.issuer}/oauth/accounts`)
  await browser.send(page, { provider: 'hub', action: 'disconnect' })
  t.equal((await client.refresh(tokens)).outcome, '400 invalid_grant')
})

t.test('a provider that policies read cannot be skipped', async (t) => {
  const { rig } = await setup(t, 'second', 'hub')
  const client = await TestClient.register(rig)
  const page = await client.authorize()
  t.match(page.text, /<input type="checkbox" checked disabled> hub/)
  t.notMatch(page.text, /you leave out/)
  t.ok((await client.consent(page, 'approve', ['hub'])).code)
  t.ok(client.browser.visited.some((url) => url.includes('/authorize?response_type=code&client_id=our-id')))
})

t.test(
  'with partialFailureMode fail, the backend of a skipped provider is absent until the provider is connected',
  async (t) => {
    const self = await setup(t, 'second')
    const { rig } = self
    const [plain, behind] = await Promise.all([startRawBackend(), startRawBackend()])
    const vmcp = await startVmcp(
      vmcpConfig(
        { plain: plain.url, behind: behind.url },
        {
          incomingAuth: {
            type: 'oidc',
            oidc: {
              issuer: rig.issuer,
              audience: rig.resource,
              clientId: 'gateway',
              resource: rig.resource,
            },
          },
          outgoingAuth: {
            source: 'inline',
            backends: { behind: { type: 'upstream_inject', upstreamInject: { providerName: 'hub' } } },
          },
          operational: { failureHandling: { partialFailureMode: 'fail' } },
        },
      ),
      { port: 0, graceMs: 200, authServer: { ...rig.server, config: rig.config } },
    )
    t.teardown(() => Promise.all([vmcp.close(), plain.close(), behind.close()]))

    const client = await TestClient.register(rig)
    const page = await client.authorize()
    t.match(page.text, /Tools that need a service you leave out are not offered to this client/)
    const tokens = await client.exchange(await client.consent(page, 'approve', ['hub']))
    const headers = { authorization: `Bearer ${tokens.access}` }
    const tools = async (): Promise<readonly string[]> => {
      const { text } = await stateless(vmcp.url, 'tools/list', {}, { headers })
      return [...text.matchAll(/"name":"(\w+)"/g)].map(([, name = '']) => name)
    }
    t.ok((await tools()).includes('plain_echo'), 'tools that need no connection are listed')
    t.notOk((await tools()).some((name) => name.startsWith('behind_')))

    const accounts = await client.browser.open(`${rig.issuer}/oauth/accounts`)
    await client.browser.send(accounts, { provider: 'hub', action: 'connect' })
    await until(async () => (await tools()).includes('behind_echo'))

    rig.pass(61 * minute)
    const { text } = await stateless(
      vmcp.url,
      'tools/call',
      { name: 'behind_echo', arguments: {} },
      { headers },
    )
    t.match(text, new RegExp(`open ${rig.issuer}/oauth/accounts and renew hub there`))
  },
)
