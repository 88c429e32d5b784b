/**
 * The browser's sign-in session: only a completed login creates it, it is new each time, and it ends when the user
 * signs out.
 */
import { decodeJwt } from 'jose'
import t from 'tap'
import {
  authorizeUrl,
  login,
  pkce,
  redeem,
  redirectUri,
  registerClient,
  type Rig,
  startAuthServer,
  tokensOf,
} from '../../helpers/authserver/authserver.ts'
import { Browser, type Shown } from '../../helpers/authserver/cookie-browser.ts'

const web = 'https://app.example.com/cb'

const accounts = (rig: Rig, browser: Browser): Promise<Shown> => browser.open(`${rig.issuer}/oauth/accounts`)

/** Returns another browser with the current cookies of this one. */
function copyOf(rig: Rig, browser: Browser): Browser {
  const copy = new Browser()
  for (const [name, value] of browser.cookies(rig.issuer)) copy.setCookie(rig.issuer, name, value)
  return copy
}

function send(
  rig: Rig,
  browser: Browser,
  page: Shown,
  fields: Readonly<Record<string, string>>,
): Promise<Shown> {
  const form = /name="form" value="([^"]*)"/.exec(page.text)?.[1] ?? ''
  return browser.open(`${rig.issuer}/oauth/accounts`, undefined, {
    method: 'POST',
    body: new URLSearchParams({ form, ...fields }),
    headers: { origin: rig.issuer, 'sec-fetch-site': 'same-origin' },
  })
}

t.test(
  'sign-in: cookies from before a login are not valid for the user who signed in afterwards',
  async (t) => {
    const rig = await startAuthServer(t)
    const clientId = await registerClient(rig, { redirect_uris: [web] })
    const shared = new Browser()
    const start = authorizeUrl(rig, {
      client_id: clientId,
      redirect_uri: web,
      code_challenge: pkce().challenge,
    })
    await shared.press(await shared.open(start), 'approve', rig.provider.issuer)
    const attacker = copyOf(rig, shared)
    await login(rig, {}, shared)
    t.equal((await accounts(rig, shared)).status, 200)
    const page = await accounts(rig, attacker)
    t.equal(page.status, 401)
    t.notMatch(page.text, /alice|Test Client/)
  },
)

t.test('sign-in: a login creates a new session, and the previous one is invalid', async (t) => {
  const rig = await startAuthServer(t)
  const browser = new Browser()
  await login(rig, {}, browser)
  const copy = copyOf(rig, browser)
  t.equal((await accounts(rig, copy)).status, 200, 'a copied cookie is a credential')
  await login(rig, {}, browser)
  t.equal((await accounts(rig, copy)).status, 401, 'until the next login')
  t.equal((await accounts(rig, browser)).status, 200)
})

t.test('sign-in: logins in several tabs all succeed', async (t) => {
  const rig = await startAuthServer(t)
  const browser = new Browser()
  const clientId = await registerClient(rig)
  const start = authorizeUrl(rig, { client_id: clientId, code_challenge: pkce().challenge })
  const waiting: Shown[] = []
  for (let tab = 0; tab < 3; tab++) {
    const page = await browser.open(start)
    waiting.push(await browser.press(page, 'approve', `${rig.issuer}/oauth/callback`))
  }
  for (const { url } of waiting) {
    t.match((await browser.open(url, redirectUri)).url.searchParams.get('code'), /^gh_ac_/)
  }
})

t.test('sign-in: connecting an account must end in a browser where its user is signed in', async (t) => {
  const rig = await startAuthServer(t)
  const browser = new Browser()
  await login(rig, {}, browser)
  const page = await accounts(rig, browser)
  const client = /name="client" value="([^"]*)"/.exec(page.text)?.[1] ?? ''
  const begin = async (): Promise<string> => {
    const begun = await browser.request(`${rig.issuer}/oauth/accounts`, {
      method: 'POST',
      body: new URLSearchParams({
        form: /name="form" value="([^"]*)"/.exec(page.text)?.[1] ?? '',
        client,
        provider: 'corp',
        action: 'connect',
      }),
      headers: { origin: rig.issuer, 'sec-fetch-site': 'same-origin' },
    })
    const back = await browser.open(begun.headers.get('location') ?? '', `${rig.issuer}/oauth/callback`)
    return back.url.href
  }
  const first = await begin()
  await login(rig, {}, browser)
  t.equal((await browser.open(first)).status, 200, 'a login in another tab does not interfere')
  const second = await begin()
  const bindingOnly = new Browser()
  const binding = browser.cookies(rig.issuer).get('gh-as') ?? ''
  bindingOnly.setCookie(rig.issuer, 'gh-as', binding)
  t.equal((await bindingOnly.open(second)).status, 401)
})

t.test('sign-in: signing out affects the browser, not its clients', async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig, { redirect_uris: [web] })
  const done = await login(rig, { client_id: clientId, redirect_uri: web })
  const { browser } = done
  const tokens = await tokensOf(await redeem(rig, done, { redirect_uri: web }))
  t.ok(decodeJwt(tokens.access_token)['tsid'])
  const copy = copyOf(rig, browser)
  const page = await accounts(rig, browser)
  t.match(page.text, /Sign out of this browser/)
  const out = await send(rig, browser, page, { action: 'leave' })
  t.equal(out.status, 200)
  t.match(out.text, /You are signed out of this browser/)
  t.match(out.headers.getSetCookie().join(), /gh-who=; .*Max-Age=0/)
  t.equal((await accounts(rig, browser)).status, 401)
  t.equal((await accounts(rig, copy)).status, 401, 'the record is gone, not only the cookie')
  const start = authorizeUrl(rig, {
    client_id: clientId,
    redirect_uri: web,
    code_challenge: pkce().challenge,
  })
  t.equal((await browser.open(start, web)).status, 200, 'without a signed-in user the consent page is shown')
  const info = await fetch(`${rig.issuer}/oauth/userinfo`, {
    headers: { authorization: `Bearer ${tokens.access_token}` },
  })
  t.equal(info.status, 200)
})
