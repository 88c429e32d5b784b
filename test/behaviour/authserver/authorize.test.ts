/** The authorization endpoint rejects requests that cannot succeed, with the right error at the right place. */
import t from 'tap'
import {
  authorizeUrl,
  jsonOf,
  login,
  pkce,
  redirectUri,
  registerClient,
  type Rig,
  startAuthServer,
} from '../../helpers/authserver/authserver.ts'
import { Browser } from '../../helpers/authserver/cookie-browser.ts'

const { challenge } = pkce()

/** The error that the client receives, as `error description-start`. */
async function refusedWith(
  rig: Rig,
  parameters: Readonly<Record<string, string | undefined>>,
): Promise<URLSearchParams> {
  const clientId = parameters['client_id'] ?? (await registerClient(rig))
  const url = authorizeUrl(rig, { client_id: clientId, code_challenge: challenge, state: 's', ...parameters })
  const response = await fetch(url, { redirect: 'manual' })
  if (response.status !== 303) throw new Error(`${response.status} ${await response.text()}`)
  const location = new URL(response.headers.get('location') ?? '')
  if (!location.href.startsWith(redirectUri)) throw new Error(`went to ${location.pathname}`)
  return location.searchParams
}

t.test('authorize: errors for the client go to its redirect URI, with state and issuer', async (t) => {
  const rig = await startAuthServer(t)
  const cases: readonly (readonly [string, Record<string, string | undefined>, string])[] = [
    ['no response_type', { response_type: undefined }, 'invalid_request'],
    ['token', { response_type: 'token' }, 'unsupported_response_type'],
    ['code token', { response_type: 'code token' }, 'unsupported_response_type'],
    ['no challenge', { code_challenge: undefined }, 'invalid_request'],
    ['plain by default', { code_challenge_method: undefined }, 'invalid_request'],
    ['plain', { code_challenge_method: 'plain' }, 'invalid_request'],
    ['short challenge', { code_challenge: 'short' }, 'invalid_request'],
    ['padded challenge', { code_challenge: `${challenge.slice(0, 42)}=` }, 'invalid_request'],
    ['unregistered scope', { scope: 'openid email' }, 'invalid_scope'],
    ['foreign resource', { resource: 'https://elsewhere.example/mcp' }, 'invalid_target'],
    ['relative resource', { resource: '/mcp' }, 'invalid_target'],
    ['resource with fragment', { resource: `${rig.resource}#x` }, 'invalid_target'],
    ['request object', { request: 'eyJhbGciOiJub25lIn0.e30.' }, 'request_not_supported'],
    ['request_uri', { request_uri: 'https://evil.example/r' }, 'request_uri_not_supported'],
    ['registration', { registration: '{}' }, 'registration_not_supported'],
    ['fragment mode', { response_mode: 'fragment' }, 'unsupported_response_mode'],
    ['form_post mode', { response_mode: 'form_post' }, 'unsupported_response_mode'],
    ['unknown prompt', { prompt: 'create' }, 'invalid_request'],
    ['none with more', { prompt: 'none login' }, 'invalid_request'],
    ['bad max_age', { max_age: 'soon' }, 'invalid_request'],
    ['a nonce of control characters', { nonce: '\u0001' }, 'invalid_request'],
    ['a nonce beyond ASCII', { nonce: 'é' }, 'invalid_request'],
    ['a login hint of control characters', { login_hint: 'a\u0001' }, 'invalid_request'],
    ['a nonce that is kept for nothing', { nonce: 'n'.repeat(1025) }, 'invalid_request'],
  ]
  const clientId = await registerClient(rig, { scope: 'openid' })
  for (const [name, parameters, error] of cases) {
    const response = await refusedWith(rig, { client_id: clientId, ...parameters })
    t.equal(response.get('error'), error, name)
    t.equal(response.get('state'), 's')
    t.equal(response.get('iss'), rig.issuer)
    t.equal(response.get('code'), null)
    t.match(response.get('error_description'), /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/)
  }
})

t.test('authorize: repeated parameters are rejected, except resource', async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig)
  const base = authorizeUrl(rig, {
    client_id: clientId,
    code_challenge: challenge,
    state: 's',
    resource: rig.resource,
  })
  for (const name of ['scope', 'nonce', 'code_challenge', 'response_type', 'state', 'unheard_of']) {
    const url = new URL(base)
    url.searchParams.append(name, 'x')
    url.searchParams.append(name, 'y')
    const response = await fetch(url, { redirect: 'manual' })
    const location = new URL(response.headers.get('location') ?? '')
    t.equal(location.searchParams.get('error'), 'invalid_request', name)
    t.equal(location.searchParams.get('state'), name === 'state' ? null : 's')
  }
  for (const name of ['client_id', 'redirect_uri']) {
    const url = new URL(base)
    url.searchParams.append(name, url.searchParams.get(name) ?? '')
    const response = await fetch(url, { redirect: 'manual' })
    t.same([response.status, response.headers.get('location')], [400, null], name)
  }
  const twice = new URL(base)
  twice.searchParams.append('resource', rig.resource)
  const fine = await fetch(twice, { redirect: 'manual' })
  t.match(fine.headers.get('location'), /\/oauth\/consent\?request=/)
})

t.test('authorize: an unknown client or an unregistered redirect URI causes no redirect', async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig)
  const cases: readonly (readonly [Record<string, string | undefined>, number, string])[] = [
    [{ client_id: undefined }, 400, 'invalid_request'],
    [{ client_id: 'nobody' }, 401, 'invalid_client'],
    [{ client_id: 'https://client.example/metadata.json' }, 401, 'invalid_client'],
    [{ redirect_uri: 'https://evil.example/cb' }, 400, 'invalid_request'],
    [{ redirect_uri: `${redirectUri}/more` }, 400, 'invalid_request'],
    [{ redirect_uri: `${redirectUri}?x=1` }, 400, 'invalid_request'],
    [{ redirect_uri: redirectUri.toUpperCase() }, 400, 'invalid_request'],
    [{ redirect_uri: redirectUri.replace('127.0.0.1', 'localhost') }, 400, 'invalid_request'],
    [{ redirect_uri: undefined, scope: 'openid' }, 400, 'invalid_request'],
  ]
  for (const [parameters, status, error] of cases) {
    const url = authorizeUrl(rig, { client_id: clientId, code_challenge: challenge, ...parameters })
    const response = await fetch(url, { redirect: 'manual' })
    t.same([response.status, response.headers.get('location')], [status, null], JSON.stringify(parameters))
    t.match(await jsonOf(response), { error })
    const page = await new Browser().open(url)
    t.equal(page.status, status)
    t.match(page.headers.get('content-type'), /text\/html/)
    t.match(page.text, /Sign-in is not possible/)
    t.match(page.headers.get('content-security-policy'), /frame-ancestors 'none'/)
    t.equal(page.headers.get('cache-control'), 'no-store')
    t.equal(page.headers.get('referrer-policy'), 'no-referrer')
    t.equal(page.headers.get('x-frame-options'), 'DENY')
  }
})

t.test(
  'authorize: a loopback redirect may use any port, and the code is bound to the one used',
  async (t) => {
    const rig = await startAuthServer(t)
    const clientId = await registerClient(rig, { redirect_uris: ['http://127.0.0.1/callback'] })
    const used = 'http://127.0.0.1:50123/callback'
    const done = await login(rig, { client_id: clientId, redirect_uri: used })
    t.ok(done.response.href.startsWith(used))
    const body = {
      grant_type: 'authorization_code',
      code: done.code,
      code_verifier: done.verifier,
      client_id: clientId,
    }
    const other = await fetch(`${rig.issuer}/oauth/token`, {
      method: 'POST',
      body: new URLSearchParams({ ...body, redirect_uri: 'http://127.0.0.1:50124/callback' }),
    })
    t.match(await jsonOf(other), { error: 'invalid_grant' })
  },
)

t.test('authorize: a client with one redirect URI may omit it, here and at the token endpoint', async (t) => {
  const rig = await startAuthServer(t)
  const only = 'https://app.example.com/cb?keep=1'
  const clientId = await registerClient(rig, { redirect_uris: [only] })
  const { verifier, challenge } = pkce()
  const browser = new Browser()
  const url = authorizeUrl(rig, {
    client_id: clientId,
    redirect_uri: undefined,
    scope: 'email',
    code_challenge: challenge,
  })
  const page = await browser.open(url, only)
  const back = await browser.press(page, 'approve', only)
  t.equal(back.url.searchParams.get('keep'), '1', "the client's own query is kept")
  t.equal(back.url.searchParams.get('state'), null, 'no state in the request, none in the response')
  const body = {
    grant_type: 'authorization_code',
    code: back.url.searchParams.get('code') ?? '',
    code_verifier: verifier,
    client_id: clientId,
  }
  const response = await fetch(`${rig.issuer}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams(body),
  })
  t.match(await jsonOf(response), { token_type: 'Bearer', scope: 'email' })
})

t.test('authorize: POST with a form works like GET', async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig)
  const url = authorizeUrl(rig, { client_id: clientId, code_challenge: challenge })
  const response = await fetch(`${rig.issuer}/oauth/authorize`, {
    method: 'POST',
    body: url.searchParams,
    redirect: 'manual',
  })
  t.equal(response.status, 303)
  t.match(response.headers.get('location'), /\/oauth\/consent\?request=/)
  const json = await fetch(`${rig.issuer}/oauth/authorize`, {
    method: 'POST',
    body: '{}',
    redirect: 'manual',
  })
  t.equal(json.status, 400)
})

t.test(
  'authorize: an upper-case scheme or host and a trailing slash in a resource are tolerated',
  async (t) => {
    const rig = await startAuthServer(t, {
      config: { allowedAudiences: ['https://mcp.example.com', 'https://mcp.example.com/a'] },
    })
    const clientId = await registerClient(rig)
    for (const resource of [
      'HTTPS://MCP.example.COM',
      'https://mcp.example.com/',
      'https://mcp.example.com:443/a/',
    ]) {
      const done = await login(rig, { client_id: clientId, resource })
      t.match(done.code, /^gh_ac_/, resource)
    }
  },
)

t.test('authorize: the number of pending logins is bounded', async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig)
  const state = 's'.repeat(4096)
  const fine = await login(rig, { client_id: clientId, state })
  t.equal(fine.response.searchParams.get('state'), state)
  for (const bad of [`${state}s`, '\u0001', 'é', '\u007f']) {
    const response = await refusedWith(rig, { client_id: clientId, state: bad })
    t.equal(response.get('error'), 'invalid_request')
    t.equal(response.get('state'), bad, 'the state is returned')
  }
})
