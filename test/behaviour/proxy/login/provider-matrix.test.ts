/**
 * `gatehouse proxy --remote-auth` at each identity provider: login, a call, renewal of an expired token, a temporary
 * failure, and a revoked login.
 */
import { mkdtempSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { resolveProxyConfig } from '../../../../runtime/config/index.ts'
import { runProxy } from '../../../../runtime/proxy/index.ts'
import { keepingLog } from '../../../helpers/authserver/authserver.ts'
import { providerProfiles } from '../../../helpers/oauth/providers/profiles.ts'
import { type FakeProvider, startProvider } from '../../../helpers/oauth/providers/provider.ts'
import { type ProtectedTarget, startTarget } from '../../../helpers/oauth/providers/target.ts'
import { json, rpc } from '../../../helpers/proxy/rig.ts'

t.setTimeout(120_000)

interface Running {
  call(): Promise<Response>
  /** Complete log output. */
  logged(): string
  close(): Promise<void>
}

/** Starts the proxy. The browser completes every login that the proxy begins. */
async function start(provider: FakeProvider, target: ProtectedTarget, dir: string): Promise<Running> {
  const { log, text } = keepingLog()
  const config = resolveProxyConfig(
    'demo',
    {
      targetUri: target.url,
      remoteAuth: true,
      remoteAuthCallbackPort: '0',
      remoteAuthSkipBrowser: true,
      ...provider.profile.proxy(provider),
    },
    { GATEHOUSE_STATE_DIR: dir },
  )
  const proxy = await runProxy(config, {
    log,
    notify(line) {
      const url = /https?:\/\/\S+/.exec(line)?.[0]
      if (url !== undefined) void fetch(url).then((page) => page.text())
    },
  })
  await proxy.ready.catch(async (error: unknown) => {
    await proxy.close({ graceMs: 0 })
    throw error
  })
  return {
    call: () => fetch(`${proxy.url}/mcp`, { method: 'POST', headers: json, body: rpc(1) }),
    logged: text,
    close: () => proxy.close({ graceMs: 0 }),
  }
}

async function messageOf(response: Response): Promise<string> {
  return `${response.status} ${await response.text()}`
}

for (const profile of Object.values(providerProfiles)) {
  await t.test(profile.id, async (t) => {
    const provider = await startProvider(profile)
    const target = await startTarget(provider, profile.id === 'okta' ? { scopes: ['read'] } : {})
    t.teardown(() => Promise.all([provider.close(), target.close()]))
    const dir = mkdtempSync(join(tmpdir(), 'matrix-'))
    const stored = (): number => readdirSync(dir).filter((file) => file.endsWith('.login')).length

    // The token expires within the renewal margin of the proxy, so the first call renews it.
    provider.lifeSec = 5
    const first = await start(provider, target, dir)
    provider.lifeSec = profile.lifeSec
    t.match(await messageOf(await first.call()), /^200 .*done/, 'a call after the token has expired')
    t.equal(provider.refreshes, 1)
    t.match(await messageOf(await first.call()), /^200 .*done/, 'a call')
    await first.close()

    const second = await start(provider, target, dir)
    provider.expire()
    provider.outage = profile.outage
    const unavailable = await second.call()
    t.match(await messageOf(unavailable), /^503 .*temporarily unavailable/, 'the provider has an outage')
    t.ok(Number(unavailable.headers.get('retry-after')) > 0)
    const before = stored()
    provider.outage = undefined
    t.match(await messageOf(await second.call()), /^200 .*done/, 'the outage is over')
    await second.close()

    const third = await start(provider, target, dir)
    provider.expire()
    provider.revoke()
    const asked = provider.refreshes
    t.match(
      await messageOf(await third.call()),
      /^502 .*has ended; restart the proxy/,
      'the login is revoked',
    )
    t.match(await messageOf(await third.call()), /^502 .*has ended; restart the proxy/)
    t.equal(provider.refreshes, asked + 1, 'the revoked token is sent once')
    t.ok(third.logged().includes(profile.revokedText), 'the log shows what the provider reports')
    t.equal(stored(), before - 1, 'the next start signs in again')
    await third.close()

    t.equal(provider.logins, 1)
    t.notOk(provider.hasReuse)
  })
}

await t.test('the resource document and the server differ in the slash after the host', async (t) => {
  for (const [profile, change] of [
    [providerProfiles.google, (issuer: string) => `${issuer}/`],
    [providerProfiles.auth0, (issuer: string) => issuer.slice(0, -1)],
  ] as const) {
    const provider = await startProvider(profile)
    const target = await startTarget(provider, { issuer: change(provider.issuer) })
    t.teardown(() => Promise.all([provider.close(), target.close()]))
    const proxy = await start(provider, target, mkdtempSync(join(tmpdir(), 'matrix-')))
    t.match(await messageOf(await proxy.call()), /^200 .*done/, profile.id)
    await proxy.close()
  }
})

await t.test('the metadata for all tenants is rejected, because its issuer is a template', async (t) => {
  const provider = await startProvider(providerProfiles.entra)
  const target = await startTarget(provider, { issuer: `${provider.api}/common/v2.0` })
  t.teardown(() => Promise.all([provider.close(), target.close()]))
  await t.rejects(start(provider, target, mkdtempSync(join(tmpdir(), 'matrix-'))), {
    code: 'BACKEND_AUTH_FAILED',
    message: /names another issuer/,
  })
  t.equal(provider.logins, 0)
})
