/**
 * A login whose renewal is rejected: the table of rejections decides whether it ends, and the endpoint is not called in
 * vain.
 */
import t from 'tap'
import { makeDispatcher, silentLog } from '../../../../runtime/net/index.ts'
import { makeReadiness } from '../../../../runtime/proxy/server/readiness.ts'
import { resolveProxyConfig } from '../../../../runtime/config/index.ts'
import { runProxy } from '../../../../runtime/proxy/index.ts'
import { startLoopback } from '../../../helpers/loopback.ts'
import { startKeptLogins } from '../../../helpers/proxy/kept-login.ts'
import { tokenRefusals } from '../../../helpers/outgoing/token-refusals.ts'

const target = {
  origin: 'http://127.0.0.1:1',
  authority: '',
  protocol: 'http:',
  query: '',
  loopback: true,
} as const
const dispatcher = makeDispatcher()
t.teardown(() => dispatcher.destroy())

for (const { name, response, refusal } of tokenRefusals) {
  const ends = refusal === 'grant' || refusal === 'request'

  await t.test(`an expired token, and ${name}: the login ${ends ? 'ends' : 'continues'}`, async (t) => {
    const kept = await startKeptLogins(() => response, {
      input: { remoteAuthClientId: 'c' },
    })
    t.teardown(() => kept.close())
    const login = kept.open()
    await login.start()
    kept.pass(3_600_000)
    const failure = { code: ends ? 'BACKEND_AUTH_FAILED' : 'BACKEND_UNAVAILABLE' }
    await t.rejects(async () => login.token(), failure)
    t.equal(kept.asked(), 1)
    await t.rejects(async () => login.token(), failure)
    if (refusal !== 'temporary') t.equal(kept.asked(), 1, 'no immediate second request')
    t.equal(kept.isKept(), !ends)
    const readiness = makeReadiness({ target, dispatcher, login })
    t.match(await readiness.notReady(), ends ? /sign in again/ : /temporarily unavailable/)
  })

  if (!ends) continue
  await t.test(`a token that the target rejects, and ${name}: readiness reports it`, async (t) => {
    const kept = await startKeptLogins(() => response, { input: { remoteAuthClientId: 'c' } })
    t.teardown(() => kept.close())
    const login = kept.open()
    await login.start()
    const refused = (): Promise<void> =>
      login.refused({ status: 401, challenge: undefined, url: 'http://127.0.0.1:1/mcp', usedToken: 'at-0' })
    await t.rejects(refused(), { code: 'BACKEND_AUTH_FAILED' })
    t.equal(login.concerns(401, undefined), true)
    await t.rejects(refused(), { code: 'BACKEND_AUTH_FAILED' }, 'another request that was in flight')
    const readiness = makeReadiness({ target, dispatcher, login })
    t.match(await readiness.notReady(), /the login to the target has ended/)
    t.equal(kept.asked(), 1, 'the revoked refresh token was sent once')
  })
}

await t.test('a token is used until it expires when its early renewal was rejected', async (t) => {
  const kept = await startKeptLogins(() => ({ status: 400, body: { error: 'bad_refresh_token' } }), {
    tokens: { expiresAt: 1_800_000_000_000 + 60_000 },
  })
  t.teardown(() => kept.close())
  const login = kept.open()
  await login.start()
  t.match(await login.token(), { value: 'at-0' })
  kept.pass(55_000)
  await t.rejects(async () => login.token(), { code: 'BACKEND_AUTH_FAILED' })
})

await t.test('an authorization server that is down at the start does not end the login', async (t) => {
  let response: { status?: number; body?: object } = { status: 503 }
  const kept = await startKeptLogins(() => response)
  t.teardown(() => kept.close())
  kept.pass(3_600_000)
  await t.rejects(kept.open().start())
  t.ok(kept.isKept())
  response = { body: { access_token: 'at-1', token_type: 'Bearer', expires_in: 60 } }
  const next = kept.open()
  await next.start()
  t.match(await next.token(), { value: 'at-1' })
})

await t.test('an error about guessed endpoints names a resource document that is not JSON', async (t) => {
  const target = await startLoopback(({ path }) => {
    if (path.startsWith('/.well-known/oauth-protected-resource'))
      return { headers: { 'content-type': 'text/html' }, body: '<p>welcome</p>' }
    return path === '/mcp' ? { status: 401, headers: { 'www-authenticate': 'Bearer' } } : { status: 404 }
  })
  const config = resolveProxyConfig(
    'x',
    { targetUri: target.url, remoteAuth: true, remoteAuthEphemeral: true, remoteAuthCallbackPort: '0' },
    {},
  )
  const proxy = await runProxy(config, { log: silentLog, notify: () => {} })
  t.teardown(() => Promise.all([proxy.close({ graceMs: 0 }), target.close()]))
  await t.rejects(proxy.ready, {
    message:
      /protected-resource document is not a JSON object \(content type: text\/html\) at http:\S+\/\.well-known/,
  })
})
