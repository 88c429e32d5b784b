/**
 * The console's login with the real embedded authorization server: consent, upstream login, PKCE, roles by a claim of
 * the ID token.
 */
import t from 'tap'
import { makeFetch } from '../../runtime/net/index.ts'
import { registerClient, startAuthServer } from '../helpers/authserver/authserver.ts'
import { Browser } from '../helpers/authserver/cookie-browser.ts'
import { startTestConsole } from '../helpers/console/console.ts'
import { freePort } from '../helpers/gatehouse.ts'

t.test("a user who signs in gets the roles of the claims, and the server's identity", async (t) => {
  const rig = await startAuthServer(t)
  const port = await freePort()
  const home = `http://127.0.0.1:${port}`
  const clientId = await registerClient(rig, {
    client_name: 'Gatehouse console',
    redirect_uris: [`${home}/callback`],
    token_endpoint_auth_method: 'none',
    scope: 'openid profile email',
  })
  const settings = {
    roles: [
      { role: 'operator' as const, claim: 'email', values: ['alice@example.test'] },
      { role: 'auditor' as const, claim: 'email', values: ['somebody@example.test'] },
    ],
  }
  const console = await startTestConsole(
    {},
    {},
    {
      login: {
        port,
        access: {
          type: 'oidc',
          issuer: rig.issuer,
          clientId,
          clientSecret: undefined,
          scopes: ['openid', 'profile', 'email'],
          roles: () => settings,
          fetch: makeFetch({ guard: 'any' }),
        },
      },
    },
  )
  t.teardown(() => console.close())
  const browser = new Browser()
  const me = async (): Promise<Record<string, unknown>> =>
    (await (await browser.request(`${home}/api/v1/me`)).json()) as Record<string, unknown>
  t.match(await me(), { code: 'UNAUTHENTICATED' })

  const consent = await browser.open(`${home}/login?to=/connect`, `${home}/connect`)
  t.equal(consent.url.origin, new URL(rig.issuer).origin, 'the user is asked there')
  t.match(consent.text, /Gatehouse console/)
  const asked = browser.visited
    .map((url) => new URL(url))
    .find((url) => url.searchParams.has('code_challenge'))
  t.equal(asked?.searchParams.get('code_challenge_method'), 'S256')
  const landed = await browser.press(consent, 'approve', `${home}/connect`)
  t.equal(landed.url.href, `${home}/connect`, landed.text.slice(0, 200))

  const signedIn = await me()
  t.match(signedIn, { user: { name: 'Alice Example' }, roles: ['operator'], freshLogin: true })
  t.notMatch(JSON.stringify(signedIn), /eyJ/, 'no token reaches the browser')
  const csrf = String(signedIn['csrf'])
  const logout = await browser.request(`${home}/logout`, {
    method: 'POST',
    headers: { origin: home, 'x-gatehouse-csrf': csrf },
  })
  t.equal(logout.status, 200)
  t.match(await me(), { code: 'UNAUTHENTICATED' })

  const other = new Browser()
  const page = await other.open(`${home}/login`, `${home}/calls`)
  const denied = await other.press(page, 'deny')
  t.match(denied.text, /The identity provider rejected the login/)
  t.equal((await other.request(`${home}/api/v1/me`)).status, 401)
})
