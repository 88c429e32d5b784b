/** Response headers: cookies have every flag over https, and untrusted input appears nowhere. */
import t from 'tap'
import {
  authorizeUrl,
  corp,
  jsonOf,
  pkce,
  redirectUri,
  startAuthServer,
  postRegistration,
} from '../../helpers/authserver/authserver.ts'
import { Browser } from '../../helpers/authserver/cookie-browser.ts'

const issuer = 'https://gateway.example'

/** A server with an https issuer, as behind a proxy that terminates TLS. The test connects to its HTTP address. */
async function behindTls(t: Parameters<typeof startAuthServer>[0]) {
  const rig = await startAuthServer(t, {
    config: { issuer, allowedAudiences: [`${issuer}/mcp`] },
    upstreams: ({ provider }) => [corp(issuer, provider)],
  })
  const here = (url: string | URL): string => String(url).replace(issuer, rig.issuer)
  const registered = await postRegistration(rig, { redirect_uris: [redirectUri] })
  const clientId = String((await jsonOf(registered))['client_id'])
  const begun = await fetch(authorizeUrl(rig, { client_id: clientId, code_challenge: pkce().challenge }), {
    redirect: 'manual',
  })
  return { rig, here, clientId, consent: here(begun.headers.get('location') ?? '') }
}

t.test('cookies: over https they are host-only, secure, and inaccessible to scripts', async (t) => {
  const { here, consent } = await behindTls(t)
  const page = await fetch(consent, { headers: { accept: 'text/html' } })
  const [form = ''] = page.headers.getSetCookie()
  t.match(form, /^__Host-gh-form=[\w-]{22}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600; Secure$/)
  const text = await page.text()
  const field = (name: string): string => new RegExp(`name="${name}" value="([^"]*)"`).exec(text)?.[1] ?? ''
  t.match(text, `action="${issuer}/oauth/consent"`)
  const response = (cookie: string): Promise<Response> =>
    fetch(here(`${issuer}/oauth/consent`), {
      method: 'POST',
      redirect: 'manual',
      body: new URLSearchParams({ request: field('request'), form: field('form'), action: 'approve' }),
      headers: { cookie, origin: issuer },
    })
  const value = form.slice(form.indexOf('=') + 1, form.indexOf(';'))
  t.equal(
    (await response(`gh-form=${value}`)).status,
    403,
    'another host of the site could set a cookie without the prefix',
  )
  t.equal(
    (await response(`__Host-gh-form=${value}; __Host-gh-form=${value}`)).status,
    403,
    'a duplicate cookie is ignored',
  )
  const approved = await response(`__Host-gh-form=${value}`)
  t.equal(approved.status, 303)
  const [binding = '', ...more] = approved.headers.getSetCookie()
  t.match(
    binding,
    /^__Host-gh-as=[\w-]{43}\.[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=3600; Secure$/,
  )
  t.same(more, [])
  const back = new URL(approved.headers.get('location') ?? '').searchParams
  const callback = (cookie: string): Promise<Response> =>
    fetch(here(`${issuer}/oauth/callback?code=x&state=${back.get('state')}`), {
      redirect: 'manual',
      headers: { cookie },
    })
  const bound = binding.slice('__Host-gh-as='.length, binding.indexOf(';'))
  t.equal((await callback(`gh-as=${bound}`)).status, 403, 'the cookie without the prefix is ignored')
})

t.test('headers: input from an untrusted client breaks no header', async (t) => {
  const rig = await startAuthServer(t)
  const evil = '\r\nSet-Cookie: planted=1\r\n\r\n<script>'
  const register = (metadata: object): Promise<Response> =>
    postRegistration(rig, { redirect_uris: [redirectUri], ...metadata })
  for (const metadata of [
    { client_name: `a${evil}` },
    { client_uri: `https://a.example/${evil}` },
    { software_id: evil },
    { redirect_uris: [`https://a.example/cb${evil}`] },
    { redirect_uris: ['https://a.example/cb\t'] },
    { redirect_uris: [`com.example.app:/cb${evil}`] },
  ]) {
    t.equal((await register(metadata)).status, 400, JSON.stringify(metadata))
  }
  const clientId = String((await jsonOf(await register({})))['client_id'])
  for (const change of [
    { state: evil },
    { scope: evil },
    { prompt: evil },
    { response_type: evil },
    { resource: evil },
  ]) {
    const url = authorizeUrl(rig, {
      client_id: clientId,
      code_challenge: pkce().challenge,
      state: evil,
      prompt: 'none',
      ...change,
    })
    const response = await fetch(url, { redirect: 'manual' })
    const location = response.headers.get('location') ?? ''
    t.notOk(response.headers.getSetCookie().some((line) => line.startsWith('planted')))
    t.match(location, /^http/)
    t.notMatch(location, /[\r\n<>]/)
  }
  const browser = new Browser()
  for (const path of ['callback?state=', 'consent?request=', 'confirm?request=', 'accounts?problem=']) {
    const page = await browser.open(`${rig.issuer}/oauth/${path}${encodeURIComponent(evil)}`)
    t.notMatch(page.text, /<script>|planted/, path)
    t.notMatch([...page.headers].join(), 'planted')
  }
})
