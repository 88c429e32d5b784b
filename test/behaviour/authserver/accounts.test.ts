/** Connected accounts: what the page says of each provider of each client, and what its buttons do, for whom. */
import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import { type Caller, makeCaller } from '../../../runtime/net/index.ts'
import { makeMemoryStore, type Store } from '../../../runtime/store/index.ts'
import {
  authorizeUrl,
  corp,
  login,
  pkce,
  redeem,
  registerClient,
  type Rig,
  startAuthServer,
  tokensOf,
} from '../../helpers/authserver/authserver.ts'
import { Browser, type Shown } from '../../helpers/authserver/cookie-browser.ts'
import { type PeerResponse, type Loopback, startLoopback } from '../../helpers/loopback.ts'

interface Setup {
  readonly rig: Rig
  readonly hub: Loopback
  /** The response of hub's token endpoint. */
  token: object
  /** Who signs in at corp. */
  person: string
}

/** corp says who it is; hub is a plain OAuth provider. */
async function setup(t: Test, store?: Store): Promise<Setup> {
  let serial = 0
  const hub = await startLoopback(({ path, query }): PeerResponse => {
    if (path === '/token')
      return { body: { token_type: 'bearer', access_token: `hub-${++serial}`, ...self.token } }
    const back = new URLSearchParams({ code: 'c', state: query.get('state') ?? '' })
    return { status: 302, headers: { location: `${query.get('redirect_uri')}?${back.toString()}` } }
  })
  t.teardown(() => hub.close())
  const rig = await startAuthServer(t, {
    ...(store ? { store } : {}),
    provider: {
      claims: Object.defineProperty({ email: 'alice@example.test' }, 'oid', {
        enumerable: true,
        get: () => self.person,
      }),
      configuration: { claims: { openid: ['sub', 'oid'], profile: ['name'], email: ['email'] } },
    },
    upstreams: ({ issuer, provider }) => [
      { ...corp(issuer, provider), subjectClaim: 'oid' },
      {
        name: 'hub',
        type: 'oauth2',
        redirectUri: `${issuer}/oauth/callback`,
        scopes: [],
        additionalAuthorizationParams: {},
        authorizationEndpoint: `${hub.url}/authorize`,
        tokenEndpoint: `${hub.url}/token`,
        clientId: 'our-id',
      },
    ],
  })
  const self: Setup = { rig, hub, token: { expires_in: 3600, refresh_token: 'hub-rt' }, person: 'alice' }
  return self
}

async function signIn({ rig }: Setup, name = 'Notes', browser = new Browser()) {
  const clientId = await registerClient(rig, { client_name: name })
  const done = await login(rig, { client_id: clientId }, browser)
  const tokens = await tokensOf(await redeem(rig, done))
  const claims = decodeJwt(tokens.access_token)
  const caller = makeCaller({ issuer: rig.issuer, subject: claims.sub ?? '', claims })
  return { browser, caller, tokens, clientId }
}

const open = ({ rig }: Setup, browser: Browser, query = ''): Promise<Shown> =>
  browser.open(`${rig.issuer}/oauth/accounts${query}`)

/** What the page says: provider, host and state of each row. */
const states = (page: Shown): readonly string[] =>
  [...page.text.matchAll(/<dt>(\w+) \([^)]*\)<\/dt><dd>([^<\n]*)/g)].map(
    ([, name, state]) => `${name}: ${state}`,
  )

/** Presses a button of a provider's row, or of the client itself. */
async function press(self: Setup, browser: Browser, action: string, provider?: string): Promise<Shown> {
  const page = await open(self, browser)
  return send(self, browser, page, { action, ...(provider === undefined ? {} : { provider }) })
}

async function send(
  { rig }: Setup,
  browser: Browser,
  page: Shown,
  fields: Readonly<Record<string, string>>,
): Promise<Shown> {
  const value = (name: string): string =>
    new RegExp(`name="${name}" value="([^"]*)"`).exec(page.text)?.[1] ?? ''
  const body = new URLSearchParams({ form: value('form'), client: value('client'), ...fields })
  return browser.open(`${rig.issuer}/oauth/accounts`, undefined, {
    method: 'POST',
    body,
    headers: { origin: rig.issuer, 'sec-fetch-site': 'same-origin' },
  })
}

const tokenAt = async ({ rig }: Setup, caller: Caller, provider: string): Promise<string | undefined> =>
  (await rig.server.upstreamTokens.get(caller, provider))?.accessToken

t.test('accounts: nobody is told anything before a login in this browser', async (t) => {
  const self = await setup(t)
  await signIn(self)
  const page = await open(self, new Browser())
  t.equal(page.status, 401)
  t.match(page.text, /No user is signed in in this browser/)
  t.notMatch(page.text, /Notes|hub/)
  const forged = new Browser()
  forged.setCookie(self.rig.issuer, 'gh-as', `${'A'.repeat(43)}.${'A'.repeat(43)}`)
  t.equal((await open(self, forged)).status, 401)
})

t.test('accounts: every state of a provider is said in words', async (t) => {
  const self = await setup(t)
  self.token = { expires_in: 7200 }
  const { browser, caller, tokens } = await signIn(self)
  const page = await open(self, browser)
  t.equal(page.status, 200)
  t.match(page.text, /You are <bdi>alice@example\.test<\/bdi>/)
  t.match(page.text, /<legend><bdi>Notes<\/bdi><\/legend>/)
  t.same(states(page), ['corp: Connected', 'hub: Connected, ends in 2 hours'])
  t.match(page.headers.get('content-security-policy'), /^default-src 'none'; style-src 'sha256-/)
  t.equal(page.headers.get('cache-control'), 'no-store')
  for (const secret of [tokens.access_token, tokens.refresh_token, String(caller.claims['tsid']), 'hub-1']) {
    t.notOk(page.text.includes(secret), 'no secret is in the page')
  }
  self.rig.pass(3 * 3_600_000)
  t.same(states(await open(self, browser)), ['corp: Connected', 'hub: Broken: sign in there again'])
})

t.test('accounts: disconnect, and connect again', async (t) => {
  const self = await setup(t)
  const { browser, caller } = await signIn(self)
  t.equal(await tokenAt(self, caller, 'hub'), 'hub-1')
  t.same(states(await press(self, browser, 'disconnect', 'hub')), ['corp: Connected', 'hub: Not connected'])
  t.equal(await tokenAt(self, caller, 'hub'), undefined)
  t.ok(await tokenAt(self, caller, 'corp'), 'the other one stays')
  t.match(self.rig.events.at(-1), {
    type: 'grant_ended',
    upstream: 'hub',
    reason: 'disconnected by the user',
  })
  t.same(states(await press(self, browser, 'connect', 'hub')), ['corp: Connected', 'hub: Connected'])
  t.equal(
    await tokenAt(self, caller, 'hub'),
    'hub-2',
    'the client has it at once, without a new token of its own',
  )
})

t.test('accounts: what was disconnected does not come back by a consent that was remembered', async (t) => {
  const self = await setup(t)
  const web = 'https://app.example.com/cb'
  const clientId = await registerClient(self.rig, { redirect_uris: [web] })
  const start = authorizeUrl(self.rig, {
    client_id: clientId,
    redirect_uri: web,
    code_challenge: pkce().challenge,
  })
  for (const action of ['disconnect', 'end']) {
    const browser = new Browser()
    const done = await login(self.rig, { client_id: clientId, redirect_uri: web }, browser)
    await redeem(self.rig, done, { redirect_uri: web })
    t.match((await browser.open(start, web)).url.searchParams.get('code'), /^gh_ac_/, 'remembered')
    await press(self, browser, action, 'hub')
    const page = await browser.open(start, web)
    t.equal(page.status, 200, `asked again after ${action}`)
    const back = await browser.press(page, 'approve', web, ['hub'])
    t.match(back.url.searchParams.get('code'), /^gh_ac_/)
    t.match((await browser.open(start, web)).url.searchParams.get('code'), /^gh_ac_/, 'remembered again')
    if (action === 'disconnect') {
      t.same(
        states(await open(self, browser)),
        ['corp: Connected', 'hub: Not connected'],
        'as it was answered',
      )
    }
  }
})

t.test('accounts: renewing a broken connection, and a provider that refuses', async (t) => {
  const self = await setup(t)
  self.token = { expires_in: 60 }
  const { browser, caller } = await signIn(self)
  self.rig.pass(120_000)
  t.same(states(await open(self, browser)), ['corp: Connected', 'hub: Broken: sign in there again'])
  self.token = { error: 'access_denied' }
  const refused = await press(self, browser, 'connect', 'hub')
  t.match(refused.text, /hub could not be connected\. Nothing was changed\./)
  self.token = { expires_in: 3600 }
  await press(self, browser, 'connect', 'hub')
  t.match(await tokenAt(self, caller, 'hub'), /^hub-\d$/)
  t.notMatch(
    (await open(self, browser, '?problem=%3Cscript%3E')).text,
    /script|could not/,
    'only our own words',
  )
})

t.test('accounts: the first provider can be renewed by the same user only', async (t) => {
  const self = await setup(t)
  const { browser, caller } = await signIn(self)
  const before = await tokenAt(self, caller, 'corp')
  self.person = 'mallory'
  t.match((await press(self, browser, 'connect', 'corp')).text, /corp could not be connected/)
  t.equal(await tokenAt(self, caller, 'corp'), before)
  self.person = 'alice'
  await press(self, browser, 'connect', 'corp')
  t.not(await tokenAt(self, caller, 'corp'), before)
})

t.test('accounts: a client is signed out with everything it had', async (t) => {
  const self = await setup(t)
  const browser = new Browser()
  const notes = await signIn(self, 'Notes', browser)
  const tasks = await signIn(self, 'Tasks', browser)
  const page = await open(self, browser)
  t.same(
    [...page.text.matchAll(/<legend><bdi>(\w+)/g)].map(([, name]) => name),
    ['Tasks', 'Notes'],
    'the latest first',
  )
  const after = await send(self, browser, page, { action: 'end' })
  t.same(states(after).length, 2, 'one client is left')
  t.equal(await self.rig.server.isLive(tasks.caller), false)
  t.equal(await self.rig.server.isLive(notes.caller), true)
})

t.test('accounts: only the page’s own form, in the browser and for the user it was shown to', async (t) => {
  const self = await setup(t)
  const { browser, caller } = await signIn(self)
  const page = await open(self, browser)
  self.person = 'bob'
  const bob = await signIn(self)
  const bobs = await open(self, bob.browser)
  const client = /name="client" value="([^"]*)"/.exec(page.text)?.[1] ?? ''
  const fields = { action: 'disconnect', provider: 'hub' }
  t.equal((await send(self, bob.browser, page, fields)).status, 403, 'another browser')
  t.equal((await send(self, bob.browser, bobs, { ...fields, client })).status, 400, "another user's client")
  t.equal((await send(self, browser, page, { ...fields, form: 'x'.repeat(43) })).status, 403)
  t.equal((await send(self, browser, page, { ...fields, provider: 'nobody' })).status, 400)
  t.equal((await send(self, browser, page, { ...fields, action: 'delete' })).status, 400)
  const body = new URLSearchParams({ ...fields, client })
  const cross = await browser.request(`${self.rig.issuer}/oauth/accounts`, {
    method: 'POST',
    body,
    headers: { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
  })
  t.equal(cross.status, 403)
  t.equal(await tokenAt(self, caller, 'hub'), 'hub-1', 'nothing has changed')
})

t.test(
  'accounts: connecting must end in the browser that began it, once, while the client is signed in',
  async (t) => {
    const self = await setup(t)
    const { browser } = await signIn(self)
    const page = await open(self, browser)
    const begin = async (): Promise<string> => {
      const value = (name: string): string =>
        new RegExp(`name="${name}" value="([^"]*)"`).exec(page.text)?.[1] ?? ''
      const body = new URLSearchParams({
        form: value('form'),
        client: value('client'),
        action: 'connect',
        provider: 'hub',
      })
      const begun = await browser.request(`${self.rig.issuer}/oauth/accounts`, {
        method: 'POST',
        body,
        headers: { origin: self.rig.issuer, 'sec-fetch-site': 'same-origin' },
      })
      const back = await fetch(begun.headers.get('location') ?? '', { redirect: 'manual' })
      return back.headers.get('location') ?? ''
    }
    t.equal((await new Browser().open(await begin())).status, 403, 'another browser')
    const back = await begin()
    t.equal((await browser.open(back)).status, 200)
    t.equal((await browser.open(back)).status, 400, 'once')
    const late = await begin()
    await send(self, browser, page, { action: 'end' })
    t.match((await browser.open(late)).text, /hub could not be connected/)
  },
)

t.test('accounts: connecting counts as a login that is begun', async (t) => {
  const self = await setup(t, makeMemoryStore({ now: () => 0 }))
  const { browser } = await signIn(self)
  const page = await open(self, browser)
  const value = (name: string): string =>
    new RegExp(`name="${name}" value="([^"]*)"`).exec(page.text)?.[1] ?? ''
  const body = new URLSearchParams({
    form: value('form'),
    client: value('client'),
    action: 'connect',
    provider: 'hub',
  }).toString()
  const headers = {
    'content-type': 'application/x-www-form-urlencoded',
    origin: self.rig.issuer,
    'sec-fetch-site': 'same-origin',
  }
  const post = (): Promise<Response> =>
    browser.request(`${self.rig.issuer}/oauth/accounts`, { method: 'POST', body, headers })
  const responses = await Promise.all(Array.from({ length: 305 }, post))
  t.equal(responses.filter(({ status }) => status === 303).length, 299, 'the login itself was the first')
  t.match(responses.find(({ status }) => status === 429)?.headers.get('retry-after'), /^\d+$/)
})

t.test(
  'accounts: who cannot be told from anybody else cannot renew the account that says who it is',
  async (t) => {
    const self = await setup(t)
    const rig = await startAuthServer(t, {
      upstreams: ({ issuer }) => [
        {
          name: 'hub',
          type: 'oauth2',
          redirectUri: `${issuer}/oauth/callback`,
          scopes: [],
          additionalAuthorizationParams: {},
          authorizationEndpoint: `${self.hub.url}/authorize`,
          tokenEndpoint: `${self.hub.url}/token`,
          clientId: 'our-id',
        },
      ],
    })
    const only = { ...self, rig }
    const { browser, caller } = await signIn(only)
    t.match(caller.subject, /^tk-/)
    const page = await open(only, browser)
    t.notMatch(page.text, /value="connect"/)
    const before = await tokenAt(only, caller, 'hub')
    const after = await send(only, browser, page, { action: 'connect', provider: 'hub' })
    t.match(after.text, /hub could not be connected/)
    t.equal(await tokenAt(only, caller, 'hub'), before)
  },
)
