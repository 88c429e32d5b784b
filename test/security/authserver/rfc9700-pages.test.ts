/**
 * The attacks of RFC 9700 section 4 on pages and redirects, named by their section. docs/evidence/security.md lists the
 * defense against each.
 */
import t from 'tap'
import {
  authorizeUrl,
  pkce,
  redirectUri,
  registerClient,
  startAuthServer,
} from '../../helpers/authserver/authserver.ts'
import { Browser } from '../../helpers/authserver/cookie-browser.ts'

const web = 'https://app.example.com/cb'

t.test('RFC 9700 4.2: no page or redirect leaks its address by Referer', async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig)
  const browser = new Browser()
  const url = authorizeUrl(rig, { client_id: clientId, code_challenge: pkce().challenge })
  const first = await browser.request(url)
  const page = await browser.request(first.headers.get('location') ?? '')
  const shown = {
    url: new URL(page.url),
    status: page.status,
    headers: page.headers,
    text: await page.text(),
  }
  await browser.press(shown, 'approve', rig.provider.issuer)
  const callback = await browser.request(`${rig.issuer}/oauth/callback?state=x`)
  for (const response of [first, page, callback]) {
    t.equal(response.headers.get('referrer-policy'), 'no-referrer')
    t.equal(response.headers.get('cache-control'), 'no-store')
  }
})

t.test('RFC 9700 4.11: the server is not an open redirector', async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig)
  const evil = 'https://evil.example/'
  const tries = [
    `/oauth/authorize?client_id=nobody&redirect_uri=${evil}&response_type=code`,
    `/oauth/authorize?client_id=${clientId}&redirect_uri=${evil}&response_type=code&error=x`,
    `/oauth/authorize?redirect_uri=${evil}`,
    `/oauth/callback?redirect_uri=${evil}&state=x&code=y`,
    `/oauth/callback?error=access_denied&state=${evil}`,
    `/oauth/consent?request=${evil}`,
    `/oauth/confirm?request=${evil}&redirect_uri=${evil}`,
  ]
  for (const path of tries) {
    const response = await fetch(`${rig.issuer}${path}`, { redirect: 'manual' })
    t.ok(response.status >= 400, path)
    t.equal(response.headers.get('location'), null)
    t.notMatch(await response.text(), 'evil.example')
  }
  const browser = new Browser()
  const page = await browser.open(
    authorizeUrl(rig, { client_id: clientId, code_challenge: pkce().challenge }),
  )
  t.equal(page.status, 200, 'a page precedes the redirect')
})

t.test(
  'RFC 9700 4.11.2: a failing request of an untrusted client does not take the user to its site',
  async (t) => {
    const rig = await startAuthServer(t)
    const clientId = await registerClient(rig, { redirect_uris: [web, redirectUri], scope: 'openid' })
    const failing = authorizeUrl(rig, {
      client_id: clientId,
      redirect_uri: web,
      scope: 'email',
      code_challenge: pkce().challenge,
    })
    const person = await new Browser().open(failing, web)
    t.equal(person.status, 400)
    t.match(
      person.text,
      /<a href="https:\/\/app\.example\.com\/cb\?error=invalid_scope[^"]*" rel="noreferrer noopener">Go back to app\.example\.com</,
    )
    const program = await fetch(failing, { redirect: 'manual' })
    t.equal(program.status, 303, 'a client gets the redirect')
    const silent = new URL(failing)
    silent.searchParams.set('prompt', 'none')
    t.equal(
      (await new Browser().open(silent, web)).url.searchParams.get('error'),
      'invalid_scope',
      'and so does a silent request',
    )
    const local = authorizeUrl(rig, { client_id: clientId, scope: 'email', code_challenge: pkce().challenge })
    t.equal(
      (await new Browser().open(local, redirectUri)).url.searchParams.get('error'),
      'invalid_scope',
      'and a client on this machine',
    )
  },
)

t.test('RFC 9700 4.12: redirects use 303, so that a POST is never repeated elsewhere', async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig)
  const browser = new Browser()
  const url = authorizeUrl(rig, { client_id: clientId, code_challenge: pkce().challenge })
  t.equal((await browser.request(url)).status, 303)
  const byPost = await browser.request(`${rig.issuer}/oauth/authorize`, {
    method: 'POST',
    body: url.searchParams,
  })
  t.equal(byPost.status, 303)
  const page = await browser.open(byPost.headers.get('location') ?? '')
  const field = (name: string): string =>
    new RegExp(`name="${name}" value="([^"]*)"`).exec(page.text)?.[1] ?? ''
  const body = new URLSearchParams({ request: field('request'), form: field('form'), action: 'approve' })
  t.equal((await browser.request(`${rig.issuer}/oauth/consent`, { method: 'POST', body })).status, 303)
})

t.test('RFC 9700 4.16: no page can be framed', async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig)
  const browser = new Browser()
  const pages = [
    await browser.open(authorizeUrl(rig, { client_id: clientId, code_challenge: pkce().challenge })),
    await browser.open(`${rig.issuer}/oauth/authorize`),
    await browser.open(`${rig.issuer}/oauth/callback`),
  ]
  for (const page of pages) {
    t.equal(page.headers.get('x-frame-options'), 'DENY')
    t.match(page.headers.get('content-security-policy'), /frame-ancestors 'none'/)
  }
})

t.test('RFC 9700 4.17: there is no channel between windows to attack', async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig)
  for (const mode of ['web_message', 'form_post', 'fragment', 'query.jwt']) {
    const response = await fetch(
      authorizeUrl(rig, { client_id: clientId, response_mode: mode, code_challenge: pkce().challenge }),
      { redirect: 'manual' },
    )
    t.match(response.headers.get('location'), 'error=unsupported_response_mode')
  }
  const page = await new Browser().open(
    authorizeUrl(rig, { client_id: clientId, code_challenge: pkce().challenge }),
  )
  t.notMatch(page.text, /<script|postMessage/)
  t.match(page.headers.get('content-security-policy'), /^default-src 'none'; style-src 'sha256-/)
})
