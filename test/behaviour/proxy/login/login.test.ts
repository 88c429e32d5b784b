/** The proxy's own login to its target: detection, registration, code flow, renewal, step-up, stored logins. */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { offeredLogin, resolveProxyConfig } from '../../../../runtime/config/index.ts'
import { silentLog } from '../../../../runtime/net/index.ts'
import { runProxy } from '../../../../runtime/proxy/index.ts'
import { startLogin, startWorld } from '../../../helpers/proxy/login-rig.ts'
import { walk } from '../../../helpers/authserver/oidc-provider.ts'
import { startUpstream } from '../../../helpers/proxy/rig.ts'
import { proves } from '../../../helpers/proves.ts'

proves(
  '1.does.outgoing-auth',
  '1.does.detect-auth',
  '1.does.register',
  '1.scenario.outgoing',
  '1.rule.1',
  '1.rule.2',
  '1.rule.4',
  '1.flag.remote-auth',
  '1.flag.remote-auth-issuer',
  '1.flag.remote-auth-authorize-url',
  '1.flag.remote-auth-token-url',
  '1.flag.remote-auth-client-id',
  '1.flag.remote-auth-client-secret',
  '1.flag.remote-auth-client-secret-file',
  '1.flag.remote-auth-resource',
  '1.flag.remote-auth-scopes',
  '1.flag.remote-auth-scopes.default',
  '1.flag.remote-auth-scope-param-name',
  '1.flag.remote-auth-skip-browser',
  '1.flag.remote-auth-callback-port',
  '1.auth.outgoing.code-flow',
)

await t.test(
  'login: an issuer is sufficient: registration, PKCE, default scopes, token on every request',
  async (t) => {
    const world = await startWorld()
    const run = await startLogin(world, { remoteAuth: true, remoteAuthIssuer: world.idp.issuer })
    t.teardown(async () => {
      await run.proxy.close({ graceMs: 0 })
      await world.close()
    })
    const early = await run.call()
    t.equal(early.status, 503, 'the port is open before the login is complete')
    t.match(early.headers.get('retry-after'), /^\d+$/)
    const url = new URL(await run.loginUrl())
    t.equal(url.searchParams.get('scope'), 'openid profile email')
    t.equal(url.searchParams.get('code_challenge_method'), 'S256')
    t.equal(url.searchParams.get('resource'), world.target.url, 'the target URI by default')
    t.match(url.searchParams.get('redirect_uri'), /^http:\/\/localhost:\d+\/callback$/)
    const page = await run.browse()
    t.equal(page.status, 200)
    t.match(await page.text(), /You are signed in/)
    t.match(page.headers.get('content-security-policy'), /default-src 'none'/)
    t.equal(page.headers.get('cache-control'), 'no-store')
    await run.proxy.ready
    t.equal((await run.call()).status, 200)
    t.ok(world.idp.requests.includes('/reg'), 'a client was registered')
    t.match(run.lines, [/^Please open this URL in your browser: /, 'Waiting for OAuth callback'])
  },
)

await t.test("login: without an issuer, the target's metadata is used", async (t) => {
  const world = await startWorld()
  const run = await startLogin(world, { remoteAuth: true })
  t.teardown(async () => {
    await run.proxy.close({ graceMs: 0 })
    await world.close()
  })
  const url = new URL(await run.loginUrl())
  t.equal(url.searchParams.get('scope'), 'read offline_access')
  t.equal(url.searchParams.get('resource'), world.resource)
  await run.browse()
  await run.proxy.ready
  t.equal((await run.call()).status, 200)
  t.equal(world.target.seen.filter((seen) => seen.url === '/.well-known/oauth-protected-resource').length, 0)
})

await t.test(
  'login: with a client id, the proxy detects whether a login is required, and forwards plainly otherwise',
  async (t) => {
    const open = await startUpstream((seen, res) =>
      res.end(`open ${seen.headers.authorization ?? 'nothing'}`),
    )
    const world = await startWorld({
      clients: [
        {
          client_id: 'given',
          client_secret: 'shh',
          redirect_uris: ['http://localhost:18666/callback'],
          grant_types: ['authorization_code', 'refresh_token'],
        },
      ],
    })
    const run = await startLogin(
      world,
      { remoteAuthClientId: 'given', remoteAuthCallbackPort: '18666' },
      { GATEHOUSE_REMOTE_OAUTH_CLIENT_SECRET: 'shh' },
    )
    const plain = await startLogin({ ...world, target: open }, { remoteAuthClientId: 'given' })
    t.teardown(async () => {
      await run.proxy.close({ graceMs: 0 })
      await plain.proxy.close({ graceMs: 0 })
      await world.close()
      await open.close()
    })
    await plain.proxy.ready
    t.equal(await (await plain.call()).text(), 'open nothing')
    t.equal(new URL(await run.loginUrl()).searchParams.get('client_id'), 'given')
    await run.browse()
    await run.proxy.ready
    t.equal((await run.call()).status, 200)
    t.notOk(world.idp.requests.includes('/reg'))
  },
)

await t.test(
  'login: configured endpoints, resource, scopes and scope parameter are used unchanged',
  async (t) => {
    const world = await startWorld({
      clients: [
        {
          client_id: 'c',
          token_endpoint_auth_method: 'none',
          redirect_uris: ['http://localhost/callback'],
          application_type: 'native',
        },
      ],
    })
    const run = await startLogin(world, {
      remoteAuth: true,
      remoteAuthClientId: 'c',
      remoteAuthAuthorizeUrl: `${world.idp.issuer}/auth`,
      remoteAuthTokenUrl: `${world.idp.issuer}/token`,
      remoteAuthResource: 'https://api.example',
      remoteAuthScopes: ['read', 'write'],
      remoteAuthScopeParamName: 'user_scope',
    })
    t.teardown(async () => {
      await run.proxy.close({ graceMs: 0 })
      await world.close()
    })
    const url = new URL(await run.loginUrl())
    t.equal(url.searchParams.get('resource'), 'https://api.example')
    t.equal(url.searchParams.get('user_scope'), 'read write')
    t.equal(url.searchParams.get('scope'), null)
  },
)

await t.test('login: a foreign redirect does not end it, an error from the server does', async (t) => {
  const world = await startWorld()
  const run = await startLogin(world, { remoteAuth: true, remoteAuthIssuer: world.idp.issuer })
  t.teardown(async () => {
    await run.proxy.close({ graceMs: 0 })
    await world.close()
  })
  const url = new URL(await run.loginUrl())
  const callback = url.searchParams.get('redirect_uri') ?? ''
  for (const query of ['?code=x&state=wrong', '?error=access_denied', '?state=', '']) {
    const page = await fetch(callback + query)
    t.equal(page.status, 400)
    t.notMatch(await page.text(), /access_denied|wrong/)
  }
  t.equal((await fetch(callback, { method: 'POST' })).status, 405)
  t.equal((await fetch(new URL('/other', callback))).status, 200)
  const state = url.searchParams.get('state') ?? ''
  const denied = await fetch(
    `${callback}?error=access_denied&error_description=%3Cscript%3E&state=${state}&iss=${world.idp.issuer}`,
  )
  t.equal(denied.status, 400)
  t.notMatch(await denied.text(), /script|access_denied/)
  await t.rejects(run.proxy.ready, { code: 'BACKEND_AUTH_FAILED', message: /access_denied/ })
  const call = await run.call()
  t.equal(call.status, 502)
})

await t.test('login: a response from another issuer is rejected (RFC 9207)', async (t) => {
  const world = await startWorld()
  const run = await startLogin(world, { remoteAuth: true, remoteAuthIssuer: world.idp.issuer })
  t.teardown(async () => {
    await run.proxy.close({ graceMs: 0 })
    await world.close()
  })
  const back = await walk(await run.loginUrl(), 'http://localhost:')
  back.searchParams.set('iss', 'https://evil.example')
  t.equal((await fetch(back)).status, 400)
  await t.rejects(run.proxy.ready, { message: /another issuer/ })
  t.notOk(world.idp.requests.includes('/token'), 'the code was not sent anywhere')
})

await t.test('login: the time limit ends it', async (t) => {
  proves('1.flag.remote-auth-timeout', '1.limit.oauth-timeout')
  const world = await startWorld()
  const run = await startLogin(world, {
    remoteAuth: true,
    remoteAuthIssuer: world.idp.issuer,
    remoteAuthTimeout: '50ms',
  })
  t.teardown(async () => {
    await run.proxy.close({ graceMs: 0 })
    await world.close()
  })
  await t.rejects(run.proxy.ready, { message: /not completed within 0\.05s/ })
})

await t.test(
  'login: an expiring token is renewed once for all waiting requests, with rotation',
  async (t) => {
    const world = await startWorld({
      configuration: {
        ttl: {
          AccessToken: 5,
          RefreshToken: 86_400,
          Grant: 86_400,
          Session: 86_400,
          Interaction: 600,
          IdToken: 60,
        },
        rotateRefreshToken: true,
      },
    })
    const run = await startLogin(world, { remoteAuth: true })
    t.teardown(async () => {
      await run.proxy.close({ graceMs: 0 })
      await world.close()
    })
    await run.browse()
    await run.proxy.ready
    const before = world.idp.requests.filter((path) => path === '/token').length
    const responses = await Promise.all([run.call(), run.call(), run.call()])
    t.same(
      responses.map((response) => response.status),
      [200, 200, 200],
    )
    // Five seconds are less than the margin, so every wave of requests renews exactly once.
    t.equal(world.idp.requests.filter((path) => path === '/token').length, before + 1)
    t.equal((await run.call()).status, 200, 'the rotated refresh token works, too')
    t.equal(world.idp.requests.filter((path) => path === '/token').length, before + 2)
  },
)

await t.test(
  'login: a rejected token is renewed and the request repeated, and clients see no challenge',
  async (t) => {
    const world = await startWorld()
    const run = await startLogin(world, { remoteAuth: true })
    t.teardown(async () => {
      await run.proxy.close({ graceMs: 0 })
      await world.close()
    })
    await run.browse()
    await run.proxy.ready
    const first = await (await run.call()).text()
    world.response = { status: 401, challenge: 'Bearer error="invalid_token"' }
    const seen = world.target.seen.length
    const pending = run.call()
    while (world.target.seen.length < seen + 1) await new Promise((resolve) => setImmediate(resolve))
    world.response = undefined
    const response = await pending
    t.equal(response.status, 200)
    t.not(await response.text(), first, 'another token')

    world.response = { status: 403, challenge: 'Bearer error="nonsense"' }
    const forbidden = await run.call()
    t.equal(forbidden.status, 403)
    t.equal(forbidden.headers.get('www-authenticate'), null)
  },
)

await t.test(
  'login: more scopes are requested when the target requires them, and earlier ones are kept',
  async (t) => {
    const world = await startWorld()
    const run = await startLogin(world, { remoteAuth: true })
    t.teardown(async () => {
      await run.proxy.close({ graceMs: 0 })
      await world.close()
    })
    await run.browse()
    await run.proxy.ready
    world.response = { status: 403, challenge: 'Bearer error="insufficient_scope", scope="write"' }
    const pending = run.call()
    const url = new URL(await run.loginUrl(2))
    world.response = undefined
    t.equal(url.searchParams.get('scope'), 'read offline_access write')
    await run.browse(2)
    t.equal((await pending).status, 200)
  },
)

await t.test('login: after a failed optional login, requests are forwarded plainly', async (t) => {
  const target = await startUpstream((_seen, res) => {
    res.writeHead(401, { 'WWW-Authenticate': 'Bearer resource_metadata="http://127.0.0.1:1/x"' }).end()
  })
  const plain = resolveProxyConfig('demo', { targetUri: target.url }, {})
  const offered = offeredLogin(plain, { GATEHOUSE_STATE_DIR: mkdtempSync(join(tmpdir(), 'login-')) })
  if (!offered) throw new Error('nothing was offered')
  const proxy = await runProxy({ ...plain, remote: offered }, { log: silentLog, notify() {} })
  t.teardown(async () => {
    await proxy.close({ graceMs: 0 })
    await target.close()
  })
  await proxy.ready
  let response = await fetch(`${proxy.url}/mcp`)
  while (response.status === 503) response = await fetch(`${proxy.url}/mcp`)
  t.equal(response.status, 401)
  t.match(response.headers.get('www-authenticate'), /^Bearer/)
})
