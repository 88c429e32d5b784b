/** The page of connected accounts: the state of each provider of each client, and the effect of each button. */
import t, { type Test } from 'tap'
import type { Caller } from '../../../runtime/net/index.ts'
import { makeMemoryStore, type Store } from '../../../runtime/store/index.ts'
import { corp, type Rig, startAuthServer } from '../../helpers/authserver/authserver.ts'
import { Browser, type Shown, submission } from '../../helpers/authserver/cookie-browser.ts'
import { type Hub, startHub } from '../../helpers/authserver/oauth2-peer.ts'
import { TestClient, webRedirect } from '../../helpers/authserver/test-client.ts'

interface Setup {
  readonly rig: Rig
  readonly hub: Hub
  /** Members of the responses of hub's token endpoint. */
  token: object
  /** The user who signs in at corp. */
  person: string
}

/** corp identifies the user; hub is a plain OAuth provider. */
async function setup(t: Test, store?: Store): Promise<Setup> {
  let serial = 0
  const token = () => ({
    body: { token_type: 'bearer', access_token: `hub-${++serial}`, ...self.token },
  })
  const hub = await startHub(t, { token })
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
      hub.upstream(issuer),
    ],
  })
  const self: Setup = { rig, hub, token: { expires_in: 3600, refresh_token: 'hub-rt' }, person: 'alice' }
  return self
}

async function signIn({ rig }: Setup, name = 'Notes', browser = new Browser()) {
  const client = await TestClient.register(rig, { client_name: name }, browser)
  const tokens = await client.signIn()
  return { browser, caller: tokens.caller, tokens }
}

const open = ({ rig }: Setup, browser: Browser, query = ''): Promise<Shown> =>
  browser.open(`${rig.issuer}/oauth/accounts${query}`)

/** Provider and state of each row of the page. */
const states = (page: Shown): readonly string[] =>
  [...page.text.matchAll(/<dt>(\w+) \([^)]*\)<\/dt><dd>([^<\n]*)/g)].map(
    ([, name, state]) => `${name}: ${state}`,
  )

/** Presses a button of a provider's row, or of the client itself. */
async function press(self: Setup, browser: Browser, action: string, provider?: string): Promise<Shown> {
  return browser.send(await open(self, browser), { action, ...(provider === undefined ? {} : { provider }) })
}

const tokenAt = async ({ rig }: Setup, caller: Caller, provider: string): Promise<string | undefined> =>
  (await rig.server.upstreamTokens.get(caller, provider))?.accessToken

t.test('accounts: the page is empty before a login in this browser', async (t) => {
  const self = await setup(t)
  await signIn(self)
  const page = await open(self, new Browser())
  t.equal(page.status, 401)
  t.match(page.text, /No user has signed in with this browser/)
  t.notMatch(page.text, /Notes|hub/)
  const forged = new Browser()
  forged.setCookie(self.rig.issuer, 'gh-as', `${'A'.repeat(43)}.${'A'.repeat(43)}`)
  t.equal((await open(self, forged)).status, 401)
})

t.test('accounts: the page describes every state of a provider', async (t) => {
  const self = await setup(t)
  self.token = { expires_in: 7200 }
  const { browser, caller, tokens } = await signIn(self)
  const page = await open(self, browser)
  t.equal(page.status, 200)
  t.match(page.text, /You are <bdi>alice@example\.test<\/bdi>/)
  t.match(page.text, /<legend><bdi>Notes<\/bdi><\/legend>/)
  t.same(states(page), ['corp: Connected', 'hub: Connected, expires in 2 hours'])
  t.match(page.headers.get('content-security-policy'), /^default-src 'none'; style-src 'sha256-/)
  t.equal(page.headers.get('cache-control'), 'no-store')
  for (const secret of [tokens.access, tokens.refresh, String(caller.claims['tsid']), 'hub-1']) {
    t.notOk(page.text.includes(secret), 'the page contains no secret')
  }
  self.rig.pass(3 * 3_600_000)
  t.same(states(await open(self, browser)), ['corp: Connected', 'hub: Broken: sign in to the provider again'])
})

t.test('accounts: a client without a name is shown by its id', async (t) => {
  const self = await setup(t)
  const browser = new Browser()
  const client = await TestClient.register(self.rig, { client_name: undefined }, browser)
  await client.signIn()
  const page = await open(self, browser)
  t.match(page.text, `<bdi>Client ${client.id}</bdi>`)
  t.match(page.text, 'The client has no name')
})

t.test('accounts: disconnect, and connect again', async (t) => {
  const self = await setup(t)
  const { browser, caller } = await signIn(self)
  t.equal(await tokenAt(self, caller, 'hub'), 'hub-1')
  t.same(states(await press(self, browser, 'disconnect', 'hub')), ['corp: Connected', 'hub: Not connected'])
  t.equal(await tokenAt(self, caller, 'hub'), undefined)
  t.ok(await tokenAt(self, caller, 'corp'), 'the other client stays')
  t.match(self.rig.events.at(-1), {
    type: 'grant_ended',
    upstream: 'hub',
    reason: 'disconnected by the user',
  })
  t.same(states(await press(self, browser, 'connect', 'hub')), ['corp: Connected', 'hub: Connected'])
  t.equal(await tokenAt(self, caller, 'hub'), 'hub-2', 'it works at once with the client’s current token')
})

t.test('accounts: a remembered consent does not connect a disconnected provider again', async (t) => {
  const self = await setup(t)
  const registered = await TestClient.register(self.rig, { redirect_uris: [webRedirect] })
  for (const action of ['disconnect', 'end']) {
    const client = registered.with()
    const { browser } = client
    await client.signIn()
    t.match((await client.authorize()).code, /^gh_ac_/, 'remembered')
    await press(self, browser, action, 'hub')
    const page = await client.authorize()
    t.equal(page.status, 200, `asked again after ${action}`)
    t.match((await client.consent(page, 'approve', ['hub'])).code, /^gh_ac_/)
    t.match((await client.authorize()).code, /^gh_ac_/, 'remembered again')
    if (action === 'disconnect') {
      t.same(
        states(await open(self, browser)),
        ['corp: Connected', 'hub: Not connected'],
        'as answered before',
      )
    }
  }
})

t.test('accounts: renewing a broken connection, and a provider that refuses', async (t) => {
  const self = await setup(t)
  self.token = { expires_in: 60 }
  const { browser, caller } = await signIn(self)
  self.rig.pass(120_000)
  t.same(states(await open(self, browser)), ['corp: Connected', 'hub: Broken: sign in to the provider again'])
  self.token = { error: 'access_denied' }
  const refused = await press(self, browser, 'connect', 'hub')
  t.match(refused.text, /hub could not be connected\. Nothing was changed\./)
  self.token = { expires_in: 3600 }
  await press(self, browser, 'connect', 'hub')
  t.match(await tokenAt(self, caller, 'hub'), /^hub-\d$/)
  t.notMatch(
    (await open(self, browser, '?problem=%3Cscript%3E')).text,
    /script|could not/,
    'only the server’s own text',
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

t.test('accounts: signing a client out revokes everything that it received', async (t) => {
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
  const after = await browser.send(page, { action: 'end' })
  t.same(states(after).length, 2, 'one client is left')
  t.equal(await self.rig.server.isLive(tasks.caller), false)
  t.equal(await self.rig.server.isLive(notes.caller), true)
})

t.test('accounts: only a form from the page works, in the same browser and for the same user', async (t) => {
  const self = await setup(t)
  const { browser, caller } = await signIn(self)
  const page = await open(self, browser)
  self.person = 'bob'
  const bob = await signIn(self)
  const bobs = await open(self, bob.browser)
  const client = /name="client" value="([^"]*)"/.exec(page.text)?.[1] ?? ''
  const fields = { action: 'disconnect', provider: 'hub' }
  t.equal((await bob.browser.send(page, fields)).status, 403, 'another browser')
  t.equal((await bob.browser.send(bobs, { ...fields, client })).status, 400, "another user's client")
  t.equal((await browser.send(page, { ...fields, form: 'x'.repeat(43) })).status, 403)
  t.equal((await browser.send(page, { ...fields, provider: 'nobody' })).status, 400)
  t.equal((await browser.send(page, { ...fields, action: 'delete' })).status, 400)
  const elsewhere = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }
  const cross = await browser.request(page.url, submission(page, fields, elsewhere))
  t.equal(cross.status, 403)
  t.equal(await tokenAt(self, caller, 'hub'), 'hub-1', 'nothing has changed')
})

t.test(
  'accounts: connecting works once, in the browser that started it, while the client is signed in',
  async (t) => {
    const self = await setup(t)
    const { browser } = await signIn(self)
    const page = await open(self, browser)
    const begin = async (): Promise<string> => {
      const begun = await browser.request(page.url, submission(page, { action: 'connect', provider: 'hub' }))
      const back = await fetch(begun.headers.get('location') ?? '', { redirect: 'manual' })
      return back.headers.get('location') ?? ''
    }
    t.equal((await new Browser().open(await begin())).status, 403, 'another browser')
    const back = await begin()
    t.equal((await browser.open(back)).status, 200)
    t.equal((await browser.open(back)).status, 400, 'once')
    const late = await begin()
    await browser.send(page, { action: 'end' })
    t.match((await browser.open(late)).text, /hub could not be connected/)
  },
)

t.test('accounts: the limit of started logins includes connections', async (t) => {
  const self = await setup(t, makeMemoryStore({ now: () => 0 }))
  const { browser } = await signIn(self)
  const page = await open(self, browser)
  const post = (): Promise<Response> =>
    browser.request(page.url, submission(page, { action: 'connect', provider: 'hub' }))
  const responses = await Promise.all(Array.from({ length: 305 }, post))
  t.equal(responses.filter(({ status }) => status === 303).length, 299, 'the login was the first of them')
  t.match(responses.find(({ status }) => status === 429)?.headers.get('retry-after'), /^\d+$/)
})

t.test('accounts: a user without a stable subject cannot renew the identifying provider', async (t) => {
  const self = await setup(t)
  const rig = await startAuthServer(t, {
    upstreams: ({ issuer }) => [self.hub.upstream(issuer)],
  })
  const only = { ...self, rig }
  const { browser, caller } = await signIn(only)
  t.match(caller.subject, /^tk-/)
  const page = await open(only, browser)
  t.notMatch(page.text, /value="connect"/)
  const before = await tokenAt(only, caller, 'hub')
  const after = await browser.send(page, { action: 'connect', provider: 'hub' })
  t.match(after.text, /hub could not be connected/)
  t.equal(await tokenAt(only, caller, 'hub'), before)
})
