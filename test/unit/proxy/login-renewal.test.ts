/** A failed renewal of the login is retried in the background, at the pace that the environment sets. */
import t from 'tap'
import { resolveProxyConfig } from '../../../runtime/config/index.ts'
import { makeDispatcher, makeFetch, silentLog } from '../../../runtime/net/index.ts'
import { TargetLogin } from '../../../runtime/outgoing/login/login.ts'
import { waitAfterFailure } from '../../../runtime/outgoing/login/kept-login.ts'
import { startLoopback } from '../../helpers/loopback.ts'

function settingsOf(env: Record<string, string>) {
  const { remote, warnings } = resolveProxyConfig(
    'x',
    { targetUri: 'http://127.0.0.1:1', remoteAuth: true },
    env,
  )
  if (remote.kind !== 'oauth') throw new Error('no login')
  return { settings: remote, warnings }
}

await t.test('pace: waits double, then become a long interval, then end', async (t) => {
  const { pace } = settingsOf({}).settings
  const waits = [1, 2, 3, 4, 5, 6].map((failures) => waitAfterFailure(pace, failures, 0))
  t.same(waits, [10_000, 20_000, 40_000, 80_000, 600_000, 600_000])
  t.equal(waitAfterFailure(pace, 1, 300_000), 600_000, 'five minutes are over')
  t.equal(waitAfterFailure({ ...pace, maxTries: 20 }, 10, 0), 120_000, 'bounded')
  t.equal(waitAfterFailure(pace, 100, 86_400_000), undefined)
})

await t.test(
  'pace: every number is a setting, and an invalid value is reported and replaced by its default',
  async (t) => {
    const { settings, warnings } = settingsOf({
      GATEHOUSE_TOKEN_REFRESH_INITIAL_RETRY_INTERVAL: '1s',
      GATEHOUSE_TOKEN_REFRESH_MAX_RETRY_INTERVAL: '2s',
      GATEHOUSE_TOKEN_REFRESH_MAX_TRIES: '3',
      GATEHOUSE_TOKEN_REFRESH_MAX_ELAPSED_TIME: '4s',
      GATEHOUSE_TOKEN_AUTH_RETRYING_TICK_INTERVAL: '5s',
      GATEHOUSE_TOKEN_AUTH_RETRYING_MAX_ELAPSED: '6s',
    })
    t.same(settings.pace, {
      initialMs: 1_000,
      maxIntervalMs: 2_000,
      maxTries: 3,
      maxElapsedMs: 4_000,
      tickMs: 5_000,
      giveUpMs: 6_000,
    })
    t.same(warnings, [])
    const wrong = settingsOf({
      GATEHOUSE_TOKEN_REFRESH_MAX_TRIES: 'many',
      GATEHOUSE_TOKEN_REFRESH_MAX_ELAPSED_TIME: '0s',
    })
    t.same(wrong.settings.pace, settingsOf({}).settings.pace)
    t.match(
      wrong.warnings.join('\n'),
      /MAX_TRIES: must be a whole number.*\n.*MAX_ELAPSED_TIME: must be a duration/,
    )
  },
)

await t.test(
  'renewal: a token endpoint that is briefly unavailable is retried without any request',
  async (t) => {
    let asked = 0
    const renewed = Promise.withResolvers<unknown>()
    const idp = await startLoopback(() => {
      asked++
      if (asked < 3) return { status: 503 }
      return { body: { access_token: 'second', token_type: 'Bearer', expires_in: 3600 } }
    })
    const fetch = makeFetch({ maxRedirects: 0 })
    const dispatcher = makeDispatcher()
    const { settings } = settingsOf({ GATEHOUSE_TOKEN_REFRESH_INITIAL_RETRY_INTERVAL: '10ms' })
    const start = 1_800_000_000_000
    let looked = false
    const kept = {
      located: {
        server: { issuer: idp.url, token_endpoint: `${idp.url}/token` },
        issuer: idp.url,
        scopes: [],
      },
      client: { clientId: 'c' },
      tokens: { accessToken: 'first', refreshToken: 'r', expiresAt: start + 10_100 },
    }
    const stop = new AbortController()
    const login = new TargetLogin({
      settings,
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
      notify: () => t.fail('the user must not be notified'),
      open: async () => false,
      persisted: {
        read: () => kept,
        write: (_name, value) => renewed.resolve(value),
        remove: () => t.fail('the login is good'),
        exclusively: (_name, _signal, run) => run(),
      },
      needIdToken: false,
      signal: stop.signal,
      // Fresh at first; ten seconds later the renewal is due.
      now() {
        if (looked) return start + 10_000
        looked = true
        return start
      },
    })
    t.teardown(async () => {
      stop.abort()
      login.close()
      await Promise.all([fetch.close(), dispatcher.destroy(), idp.close()])
    })
    await login.start()
    t.match(await renewed.promise, { tokens: { accessToken: 'second' } })
    t.equal(asked, 3)
    t.match(await login.token(), { value: 'second' })
  },
)
