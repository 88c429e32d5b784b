/**
 * Upstream connections that cannot be renewed: a login without a refresh token goes on with an earlier one, a grant that
 * opens nothing ends so that the client signs in again, and everybody is told what to do and where.
 */
import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import { makeState } from '../../../../runtime/authserver/storage/state.ts'
import { type Caller, makeCaller } from '../../../../runtime/net/index.ts'
import { makeMemoryStore } from '../../../../runtime/store/index.ts'
import { startVmcp } from '../../../../runtime/vmcp/index.ts'
import {
  authorizeUrl,
  corp,
  login,
  pkce,
  redeem,
  redirectUri,
  refresh,
  refusal,
  registerClient,
  type Rig,
  startAuthServer,
  tokensOf,
} from '../../../helpers/authserver/authserver.ts'
import { Browser } from '../../../helpers/authserver/cookie-browser.ts'
import { type PeerResponse, type Loopback, startLoopback } from '../../../helpers/loopback.ts'
import { stateless } from '../../../helpers/mcp/wire.ts'
import { proves } from '../../../helpers/proves.ts'
import { startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { until } from '../../../helpers/redis.ts'
import { vmcpConfig } from '../../../helpers/vmcp/vmcp.ts'
import { upstreamRowKey } from '../../../../runtime/authserver/model/identifiers.ts'

proves('2.auth.upstreamInject', '2.embeddedAuthServer.upstreamProviders.count')

const minute = 60_000

interface Hub {
  readonly rig: Rig
  readonly hub: Loopback
  /** Members of the next responses of hub's token endpoint to a code. */
  atLogin: Record<string, unknown>
  /** Hub's response to a refresh token. */
  renew: (refreshToken: string, serial: number) => PeerResponse
}

/** A plain OAuth provider that names the account, alone or as the second provider. */
async function setup(t: Test, place: 'alone' | 'second', primary?: string): Promise<Hub> {
  let serial = 0
  const hub = await startLoopback(({ path, query, form }): PeerResponse => {
    if (path === '/token') {
      const refreshToken = form.get('refresh_token')
      if (refreshToken !== null) return self.renew(refreshToken, ++serial)
      const tokens = { access_token: `at-${++serial}`, token_type: 'bearer', expires_in: 3600, account: 'a1' }
      return { body: { ...tokens, ...self.atLogin } }
    }
    const back = new URLSearchParams({ code: 'c', state: query.get('state') ?? '' })
    return { status: 302, headers: { location: `${query.get('redirect_uri')}?${back.toString()}` } }
  })
  t.teardown(() => hub.close())
  const rig = await startAuthServer(t, {
    config: primary === undefined ? {} : { primaryUpstreamProvider: primary },
    upstreams: ({ issuer, provider }) => [
      ...(place === 'second' ? [corp(issuer, provider)] : []),
      {
        name: 'hub',
        type: 'oauth2',
        redirectUri: `${issuer}/oauth/callback`,
        scopes: [],
        additionalAuthorizationParams: {},
        authorizationEndpoint: `${hub.url}/authorize`,
        tokenEndpoint: `${hub.url}/token`,
        clientId: 'our-id',
        identityFromToken: { subjectPath: 'account' },
      },
    ],
  })
  const self: Hub = {
    rig,
    hub,
    atLogin: {},
    renew: (_old, n) => ({ body: { access_token: `at-${n}`, token_type: 'bearer', expires_in: 3600 } }),
  }
  return self
}

async function signIn({ rig }: Hub, browser = new Browser(), known?: string) {
  const clientId = known ?? (await registerClient(rig, { client_name: 'Notes' }))
  const done = await login(rig, { client_id: clientId }, browser)
  const tokens = await tokensOf(await redeem(rig, done))
  const claims = decodeJwt(tokens.access_token)
  const caller = makeCaller({ issuer: rig.issuer, subject: claims.sub ?? '', claims })
  return { caller, clientId, browser, tokens }
}

const tokenOf = async ({ rig }: Hub, caller: Caller): Promise<string | undefined> =>
  (await rig.server.upstreamTokens.get(caller, 'hub'))?.accessToken

const sentRefreshTokens = ({ hub }: Hub): readonly string[] =>
  hub.seen.flatMap(({ form }) => form.get('refresh_token') ?? [])

t.test('a second login that brings no refresh token keeps the first one', async (t) => {
  const self = await setup(t, 'alone')
  self.atLogin = { refresh_token: 'of-the-first-consent' }
  const first = await signIn(self)
  self.atLogin = {}
  const again = await signIn(self, first.browser, first.clientId)
  self.rig.pass(61 * minute)
  t.match(await tokenOf(self, again.caller), /^at-/)
  t.same(sentRefreshTokens(self), ['of-the-first-consent'])
})

t.test('another client of the same user gets it, another account does not', async (t) => {
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

t.test('rows that share a refresh token survive its rotation, one use at a time', async (t) => {
  const self = await setup(t, 'alone')
  let valid = 'rt-0'
  self.renew = (old, n) => {
    // The second use of a token would end the connection.
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

t.test('one that was refused is replaced by a newer one of the same account', async (t) => {
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
  'the only provider is over and cannot be renewed: the grant ends, and the client signs in again',
  async (t) => {
    const self = await setup(t, 'alone')
    const { rig } = self
    const { caller, clientId, tokens, browser } = await signIn(self)
    rig.pass(61 * minute)
    await t.rejects(tokenOf(self, caller), {
      code: 'UPSTREAM_TOKEN_MISSING',
      status: 401,
      message: 'the sign-in at hub has ended: ask the user to sign in again from this client',
    })
    t.equal(await rig.server.isLive(caller), false)
    t.equal(await refusal(await refresh(rig, clientId, tokens.refresh_token)), '400 invalid_grant')
    t.match(
      rig.events.filter(({ type }) => type === 'upstream_refused' || type === 'grant_ended'),
      [
        { type: 'upstream_refused', upstream: 'hub', reason: /expired and came without a refresh token/ },
        { type: 'grant_ended', upstream: 'hub', clientId, reason: 'the sign-in at the provider has ended' },
      ],
    )
    const page = await browser.open(`${rig.issuer}/oauth/accounts`)
    t.match(page.text, /<bdi>Notes<\/bdi><\/legend><p>Signed out: the sign-in at hub has ended/)
    t.match(page.text, /Sign in again from this client/)

    const again = await signIn(self, browser, clientId)
    t.match(await tokenOf(self, again.caller), /^at-/)
    t.notMatch((await browser.open(`${rig.issuer}/oauth/accounts`)).text, /Signed out:/)
  },
)

t.test('one of several is over: the grant goes on, and the user is told where to renew it', async (t) => {
  const self = await setup(t, 'second')
  const { rig } = self
  const { caller, clientId, tokens } = await signIn(self)
  rig.pass(61 * minute)
  const advice = `the sign-in at hub has ended: ask the user to open ${rig.issuer}/oauth/accounts and renew hub there, then try again`
  await t.rejects(tokenOf(self, caller), { code: 'UPSTREAM_TOKEN_MISSING', message: advice })
  await t.rejects(tokenOf(self, caller), { message: advice }, 'the same the next time')
  t.equal((await refresh(rig, clientId, tokens.refresh_token)).status, 200)
  t.notOk(rig.events.some(({ type }) => type === 'grant_ended'))
})

t.test('one of several is over that every request needs: the grant ends', async (t) => {
  const self = await setup(t, 'second', 'hub')
  const { rig } = self
  const { caller, clientId, tokens } = await signIn(self)
  rig.pass(61 * minute)
  await t.rejects(tokenOf(self, caller), { code: 'UPSTREAM_TOKEN_MISSING' }, 'found out by a call')
  rig.pass(6_000)
  const required = () => rig.server.upstreamTokens.required(caller, 'hub')
  await t.rejects(required(), { code: 'UPSTREAM_TOKEN_MISSING' })
  rig.pass(6_000)
  await t.rejects(required(), { message: /sign in again from this client/ })
  t.equal(await refusal(await refresh(rig, clientId, tokens.refresh_token)), '400 invalid_grant')
})

t.test('tokens that the store has lost end the grant, too, but not in the middle of a login', async (t) => {
  const store = makeMemoryStore()
  const rig = await startAuthServer(t, { store })
  const done = await login(rig)
  const tokens = await tokensOf(await redeem(rig, done))
  const claims = decodeJwt(tokens.access_token)
  const caller = makeCaller({ issuer: rig.issuer, subject: claims.sub ?? '', claims })
  const state = makeState(store, () => rig.config.secrets().hmacSecrets)
  await state.rows.delete(upstreamRowKey(String(claims['tsid']), 'corp'))
  await t.rejects(rig.server.upstreamTokens.get(caller), { code: 'UPSTREAM_TOKEN_MISSING' })
  t.equal(await rig.server.isLive(caller), true, 'they may arrive in a moment')
  rig.pass(5_000)
  await t.rejects(rig.server.upstreamTokens.get(caller), { code: 'UPSTREAM_TOKEN_MISSING' })
  t.equal(await refusal(await refresh(rig, done.clientId, tokens.refresh_token)), '400 invalid_grant')
})

t.test('disconnecting the only provider signs the client out', async (t) => {
  const self = await setup(t, 'alone')
  const { rig } = self
  const { clientId, tokens, browser } = await signIn(self)
  const page = await browser.open(`${rig.issuer}/oauth/accounts`)
  const field = (name: string): string =>
    new RegExp(`name="${name}" value="([^"]*)"`).exec(page.text)?.[1] ?? ''
  await browser.open(`${rig.issuer}/oauth/accounts`, undefined, {
    method: 'POST',
    body: new URLSearchParams({
      form: field('form'),
      client: field('client'),
      provider: 'hub',
      action: 'disconnect',
    }),
    headers: { origin: rig.issuer, 'sec-fetch-site': 'same-origin' },
  })
  t.equal(await refusal(await refresh(rig, clientId, tokens.refresh_token)), '400 invalid_grant')
})

t.test('a provider that policies read cannot be left out', async (t) => {
  const { rig } = await setup(t, 'second', 'hub')
  const clientId = await registerClient(rig)
  const { challenge } = pkce()
  const browser = new Browser()
  const page = await browser.open(authorizeUrl(rig, { client_id: clientId, code_challenge: challenge }))
  t.match(page.text, /<input type="checkbox" checked disabled> hub/)
  t.notMatch(page.text, /you leave out/)
  const end = await browser.press(page, 'approve', redirectUri, ['hub'])
  t.ok(end.url.searchParams.get('code'))
  t.ok(browser.visited.some((url) => url.includes('/authorize?response_type=code&client_id=our-id')))
})

t.test(
  'with partialFailureMode fail, a backend whose provider was left out is absent, and appears once it is connected',
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

    const { verifier, challenge } = pkce()
    const clientId = await registerClient(rig)
    const browser = new Browser()
    const page = await browser.open(
      authorizeUrl(rig, { client_id: clientId, code_challenge: challenge, state: 's' }),
    )
    t.match(page.text, /Tools that need a service you leave out are not offered to this client/)
    const end = await browser.press(page, 'approve', redirectUri, ['hub'])
    const code = end.url.searchParams.get('code') ?? ''
    const tokens = await tokensOf(await redeem(rig, { clientId, code, verifier, browser, response: end.url }))
    const headers = { authorization: `Bearer ${tokens.access_token}` }
    const tools = async (): Promise<readonly string[]> => {
      const { text } = await stateless(vmcp.url, 'tools/list', {}, { headers })
      return [...text.matchAll(/"name":"(\w+)"/g)].map(([, name = '']) => name)
    }
    t.ok((await tools()).includes('plain_echo'), 'what needs no connection is listed')
    t.notOk((await tools()).some((name) => name.startsWith('behind_')))

    const accounts = await browser.open(`${rig.issuer}/oauth/accounts`)
    const form = /name="form" value="([^"]*)"/.exec(accounts.text)?.[1] ?? ''
    const client = /name="client" value="([^"]*)"/.exec(accounts.text)?.[1] ?? ''
    await browser.open(`${rig.issuer}/oauth/accounts`, undefined, {
      method: 'POST',
      body: new URLSearchParams({ form, client, provider: 'hub', action: 'connect' }),
      headers: { origin: rig.issuer, 'sec-fetch-site': 'same-origin' },
    })
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
