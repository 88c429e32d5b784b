/** The console's login: the users that it admits, its identity and lifetime, and its rejections. */
import t from 'tap'
import { Browser } from '../helpers/console/console.ts'
import { startLoginRig } from '../helpers/console/login.ts'
import { openSession } from '../helpers/mcp/wire.ts'
import { until } from '../helpers/redis.ts'

t.test('a login returns to the requested page, with a cookie that scripts cannot read', async (t) => {
  const rig = await startLoginRig({ groups: ['viewers'] })
  t.teardown(() => rig.close())
  const browser = new Browser(rig.console.url)
  t.match((await browser.api('me')).json, { status: 401, code: 'UNAUTHENTICATED' })
  const end = await browser.go('login?to=/calls')
  t.equal(end.url, `${rig.console.url}calls`)
  const me = await browser.api('me')
  t.match(me.json, {
    user: { sub: 'alice', name: 'Alice' },
    roles: ['viewer'],
    anonymous: false,
    freshLogin: true,
  })
  t.notMatch(me.text, /planted-client-secret|eyJ/, 'no token reaches the browser')
  for (const to of ['//evil.example', '/\\evil.example', 'https://evil.example', '/x\\..', 'evil']) {
    const elsewhere = await new Browser(rig.console.url).go(`login?to=${encodeURIComponent(to)}`)
    t.equal(elsewhere.url, rig.console.url, `${to} leads to the home page`)
  }
  const begin = await fetch(`${rig.console.url}login`, { redirect: 'manual' })
  t.match(begin.headers.getSetCookie()[0], /HttpOnly; SameSite=Lax/)
  t.match(begin.headers.get('location'), /code_challenge_method=S256/)
})

t.test('roles: each API path with no login, no role and each role', async (t) => {
  const expected: Readonly<Record<string, readonly string[]>> = {
    'GET me': ['none', 'viewer', 'operator', 'auditor'],
    'GET connect': ['none', 'viewer', 'operator', 'auditor'],
    'GET tools': ['none', 'viewer', 'operator', 'auditor'],
    'GET calls': ['none', 'viewer', 'operator', 'auditor'],
    'GET sessions': ['none', 'viewer', 'operator', 'auditor'],
    'GET overview': ['viewer', 'operator', 'auditor'],
    'GET backends': ['viewer', 'operator', 'auditor'],
    'GET policies': ['operator', 'auditor'],
    'GET config': ['operator'],
    'POST backends/nothing/recheck': ['operator'],
  }
  for (const role of ['none', 'viewer', 'operator', 'auditor']) {
    const rig = await startLoginRig({ groups: role === 'none' ? [] : [`${role}s`] })
    const browser = await rig.signIn()
    const csrf = String((await browser.api('me')).json['csrf'])
    const visitor = new Browser(rig.console.url)
    for (const [row, roles] of Object.entries(expected)) {
      const [method = '', path = ''] = row.split(' ')
      const init = {
        method,
        headers: { 'x-gatehouse-csrf': csrf },
        ...(method === 'POST' ? { body: {} } : {}),
      }
      const { status } = await browser.api(path, init)
      t.equal(status === 403, !roles.includes(role), `${row} as ${role}: ${status}`)
      t.equal((await visitor.api(path, init)).status, 401, `${row} without a login`)
    }
    t.equal(
      (await visitor.api('no/such/path')).status,
      401,
      'visitors who are not signed in do not learn what exists',
    )
    await rig.close()
  }
})

t.test('a redirect that this browser did not request signs no user in', async (t) => {
  const rig = await startLoginRig({ groups: ['operators'] })
  t.teardown(() => rig.close())
  const attacker = new Browser(rig.console.url)
  const begin = await fetch(`${rig.console.url}login`, { redirect: 'manual' })
  const state = new URL(begin.headers.get('location') ?? '').searchParams.get('state') ?? ''
  const forged = await attacker.go(`callback?code=stolen&state=${state}`)
  t.equal(forged.status, 400)
  t.match(await forged.text(), 'started in another browser')
  t.equal((await attacker.api('me')).status, 401)
})

t.test('writes require the CSRF value, the origin and a page of the same site', async (t) => {
  const rig = await startLoginRig({ groups: ['operators'] })
  t.teardown(() => rig.close())
  const browser = await rig.signIn()
  const csrf = String((await browser.api('me')).json['csrf'])
  const write = (headers: Record<string, string>) =>
    browser.api('backends/nothing/recheck', { method: 'POST', body: {}, headers })
  t.equal((await write({ 'x-gatehouse-csrf': csrf })).status, 404, 'the right browser succeeds')
  t.match((await write({})).json, { status: 403, code: 'CSRF_REFUSED' })
  t.match((await write({ 'x-gatehouse-csrf': 'x'.repeat(csrf.length) })).json, { code: 'CSRF_REFUSED' })
  t.equal((await write({ 'x-gatehouse-csrf': csrf, origin: 'https://evil.example' })).status, 403)
  t.equal((await write({ 'x-gatehouse-csrf': csrf, 'sec-fetch-site': 'cross-site' })).status, 403)
})

t.test(
  'a login ends by logout, after 30 minutes without use and after 8 hours, and actions require a recent one',
  async (t) => {
    let ahead = 0
    const rig = await startLoginRig({ groups: ['operators'], now: () => Date.now() + ahead })
    t.teardown(() => rig.close())
    const browser = await rig.signIn()
    const headers = { 'x-gatehouse-csrf': String((await browser.api('me')).json['csrf']) }
    ahead = 16 * 60_000
    t.match((await browser.api('me')).json, { freshLogin: false })
    const old = await browser.api('backends/nothing/recheck', { method: 'POST', body: {}, headers })
    t.match(old.json, { status: 403, code: 'LOGIN_TOO_OLD' })
    ahead += 31 * 60_000
    t.equal((await browser.api('me')).status, 401, 'idle')
    ahead = 0
    const other = await rig.signIn()
    for (ahead = 0; ahead < 8 * 60 * 60_000; ahead += 29 * 60_000)
      if ((await other.api('me')).status !== 200) t.fail('it is in use')
    ahead = 8 * 60 * 60_000 + 60_000
    t.equal((await other.api('me')).status, 401, 'absolute')
    ahead = 0
    const third = await rig.signIn()
    const value = { 'x-gatehouse-csrf': String((await third.api('me')).json['csrf']) }
    t.equal((await third.api('/logout', { method: 'POST' })).status, 403)
    t.match((await third.api('/logout', { method: 'POST', headers: value })).json, { location: /^http/ })
    t.equal((await third.api('me')).status, 401)
  },
)

t.test("other users cannot see, end or follow a user's calls and sessions", async (t) => {
  const rig = await startLoginRig({ groups: [] })
  t.teardown(() => rig.close())
  const browser = await rig.signIn()
  const session = await openSession(rig.console.vmcp.url)
  await session.request('tools/list')
  const [others] = rig.console.vmcp.view.sessions()
  t.ok(others, 'another caller has a session')
  t.same((await browser.api('calls')).json['items'], [])
  t.same((await browser.api('sessions')).json['items'], [])
  const headers = { 'x-gatehouse-csrf': String((await browser.api('me')).json['csrf']) }
  const taken = await browser.api(`sessions/${others?.hash}`, { method: 'DELETE', headers })
  t.equal(taken.status, 404, 'reported as an unknown session')
  t.equal((await session.request('ping')).status, 200, 'the session continues')
  t.equal((await browser.api('sessions/000000000000', { method: 'DELETE', headers })).status, 404)
  t.equal((await browser.api('tries/00000000-0000-0000-0000-000000000000/events')).status, 404)
})

t.test('a login that is too old, or of unknown age, is renewed by signing in again', async (t) => {
  const rig = await startLoginRig({ groups: ['operators'], authTime: false })
  t.teardown(() => rig.close())
  const browser = await rig.signIn()
  const recheck = async () => {
    const headers = { 'x-gatehouse-csrf': String((await browser.api('me')).json['csrf']) }
    return browser.api('backends/nothing/recheck', { method: 'POST', headers })
  }
  t.match((await browser.api('me')).json, { freshLogin: false }, 'the issuer may have prompted long ago')
  t.match((await recheck()).json, { code: 'LOGIN_TOO_OLD' })
  await browser.go('login?to=/')
  t.match((await recheck()).json, { code: 'LOGIN_TOO_OLD' }, 'a silent login keeps its age')
  await browser.go('login?to=/&again=true')
  t.match((await browser.api('me')).json, { freshLogin: true })
  t.match((await recheck()).json, { code: 'NOT_FOUND' }, 'it goes through')
})

t.test('streams are limited over all visitors, so that no visitor can use them up', async (t) => {
  let logins = 0
  const rig = await startLoginRig({ groups: [], provider: { nextAccount: () => `user-${logins}` } })
  t.teardown(() => rig.close())
  const open = []
  for (; logins < 4; logins++) {
    const browser = await rig.signIn()
    t.match((await browser.api('me')).json, { user: { sub: `user-${logins}` } })
    for (let i = 0; i < 8; i++) open.push(await browser.events('stream'))
    t.match((await browser.api('stream')).json, { code: 'TOO_MANY_STREAMS' }, 'the limit of one visitor')
  }
  t.same(new Set(open.map(({ status }) => status)), new Set([200]))
  const fifth = await rig.signIn()
  const refused = await fifth.api('stream')
  t.match(refused, { status: 503, json: { code: 'TOO_MANY_STREAMS' } }, 'the limit of all visitors: 32')
  t.equal(refused.headers.get('retry-after'), '10')
  open[0]?.close()
  await until(async () => {
    const stream = await fifth.events('stream')
    stream.close()
    return stream.status === 200
  })
  for (const stream of open) stream.close()
})

t.test('the event stream ends with the login that opened it', async (t) => {
  const rig = await startLoginRig({ groups: ['viewers'] })
  t.teardown(() => rig.close())
  const [browser, other] = [await rig.signIn(), await rig.signIn()]
  const stream = await browser.events('stream')
  const kept = await other.events('stream')
  t.equal(stream.status, 200)
  const { csrf } = (await browser.api('me')).json as { csrf: string }
  t.equal(
    (await browser.api('/logout', { method: 'POST', headers: { 'x-gatehouse-csrf': csrf } })).status,
    200,
  )
  await stream.next('bye')
  t.equal((await browser.api('stream')).status, 401)
  t.equal((await other.api('me')).status, 200)
  kept.close()
})

t.test('a wrong client secret is reported as a configuration error, a denied login is not', async (t) => {
  const rig = await startLoginRig({ groups: ['viewers'], clientSecret: 'another-secret' })
  t.teardown(() => rig.close())
  const wrong = await new Browser(rig.console.url).go('login')
  t.equal(wrong.status, 502)
  t.match(await wrong.text(), /Check its address and the client settings/)
  for (const [error, status] of [
    ['access_denied', 403],
    ['login_required', 403],
    ['user_cancelled_login', 403],
    ['unauthorized_client', 502],
    ['invalid_scope', 502],
    ['invalid_request', 502],
    ['unsupported_response_type', 502],
    ['temporarily_unavailable', 502],
  ] as const) {
    const browser = new Browser(rig.console.url)
    const state = await browser.beginLogin()
    const query = new URLSearchParams({ error, state, iss: rig.provider.issuer })
    t.equal((await browser.go(`callback?${query.toString()}`)).status, status, error)
  }
})

t.test('a token endpoint that rejects the request is reported as a configuration error', async (t) => {
  for (const [name, respond, status] of [
    ['a bare 401', () => new Response(null, { status: 401 }), 502],
    ['a 400 without a code', () => new Response('<html>Bad request</html>', { status: 400 }), 502],
    ['invalid_scope', () => Response.json({ error: 'invalid_scope' }, { status: 400 }), 502],
    ['invalid_request', () => Response.json({ error: 'invalid_request' }, { status: 400 }), 502],
    ['invalid_grant', () => Response.json({ error: 'invalid_grant' }, { status: 400 }), 403],
    ['consent_required', () => Response.json({ error: 'consent_required' }, { status: 400 }), 403],
  ] as const) {
    const rig = await startLoginRig({ groups: ['viewers'], tokenResponse: respond })
    const end = await new Browser(rig.console.url).go('login')
    t.equal(end.status, status, name)
    t.match(await end.text(), status === 403 ? /rejected the login/ : /the client settings/, name)
    await rig.close()
  }
})
