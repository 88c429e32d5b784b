/** Rotation of storage keys as users and operators see it: servers and hosts with new and old secrets. */
import { randomBytes } from 'node:crypto'
import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import { makeState } from '../../../../runtime/authserver/storage/state.ts'
import { resolveProxyConfig } from '../../../../runtime/config/index.ts'
import { makeCaller, silentLog } from '../../../../runtime/net/index.ts'
import { runProxy } from '../../../../runtime/proxy/index.ts'
import { makeMemoryStore } from '../../../../runtime/store/index.ts'
import { startVmcp } from '../../../../runtime/vmcp/index.ts'
import {
  listenFor,
  login,
  redeem,
  redirectUri,
  refresh,
  refusal,
  registerClient,
  type Rig,
  startAuthServer,
  tokenRequest,
  tokensOf,
} from '../../../helpers/authserver/authserver.ts'
import { Browser } from '../../../helpers/authserver/cookie-browser.ts'
import { freePort } from '../../../helpers/gatehouse.ts'
import { startLoopback } from '../../../helpers/loopback.ts'
import { upstream } from '../../../helpers/authserver/oauth2-peer.ts'
import { startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { until } from '../../../helpers/redis.ts'
import { vmcpConfig } from '../../../helpers/vmcp/vmcp.ts'

const [h1, h3] = [randomBytes(32), randomBytes(32)]

const minute = 60_000

interface Rotating {
  readonly rig: Rig
  /** Number of registrations that the provider received. */
  readonly registered: () => number
  rotate(...secrets: Uint8Array[]): Promise<void>
}

/** A server whose secrets the test can replace, with a provider where the server registers itself. */
async function startRotating(t: Test): Promise<Rotating> {
  let hmacSecrets: readonly Uint8Array[] = [h1]
  const peer = await startLoopback(({ path, query }) => {
    if (path === '/register') return { status: 201, body: { client_id: 'ours', client_secret: 'x' } }
    if (path === '/token')
      return {
        body: {
          access_token: 'at',
          refresh_token: 'rt',
          token_type: 'bearer',
          expires_in: 86_400,
          who: 'alice',
        },
      }
    const back = new URLSearchParams({ code: 'c', state: query.get('state') ?? '' })
    return { status: 302, headers: { location: `${query.get('redirect_uri')}?${back.toString()}` } }
  })
  t.teardown(() => peer.close())
  const rig = await startAuthServer(t, {
    config: { secrets: () => ({ signingKeys: [], hmacSecrets }) },
    reseal: { everyMs: 10, afterMs: 0 },
    upstreams: ({ issuer }) => [
      upstream(issuer, peer.url, {
        dcr: { registrationEndpoint: `${peer.url}/register` },
        identityFromToken: { subjectPath: 'who' },
      }),
    ],
  })
  return {
    rig,
    registered: () => peer.seen.filter(({ path }) => path === '/register').length,
    async rotate(...secrets) {
      hmacSecrets = secrets
      await rig.server.reload()
    },
  }
}

const counted = (rig: Rig): Promise<void> => until(() => rig.server.secretUses() !== undefined)

t.test('server: a client that was active during the rotation continues without interruption', async (t) => {
  const { rig, registered, rotate } = await startRotating(t)
  const browser = new Browser()
  const done = await login(rig, {}, browser)
  const first = await tokensOf(await redeem(rig, done))
  await rotate(h3, h1)
  const second = await tokensOf(await refresh(rig, done.clientId, first.refresh_token))
  await counted(rig)
  await rotate(h3)
  const third = await tokensOf(await refresh(rig, done.clientId, second.refresh_token))
  const claims = decodeJwt(third.access_token)
  const caller = makeCaller({ issuer: rig.issuer, subject: claims.sub ?? '', claims })
  t.match(await rig.server.upstreamTokens.get(caller), { accessToken: 'at' })
  t.equal((await browser.open(`${rig.issuer}/oauth/accounts`)).status, 200, 'the browser is still signed in')
  t.match((await login(rig, { client_id: done.clientId })).code, /^gh_ac_/)
  t.equal(registered(), 1, 'the server did not register again')
})

t.test(
  'server: records are not resealed before every replica has had time to get the new secret',
  async (t) => {
    let hmacSecrets: readonly Uint8Array[] = [h1]
    const store = makeMemoryStore()
    const rig = await startAuthServer(t, {
      store,
      config: { secrets: () => ({ signingKeys: [], hmacSecrets }) },
      reseal: { everyMs: 5, afterMs: 120_000 },
    })
    const clientId = await registerClient(rig)
    const known = async (...secrets: Uint8Array[]): Promise<boolean> =>
      (await makeState(store, () => secrets, { mayReseal: () => false }).clients.get(clientId)) !== undefined
    hmacSecrets = [h3, h1]
    await rig.server.reload()
    await login(rig, { client_id: clientId })
    t.ok(await known(h1), 'a replica with only the old secret can read it')
    rig.pass(120_000)
    await login(rig, { client_id: clientId })
    t.ok(await known(h3))
  },
)

t.test(
  'server: while replicas get a new secret one by one, each can read the records of the other replicas',
  async (t) => {
    let hmacSecrets: readonly Uint8Array[] = [h1]
    const rig = await startAuthServer(t, {
      config: { secrets: () => ({ signingKeys: [], hmacSecrets }) },
      reseal: { everyMs: 0, afterMs: 120_000 },
    })
    const registered = await registerClient(rig)
    const done = await login(rig, { client_id: registered })
    const first = await tokensOf(await redeem(rig, done))

    hmacSecrets = [h3, h1]
    const replica = await rig.replica()
    const updated = await listenFor(t, replica)
    const second = await tokensOf(await refresh(updated, registered, first.refresh_token))
    t.ok((await refresh(rig, registered, second.refresh_token)).ok, 'refreshed there, then here')
    const registeredThere = await registerClient(updated)
    t.match((await login(rig, { client_id: registeredThere })).code, /^gh_ac_/, 'registered there')
    const { code, verifier } = await login(rig, { client_id: registered })
    const parameters = {
      grant_type: 'authorization_code',
      code,
      code_verifier: verifier,
      client_id: registered,
    }
    t.ok((await tokenRequest(updated, { ...parameters, redirect_uri: redirectUri })).ok, 'a code made here')

    t.comment('two minutes later the new secret is in use, and a replica that starts then uses it at once')
    replica.pass(120_000)
    await replica.server.reload()
    const late = await listenFor(t, await rig.replica())
    for (const address of [updated, late]) {
      const clientId = await registerClient(address)
      const state = makeState(rig.store, () => [h3], { mayReseal: () => false })
      t.ok(await state.clients.get(clientId))
    }
  },
)

t.test('server: a new secret that first appears in second position', async (t) => {
  let hmacSecrets: readonly Uint8Array[] = [h1]
  const rig = await startAuthServer(t, {
    config: { secrets: () => ({ signingKeys: [], hmacSecrets }) },
    reseal: { everyMs: 0, afterMs: 120_000 },
  })
  const sealedBy = async (clientId: string, secret: Uint8Array): Promise<boolean> =>
    (await makeState(rig.store, () => [secret], { mayReseal: () => false }).clients.get(clientId)) !==
    undefined
  hmacSecrets = [h1, h3]
  const added = await rig.replica()
  t.ok(await sealedBy(await registerClient(await listenFor(t, added)), h1))
  hmacSecrets = [h3, h1]
  await added.server.reload()
  const between = await registerClient(await listenFor(t, added))
  t.ok(await sealedBy(between, h1), 'other replicas may still have the old current secret')
  t.equal(added.server.secretUses(), undefined, 'no report allows dropping a secret yet')
  added.pass(120_000)
  t.ok(await sealedBy(await registerClient(await listenFor(t, added)), h3))
})

t.test(
  'server: of unused records, only refresh tokens are lost, and they are counted until then',
  async (t) => {
    const { rig, registered, rotate } = await startRotating(t)
    const idle = await registerClient(rig)
    const browser = new Browser()
    const done = await login(rig, {}, browser)
    const first = await tokensOf(await redeem(rig, done))
    await rotate(h3, h1)
    t.equal(rig.server.secretUses(), undefined)
    await counted(rig)
    t.same(rig.server.secretUses(), [{ position: 1, records: 0, refreshTokens: 1 }])
    t.match(rig.logged(), /an old HMAC secret is still needed.*"records":0,"refreshTokens":1/)

    await rotate(h3)
    t.equal(await refusal(await refresh(rig, done.clientId, first.refresh_token)), '400 invalid_grant')
    t.match((await login(rig, { client_id: done.clientId }, browser)).code, /^gh_ac_/, 'the client is known')
    t.match((await login(rig, { client_id: idle })).code, /^gh_ac_/, 'and so is an unused client')
    t.equal((await browser.open(`${rig.issuer}/oauth/accounts`)).status, 200)
    t.equal(registered(), 1)
    t.same(rig.server.secretUses(), [])
  },
)

t.test('server: once the refresh token has been used, the old secret can be dropped', async (t) => {
  const { rig, rotate } = await startRotating(t)
  const done = await login(rig)
  const first = await tokensOf(await redeem(rig, done))
  await rotate(h3, h1)
  await counted(rig)
  await tokensOf(await refresh(rig, done.clientId, first.refresh_token))
  // A result is valid for ten minutes.
  rig.pass(11 * minute)
  await until(() => rig.server.secretUses()?.[0]?.refreshTokens === 0)
  t.match(rig.logged(), /an old HMAC secret is no longer needed.*hmacSecretRefs\[1\]/)
})

t.test('hosts: /readyz and the metrics report whether an old secret can be dropped', async (t) => {
  const { rig, rotate } = await startRotating(t)
  const done = await login(rig)
  await tokensOf(await redeem(rig, done))
  const backend = await startRawBackend()
  const authServer = { ...rig.server, config: rig.config }
  const oidc = { issuer: rig.issuer, audience: rig.resource, clientId: 'gateway', resource: rig.resource }
  const vmcp = await startVmcp(
    vmcpConfig(
      { one: backend.url },
      {
        incomingAuth: { type: 'oidc', oidc },
        telemetry: { enablePrometheusMetricsPath: true, metricsEnabled: false, tracingEnabled: false },
      },
    ),
    { port: 0, graceMs: 200, authServer },
  )
  const metricsPort = await freePort()
  const settings = {
    targetUri: new URL(backend.url).origin,
    oidcIssuer: rig.issuer,
    oidcAudience: rig.resource,
    resourceUrl: rig.resource,
    metricsPort: String(metricsPort),
  }
  const proxy = await runProxy(resolveProxyConfig('x', settings, {}), {
    log: silentLog,
    notify: () => {},
    authServer,
  })
  t.teardown(() => Promise.all([vmcp.close(), proxy.close({ graceMs: 0 }), backend.close()]))
  const notes = async (url: string): Promise<unknown> => {
    const body: unknown = await (await fetch(`${url}/readyz`)).json()
    return typeof body === 'object' && body !== null && 'notes' in body ? body.notes : undefined
  }
  const hosts = [vmcp.origin, proxy.url]
  for (const url of hosts) t.equal(await notes(url), undefined, 'with one secret there is no report')

  await rotate(h3, h1)
  await counted(rig)
  const needed = 'hmacSecretRefs[1] is still used by 0 stored records and 1 refresh tokens'
  for (const url of hosts) t.same(await notes(url), [needed])
  const scraped = async (url: string): Promise<string> => (await fetch(`${url}/metrics`)).text()
  const uses = /gatehouse_authserver_old_secret_uses\{[^}]*kind="refresh_tokens"[^}]*\} 1\b/
  t.match(await scraped(`http://127.0.0.1:${metricsPort}`), uses)
  await until(async () => uses.test(await scraped(vmcp.origin)))
})
