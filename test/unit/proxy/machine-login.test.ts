/** When the login without a user gets a new token: margin before expiry, failures, and pauses after failures. */
import t, { type Test } from 'tap'
import { resolveProxyConfig } from '../../../runtime/config/index.ts'
import { makeDispatcher, makeFetch, silentLog } from '../../../runtime/net/index.ts'
import { redactFields } from '../../../runtime/observe/redact.ts'
import { MachineLogin } from '../../../runtime/proxy/login/machine-login.ts'
import { startLoopback } from '../../helpers/loopback.ts'

const dispatcher = makeDispatcher()
const fetch = makeFetch()
t.teardown(() => Promise.all([dispatcher.destroy(), fetch.close()]))

interface TokenResponse {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

/** Creates a login at a token endpoint that responds with `next`, at a time that the test sets. */
async function makeLogin(t: Test, first: TokenResponse) {
  const state = { now: 1_800_000_000_000, next: first }
  const server = await startLoopback(() => state.next)
  t.teardown(() => server.close())
  const { remote } = resolveProxyConfig(
    'x',
    {
      targetUri: 'http://127.0.0.1:1',
      remoteAuth: true,
      remoteAuthGrant: 'client_credentials',
      remoteAuthClientId: 'job',
      remoteAuthClientSecret: 's3cret',
      remoteAuthTokenUrl: `${server.url}/token`,
    },
    {},
  )
  if (remote.kind !== 'oauth' || !remote.machineGrant) throw new Error('no login')
  const login = new MachineLogin({
    settings: { ...remote, machineGrant: remote.machineGrant },
    target: {
      origin: 'http://127.0.0.1:1',
      authority: '127.0.0.1:1',
      protocol: 'http:',
      query: '',
      loopback: true,
    },
    dispatcher,
    fetch,
    log: silentLog,
    signal: new AbortController().signal,
    now: () => state.now,
  })
  return { state, login, requests: () => server.seen.length }
}

const tokenOf = (name: string, lifeSec?: number): TokenResponse => ({
  body: { access_token: name, token_type: 'Bearer', ...(lifeSec && { expires_in: lifeSec }) },
})

await t.test('a token is renewed 30 s before it expires', async (t) => {
  const { state, login } = await makeLogin(t, tokenOf('first', 300))
  await login.start()
  const start = state.now
  t.equal(login.usableUntil, start + 270_000, 'workers renew at the same time')
  state.next = tokenOf('second', 300)
  state.now = start + 269_999
  t.match(login.token(), { value: 'first' })
  state.now = start + 270_000
  t.match(await login.token(), { value: 'second' })
})

await t.test('a token with a short lifetime is used for at least half of it', async (t) => {
  const { state, login } = await makeLogin(t, tokenOf('first', 20))
  await login.start()
  state.next = tokenOf('second', 20)
  state.now += 9_999
  t.match(login.token(), { value: 'first' })
  state.now += 1
  t.match(await login.token(), { value: 'second' })
})

await t.test('a token without an expiry is kept until the target rejects it', async (t) => {
  const { state, login } = await makeLogin(t, tokenOf('first'))
  await login.start()
  t.equal(login.usableUntil, undefined)
  state.now += 365 * 86_400_000
  t.match(login.token(), { value: 'first' })
  state.next = tokenOf('second')
  await login.refused({
    status: 401,
    challenge: undefined,
    url: 'http://127.0.0.1:1/mcp',
    usedToken: 'first',
  })
  t.match(login.token(), { value: 'second' })
})

await t.test('waiting callers share one request', async (t) => {
  const { state, login, requests } = await makeLogin(t, tokenOf('first', 60))
  await login.start()
  state.next = tokenOf('second', 60)
  state.now += 60_000
  for (const token of await Promise.all([login.token(), login.token(), login.token()]))
    t.match(token, { value: 'second' })
  t.equal(requests(), 2)
})

await t.test('a failed renewal leaves the token in use until it expires', async (t) => {
  for (const failure of [{ status: 503 }, { status: 400, body: { error: 'unauthorized_client' } }]) {
    const { state, login, requests } = await makeLogin(t, tokenOf('first', 300))
    await login.start()
    const start = state.now
    state.next = failure
    state.now = start + 280_000
    t.match(await login.token(), { value: 'first' })
    t.match(await login.token(), { value: 'first' })
    t.equal(requests(), 2, 'the second caller causes no request')
    state.now = start + 300_000
    await t.rejects(async () => login.token())
    state.next = tokenOf('second', 300)
    state.now += 10_000
    t.match(await login.token(), { value: 'second' })
  }
})

await t.test('failures are shared by all callers until the pause ends', async (t) => {
  const rows: readonly (readonly [string, TokenResponse, string, number])[] = [
    ['an outage', { status: 503 }, 'BACKEND_UNAVAILABLE', 1_000],
    ['Retry-After', { status: 429, headers: { 'retry-after': '20' } }, 'BACKEND_UNAVAILABLE', 20_000],
    [
      'a long Retry-After',
      { status: 503, headers: { 'retry-after': '9999' } },
      'BACKEND_UNAVAILABLE',
      60_000,
    ],
    ['a rejection', { status: 400, body: { error: 'unauthorized_client' } }, 'BACKEND_AUTH_FAILED', 10_000],
  ]
  for (const [name, response, code, pauseMs] of rows) {
    const { state, login, requests } = await makeLogin(t, response)
    await t.rejects(login.start(), { code }, name)
    await t.rejects(async () => login.token(), { code })
    state.now += pauseMs - 1
    await t.rejects(async () => login.token(), { code })
    t.equal(requests(), 1, `${name}: no request during the pause`)
    state.next = tokenOf('first', 300)
    state.now += 1
    t.match(await login.token(), { value: 'first' })
  }
})

await t.test('a secret that the server repeats is not reported', async (t) => {
  const body = { error: 'bad secret s3cret', error_description: 's3cret is wrong' }
  const { login } = await makeLogin(t, { status: 400, body })
  const error: unknown = await login.start().catch((reason: unknown) => reason)
  const report = JSON.stringify(redactFields({ err: error }))
  t.match(report, /bad secret ….*the server reports: … is wrong/)
  t.notMatch(report, /s3cret/)
})

await t.test('a token that replaced a rejected one is not replaced within 5 s', async (t) => {
  const { state, login, requests } = await makeLogin(t, tokenOf('first', 300))
  await login.start()
  const refuse = (token: string) =>
    login.refused({ status: 401, challenge: undefined, url: 'http://127.0.0.1:1/mcp', usedToken: token })
  state.next = tokenOf('second', 300)
  await refuse('first')
  await refuse('first')
  t.equal(requests(), 2, 'a late rejection of the old token causes no request')
  state.next = tokenOf('third', 300)
  state.now += 4_999
  await t.rejects(refuse('second'), { code: 'BACKEND_AUTH_FAILED', message: /rejects the access token/ })
  state.now += 1
  await refuse('second')
  t.match(login.token(), { value: 'third' })
})

await t.test('a login with a token handles only challenges about missing scopes', async (t) => {
  const { login } = await makeLogin(t, tokenOf('first', 300))
  t.equal(login.concerns(401, undefined), false, "an open target may reject the client's own request")
  await login.start()
  t.equal(login.concerns(401, undefined), true)
  t.equal(login.concerns(403, undefined), false)
})
