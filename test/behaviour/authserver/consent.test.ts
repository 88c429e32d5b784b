/** The consent page: its content, the effect of its buttons, and when it is shown. */
import t, { type Test } from 'tap'
import type { AuthServerConfig } from '../../../runtime/config/index.ts'
import {
  authorizeUrl,
  corp,
  jsonOf,
  login,
  pkce,
  redirectUri,
  registerClient,
  type Rig,
  startAuthServer,
  postRegistration,
} from '../../helpers/authserver/authserver.ts'
import { Browser, type Shown } from '../../helpers/authserver/cookie-browser.ts'
import { startHub } from '../../helpers/authserver/oauth2-peer.ts'

const web = 'https://app.example.com/cb'
const { challenge } = pkce()

function start(rig: Rig, clientId: string, parameters: Readonly<Record<string, string>> = {}): URL {
  return authorizeUrl(rig, { client_id: clientId, code_challenge: challenge, state: 's', ...parameters })
}

t.test('consent: the page shows client, target, resource, scopes and provider, all escaped', async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig, { client_name: '<img src=x onerror=alert(1)>"\'&' })
  const page = await new Browser().open(start(rig, clientId, { scope: 'openid offline_access' }))
  t.equal(page.status, 200)
  t.notMatch(page.text, /<img/)
  t.match(page.text, '&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;')
  t.match(
    page.text,
    /<h1>Allow access to 127\.0\.0\.1:\d+\?<\/h1>[\s\S]*Unverified name\.<\/strong> The client chose this name itself/,
  )
  t.match(page.text, '<dd>127.0.0.1:33418</dd>')
  t.match(page.text, 'Stay signed in when you are away')
  t.notMatch(page.text, 'See your email address')
  t.match(page.text, rig.resource)
  t.match(page.text, new URL(rig.provider.issuer).host)
  t.match(page.text, /any client here can claim to be this one/)
  const policy = page.headers.get('content-security-policy') ?? ''
  t.match(policy, /^default-src 'none'; style-src 'sha256-[\w+/=]+'; form-action /)
  t.notMatch(policy, /unsafe|script-src/)
  t.notMatch(
    page.text.replace(/&lt;img src=/g, ''),
    /<script|<link|<img|url\(|@import|src=|href=/,
    'the page loads nothing',
  )
  t.match(page.headers.getSetCookie().join(), /gh-form=.*HttpOnly; SameSite=Lax/)
  t.notMatch(page.headers.getSetCookie().join(), /gh-as/, 'no binding before approval')
})

t.test('consent: a web client is shown without the warning about this computer', async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig, { redirect_uris: [web], application_type: 'web' })
  const page = await new Browser().open(start(rig, clientId, { redirect_uri: web }))
  t.match(page.text, '<dd>app.example.com</dd>')
  t.notMatch(page.text, /any client here/)
})

t.test('consent: after a refusal the client gets access_denied, and nothing is sent upstream', async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig)
  const browser = new Browser()
  const page = await browser.open(start(rig, clientId))
  const before = rig.provider.requests.length
  const back = await browser.press(page, 'deny', redirectUri)
  t.match(Object.fromEntries(back.url.searchParams), { error: 'access_denied', state: 's', iss: rig.issuer })
  t.equal(rig.provider.requests.length, before)
  t.notMatch([...browser.cookies(rig.issuer).keys()].join(), 'gh-as')
  const again = await browser.press(page, 'approve', redirectUri)
  t.equal(again.status, 400, 'a submitted page cannot be used again')
})

t.test('consent: a web client needs consent once per user, a local client every time', async (t) => {
  const rig = await startAuthServer(t)
  const local = await registerClient(rig)
  const remote = await registerClient(rig, { redirect_uris: [web] })
  const { browser } = await login(rig, { client_id: remote, redirect_uri: web })
  const silent = await browser.open(start(rig, remote, { redirect_uri: web }), web)
  t.match(silent.url.searchParams.get('code'), /^gh_ac_/, 'no page on the second login')
  const more = await browser.open(start(rig, remote, { redirect_uri: web, prompt: 'consent' }), web)
  t.equal(more.status, 200, 'prompt=consent asks again')
  await login(rig, { client_id: local }, browser)
  t.equal(
    (await browser.open(start(rig, local), redirectUri)).status,
    200,
    'consent for loopback clients is never remembered',
  )
  t.equal(
    (await new Browser().open(start(rig, remote, { redirect_uri: web }), web)).status,
    200,
    'another browser is asked',
  )
})

t.test('consent: more scopes or another redirect host need consent again', async (t) => {
  const rig = await startAuthServer(t)
  const other = 'https://other.example.com/cb'
  const clientId = await registerClient(rig, { redirect_uris: [web, other] })
  const { browser } = await login(rig, { client_id: clientId, redirect_uri: web, scope: 'openid' })
  t.match(
    (await browser.open(start(rig, clientId, { redirect_uri: web, scope: 'openid' }), web)).url.href,
    /code=/,
  )
  t.equal(
    (await browser.open(start(rig, clientId, { redirect_uri: web, scope: 'openid email' }), web)).status,
    200,
  )
  t.equal(
    (await browser.open(start(rig, clientId, { redirect_uri: other, scope: 'openid' }), other)).status,
    200,
  )
})

t.test('consent: prompt=none never shows a page', async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig, { redirect_uris: [web] })
  const silent = { redirect_uri: web, prompt: 'none' }
  const untrusted = await new Browser().open(start(rig, clientId, silent), web)
  t.equal(untrusted.url.searchParams.get('error'), 'login_required')
  const { browser } = await login(rig, { client_id: clientId, redirect_uri: web, scope: 'openid' })
  const known = await browser.open(start(rig, clientId, { ...silent, scope: 'openid' }), web)
  t.match(known.url.searchParams.get('code'), /^gh_ac_/)
  const wider = await browser.open(start(rig, clientId, { ...silent, scope: 'openid email' }), web)
  t.equal(wider.url.searchParams.get('error'), 'consent_required')
})

t.test('consent: prompt=none ends with login_required when the provider needs the user', async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig, { redirect_uris: [web] })
  const { browser } = await login(rig, { client_id: clientId, redirect_uri: web })
  const withoutProviderSession = new Browser()
  for (const [name, value] of browser.cookies(rig.issuer))
    withoutProviderSession.setCookie(rig.issuer, name, value)
  const back = await withoutProviderSession.open(
    start(rig, clientId, { redirect_uri: web, prompt: 'none' }),
    web,
  )
  t.equal(back.url.searchParams.get('error'), 'login_required')
})

/** A provider that identifies the user by `oid`, which the test changes. */
async function startWithChangingPerson(
  t: Test,
  more: (issuer: string) => AuthServerConfig['upstreams'] = () => [],
): Promise<{ rig: Rig; become: (oid: string) => void }> {
  let oid = 'alice'
  const rig = await startAuthServer(t, {
    provider: {
      claims: Object.defineProperty({}, 'oid', { enumerable: true, get: () => oid }),
      configuration: { claims: { openid: ['sub', 'oid'], profile: ['name'], email: ['email'] } },
    },
    upstreams: ({ issuer, provider }) => [
      { ...corp(issuer, provider), subjectClaim: 'oid' },
      ...more(issuer),
    ],
  })
  return { rig, become: (other) => void (oid = other) }
}

t.test('consent: another user in the same browser must consent too', async (t) => {
  const { rig, become } = await startWithChangingPerson(t)
  const clientId = await registerClient(rig, { redirect_uris: [web] })
  const { browser } = await login(rig, { client_id: clientId, redirect_uri: web })
  become('bob')
  const page = await browser.open(start(rig, clientId, { redirect_uri: web }), web)
  t.equal(page.status, 200)
  t.match(page.url.pathname, '/oauth/confirm')
  t.match(page.text, /You are signed in/)
  const silent = await browser.open(start(rig, clientId, { redirect_uri: web, prompt: 'none' }), web)
  t.equal(silent.url.searchParams.get('error'), 'consent_required')
  const untrusted = await new Browser().open(page.url)
  t.equal(untrusted.status, 400, 'the page is bound to one browser')
  const back = await browser.press(page, 'approve', web)
  t.match(back.url.searchParams.get('code'), /^gh_ac_/)
})

t.test('consent: another user must consent before the next provider, and can choose providers', async (t) => {
  const hub = await startHub(t)
  const { rig, become } = await startWithChangingPerson(t, (issuer) => [hub.upstream(issuer)])
  const clientId = await registerClient(rig, { redirect_uris: [web] })
  const { browser } = await login(rig, { client_id: clientId, redirect_uri: web })
  t.same(
    hub.seen.map(({ path }) => path),
    ['/authorize', '/token'],
  )
  become('bob')
  const page = await browser.open(start(rig, clientId, { redirect_uri: web }), web)
  t.match(page.url.pathname, '/oauth/confirm')
  t.equal(hub.seen.length, 2, 'no request before the consent')
  t.match(page.text, /name="provider" value="hub" checked/)
  const back = await browser.press(page, 'approve', web, ['hub'])
  t.match(back.url.searchParams.get('code'), /^gh_ac_/)
  t.equal(hub.seen.length, 2, 'hub was skipped')
})

t.test('consent: a right-to-left client name does not affect the text around it', async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig, { client_name: 'תוכנית' })
  const page = await new Browser().open(start(rig, clientId))
  t.match(page.text, '<bdi>תוכנית</bdi> wants to act for you. Its name is not verified')
})

t.test('consent: a client without a name is shown by its id, as unverified', async (t) => {
  const rig = await startAuthServer(t)
  const { client_id: clientId } = await jsonOf(await postRegistration(rig, { redirect_uris: [web] }))
  const page = await new Browser().open(start(rig, String(clientId), { redirect_uri: web }))
  t.match(page.text, 'A client without a name wants to act for you')
  t.match(page.text, `<dt>Client ID</dt><dd>${String(clientId)}</dd>`)
  t.match(page.text, '<strong>Unverified client.</strong>')
  t.notMatch(page.text, /Unverified name|chose this name itself/, 'no name is shown')
})

t.test('consent: a client whose redirect URI was removed during the login gets no code', async (t) => {
  const rig = await startAuthServer(t)
  const registered = await jsonOf(await postRegistration(rig, { redirect_uris: [web] }))
  const clientId = String(registered['client_id'])
  const browser = new Browser()
  const page = await browser.open(start(rig, clientId, { redirect_uri: web }))
  await fetch(String(registered['registration_client_uri']), {
    method: 'PUT',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${String(registered['registration_access_token'])}`,
    },
    body: JSON.stringify({ client_id: clientId, redirect_uris: ['https://other.example/cb'] }),
  })
  const end = await browser.press(page, 'approve', web)
  t.equal(end.status, 401)
  t.match(end.text, /no longer registered/)
})

t.test('consent: refusing on the later page grants nothing', async (t) => {
  const { rig, become } = await startWithChangingPerson(t)
  const clientId = await registerClient(rig, { redirect_uris: [web] })
  const { browser } = await login(rig, { client_id: clientId, redirect_uri: web })
  become('bob')
  const page = await browser.open(start(rig, clientId, { redirect_uri: web }), web)
  const back = await browser.press(page, 'deny', web)
  t.equal(back.url.searchParams.get('error'), 'access_denied')
})

t.test('consent: pages in two tabs both work', async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig)
  const browser = new Browser()
  const one = await browser.open(start(rig, clientId, { state: 'one' }))
  const two = await browser.open(start(rig, clientId, { state: 'two' }))
  t.match((await browser.press(one, 'approve', redirectUri)).url.searchParams.get('code'), /^gh_ac_/)
  t.match((await browser.press(two, 'approve', redirectUri)).url.searchParams.get('code'), /^gh_ac_/)
})

t.test('consent: pages in two tabs both work when another site opened them', async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig)
  const browser = new Browser()
  /** A browser sends a Strict cookie only on navigation from the same site. */
  const fromElsewhere = async (state: string): Promise<Shown> => {
    const page = await new Browser().request(start(rig, clientId, { state }))
    const held = strict ? '' : [...browser.cookies(rig.issuer)].map((pair) => pair.join('=')).join('; ')
    const shown = await fetch(page.headers.get('location') ?? '', {
      headers: { cookie: held, accept: 'text/html' },
    })
    for (const line of shown.headers.getSetCookie()) {
      strict = /SameSite=Strict/.test(line)
      const [name = '', value = ''] = (line.split(';', 1)[0] ?? '').split('=', 2)
      browser.setCookie(rig.issuer, name, value)
    }
    return { url: new URL(shown.url), status: shown.status, headers: shown.headers, text: await shown.text() }
  }
  let strict = false
  const one = await fromElsewhere('one')
  await fromElsewhere('two')
  t.match((await browser.press(one, 'approve', redirectUri)).url.searchParams.get('code'), /^gh_ac_/)
})

t.test('consent: without the page, logins stay bound to the browser and the log has a warning', async (t) => {
  const rig = await startAuthServer(t, { config: { consent: false } })
  const clientId = await registerClient(rig)
  const browser = new Browser()
  const back = await browser.open(start(rig, clientId), redirectUri)
  t.match(back.url.searchParams.get('code'), /^gh_ac_/)
  t.ok(browser.cookies(rig.issuer).has('gh-as'))
  t.match(rig.logged(), /CONSENT IS DISABLED/)
})

t.test('consent: consent to one resource does not cover another, in any combination of scopes', async (t) => {
  const [a, b] = ['https://a.example/mcp', 'https://b.example/mcp']
  const rig = await startAuthServer(t, { config: { allowedAudiences: [a, b] } })
  const clientId = await registerClient(rig, { redirect_uris: [web] })
  const ask = (browser: Browser, resource: string, scope: string) =>
    browser.open(start(rig, clientId, { redirect_uri: web, resource, scope }), web)
  const { browser } = await login(rig, {
    client_id: clientId,
    redirect_uri: web,
    resource: a,
    scope: 'openid email',
  })
  await login(rig, { client_id: clientId, redirect_uri: web, resource: b, scope: 'openid' }, browser)
  t.match((await ask(browser, a, 'email')).url.searchParams.get('code'), /^gh_ac_/)
  t.match((await ask(browser, b, 'openid')).url.searchParams.get('code'), /^gh_ac_/)
  t.equal(
    (await ask(browser, b, 'openid email')).status,
    200,
    'consent for e-mail was for the other resource',
  )
})
