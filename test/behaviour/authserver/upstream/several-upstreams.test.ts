/** Several upstreams: the chain, leaving some out, an upstream step that fails, coming back later. */
import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import { type Caller, makeCaller } from '../../../../runtime/net/index.ts'
import {
  authorizeUrl,
  corp,
  login,
  pkce,
  redeem,
  redirectUri,
  registerClient,
  type Rig,
  startAuthServer,
  tokensOf,
} from '../../../helpers/authserver/authserver.ts'
import { Browser } from '../../../helpers/authserver/cookie-browser.ts'
import { type PeerResponse, type Loopback, startLoopback } from '../../../helpers/loopback.ts'
import { proves } from '../../../helpers/proves.ts'

proves('2.embeddedAuthServer.upstreamProviders', '2.embeddedAuthServer.upstreamProviders.count')
proves('2.upstreamProviders.name', '2.upstreamProviders.type', '2.embeddedAuthServer.primaryUpstreamProvider')
proves('2.embeddedAuthServer.primaryUpstreamProvider.match')

interface Three {
  readonly rig: Rig
  readonly hub: Loopback
  readonly desk: Loopback
  readonly clientId: string
  /** What hub's authorization endpoint sends back instead of a code. */
  failing: string | undefined
}

async function oauth(t: Test, name: string, failing: () => string | undefined): Promise<Loopback> {
  const peer = await startLoopback(({ path, query }): PeerResponse => {
    if (path === '/token' && failing() !== undefined) return { status: 400, body: { error: 'invalid_grant' } }
    if (path === '/token')
      return {
        body: {
          access_token: `${name}-at`,
          refresh_token: `${name}-rt`,
          token_type: 'Bearer',
          expires_in: 3600,
        },
      }
    const error = failing()
    const back = new URLSearchParams({
      state: query.get('state') ?? '',
      ...(error === undefined ? { code: 'c' } : { error }),
    })
    return { status: 302, headers: { location: `${query.get('redirect_uri')}?${back.toString()}` } }
  })
  t.teardown(() => peer.close())
  return peer
}

/** corp (the real provider), hub and desk (plain OAuth). */
async function three(t: Test, config: object = {}): Promise<Three> {
  const hub = await oauth(t, 'hub', () => self.failing)
  const desk = await oauth(t, 'desk', () => undefined)
  const plain = (issuer: string, name: string, peer: Loopback) => ({
    name,
    type: 'oauth2' as const,
    redirectUri: `${issuer}/oauth/callback`,
    scopes: [],
    additionalAuthorizationParams: {},
    authorizationEndpoint: `${peer.url}/authorize`,
    tokenEndpoint: `${peer.url}/token`,
    clientId: 'our-id',
  })
  const rig = await startAuthServer(t, {
    config,
    upstreams: ({ issuer, provider }) => [
      corp(issuer, provider),
      plain(issuer, 'hub', hub),
      plain(issuer, 'desk', desk),
    ],
  })
  const self: Three = { rig, hub, desk, clientId: await registerClient(rig), failing: undefined }
  return self
}

async function callerAfter(
  rig: Rig,
  done: Awaited<ReturnType<typeof login>>,
  target = redirectUri,
): Promise<Caller> {
  const redeemed = await redeem(rig, done, { redirect_uri: target })
  const claims = decodeJwt((await tokensOf(redeemed)).access_token)
  return makeCaller({ issuer: rig.issuer, subject: claims.sub ?? '', claims })
}

async function tokensAt({ rig }: Three, caller: Caller): Promise<readonly (string | undefined)[]> {
  const { upstreamTokens: source } = rig.server
  const all = await Promise.all(source.providers.map((provider) => source.get(caller, provider)))
  return all.map((token) => token?.accessToken)
}

const logins = ({ hub, desk }: Three): readonly number[] =>
  [hub, desk].map(({ seen }) => seen.filter(({ path }) => path === '/authorize').length)

t.test('several: one click leads through all of them, the first one says who it is', async (t) => {
  const self = await three(t)
  const done = await login(self.rig, { client_id: self.clientId })
  const caller = await callerAfter(self.rig, done)
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

t.test('several: primaryUpstreamProvider chooses another one for the policy', async (t) => {
  const self = await three(t, { primaryUpstreamProvider: 'desk' })
  const caller = await callerAfter(self.rig, await login(self.rig, { client_id: self.clientId }))
  t.equal(self.rig.server.upstreamTokens.primary, 'desk')
  t.equal((await self.rig.server.upstreamTokens.get(caller))?.accessToken, 'desk-at')
  await t.rejects(three(t, { primaryUpstreamProvider: 'nobody' }), {
    message: /primaryUpstreamProvider "nobody"/,
  })
})

t.test('several: what is unticked on the page is left out, the first cannot be', async (t) => {
  const self = await three(t)
  const { verifier, challenge } = pkce()
  const browser = new Browser()
  const page = await browser.open(
    authorizeUrl(self.rig, { client_id: self.clientId, code_challenge: challenge }),
  )
  t.match(page.text, /<input type="checkbox" checked disabled> corp/)
  t.match(page.text, /name="provider" value="hub" checked/)
  const back = await browser.press(page, 'approve', redirectUri, ['hub'])
  t.same(logins(self), [0, 1])
  const done = {
    clientId: self.clientId,
    verifier,
    browser,
    response: back.url,
    code: back.url.searchParams.get('code') ?? '',
  }
  const caller = await callerAfter(self.rig, done)
  t.same((await tokensAt(self, caller)).slice(1), [undefined, 'desk-at'])
})

t.test(
  'several: a later upstream step that fails is for the user to decide: again, without it, or not at all',
  async (t) => {
    const self = await three(t)
    self.failing = 'access_denied'
    const { verifier, challenge } = pkce()
    const open = async (
      clientId = self.clientId,
    ): Promise<[Browser, Awaited<ReturnType<Browser['open']>>]> => {
      const browser = new Browser()
      const page = await browser.open(
        authorizeUrl(self.rig, { client_id: clientId, code_challenge: challenge }),
      )
      return [browser, await browser.press(page, 'approve', redirectUri)]
    }
    const [browser, failed] = await open()
    t.equal(failed.url.pathname, '/oauth/confirm')
    t.match(failed.text, 'hub could not be connected')
    t.notMatch(failed.text, 'access_denied')
    const again = await browser.press(failed, 'retry', redirectUri)
    t.match(again.text, 'hub could not be connected', 'still failing')
    const without = await browser.press(again, 'skip', redirectUri)
    const done = {
      clientId: self.clientId,
      verifier,
      browser,
      response: without.url,
      code: without.url.searchParams.get('code') ?? '',
    }
    const caller = await callerAfter(self.rig, done)
    t.same((await tokensAt(self, caller)).slice(1), [undefined, 'desk-at'])

    const [second, page] = await open()
    self.failing = undefined
    const fine = await second.press(page, 'retry', redirectUri)
    t.match(fine.url.searchParams.get('code'), /^gh_ac_/)

    self.failing = 'server_error'
    const [third, last] = await open(await registerClient(self.rig))
    const cancelled = await third.press(last, 'cancel', redirectUri)
    t.equal(cancelled.url.searchParams.get('error'), 'access_denied')
  },
)

t.test('several: who comes back with the same client is only sent to what is not connected', async (t) => {
  const self = await three(t)
  const first = await callerAfter(self.rig, await login(self.rig, { client_id: self.clientId }))
  t.same(logins(self), [1, 1])
  const second = await callerAfter(self.rig, await login(self.rig, { client_id: self.clientId }))
  t.same(logins(self), [1, 1], 'hub and desk are still connected')
  t.equal(second.claims['tsid'], first.claims['tsid'], 'the same session')
  const other = await callerAfter(self.rig, await login(self.rig))
  t.same(logins(self), [2, 2], 'another client starts from nothing')
  t.not(other.claims['tsid'], first.claims['tsid'])
})

t.test('several: an abandoned chain leaves no tokens behind', async (t) => {
  const self = await three(t)
  self.failing = 'access_denied'
  const browser = new Browser()
  const page = await browser.open(
    authorizeUrl(self.rig, { client_id: self.clientId, code_challenge: pkce().challenge }),
  )
  await browser.press(page, 'approve', redirectUri)
  self.failing = undefined
  await callerAfter(self.rig, await login(self.rig, { client_id: self.clientId }))
  t.same(logins(self), [2, 1], 'hub was asked again')
})

t.test(
  'several: with prompt=none an upstream step that needs the user is interaction_required',
  async (t) => {
    const self = await three(t)
    const web = 'https://app.example.com/cb'
    const clientId = await registerClient(self.rig, { redirect_uris: [web] })
    const first = await login(self.rig, { client_id: clientId, redirect_uri: web })
    const { browser } = first
    const silent = authorizeUrl(self.rig, {
      client_id: clientId,
      redirect_uri: web,
      prompt: 'none',
      code_challenge: pkce().challenge,
    })
    const done = await browser.open(silent, web)
    t.match(done.url.searchParams.get('code'), /^gh_ac_/, 'everything is connected')
    const caller = await callerAfter(self.rig, first, web)
    self.failing = 'access_denied'
    self.rig.pass(3_600_000)
    await t.rejects(self.rig.server.upstreamTokens.get(caller, 'hub'), { code: 'UPSTREAM_TOKEN_MISSING' })
    const missing = await browser.open(silent, web)
    t.equal(missing.url.searchParams.get('error'), 'interaction_required', 'hub would have to ask')
  },
)
