/**
 * End-to-end test of `gatehouse vmcp serve` with its embedded authorization server. Stock MCP clients (both SDK
 * generations and the Inspector), registered and described, connect to it. A user in a real Chromium signs in at real
 * OpenID providers.
 */
import { createServer } from 'node:https'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import type { Browser } from 'playwright-core'
import t, { type Test } from 'tap'
import { freePort } from '../../helpers/gatehouse.ts'
import {
  authServerFile,
  type Gateway,
  makeKeys,
  newKey,
  oidcOf,
  publishedKeys,
  startBackend,
  startFormProvider,
  startGateway,
} from '../../helpers/authserver/hosted.ts'
import { connectInspector } from '../../helpers/mcp/inspector-client.ts'
import { proves } from '../../helpers/proves.ts'
import { type Certificates, makeCertificates, missingRedisTls, startRedis } from '../../helpers/redis.ts'
import {
  connectSignedIn,
  storingProvider,
  missingBrowser,
  openBrowser,
  type SignedInClient,
  signIn,
  startLanding,
  type WorkingClient,
} from '../../helpers/authserver/signed-in-client.ts'

proves(
  '2.auth.embeddedAuthServer',
  '2.auth.upstreamInject',
  '3.endpoint.authserver',
  '3.endpoint.protected-resource',
  '3.spec.authServerConfig',
)

const hour = 3_600_000
const skip = missingBrowser || missingRedisTls
t.setTimeout(500_000)

interface Rig {
  readonly url: string
  readonly origin: string
  readonly gateway: Gateway
  readonly providers: Readonly<Record<'corp' | 'code', Awaited<ReturnType<typeof startFormProvider>>>>
  readonly backends: Readonly<Record<'corp' | 'code', Awaited<ReturnType<typeof startBackend>>>>
  readonly keys: ReturnType<typeof makeKeys>
  readonly certificates: Certificates
  /** The audit log. */
  readonly audited: () => string
}

/** Starts two providers, and one backend of each provider behind the gateway. */
async function start(t: Test): Promise<Rig> {
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const certificates = makeCertificates()
  t.teardown(() => certificates.remove())
  const redis = await startRedis({ auth: { password: 'redis-password' } })
  t.teardown(() => redis.stop())
  const providers = {
    corp: await startFormProvider(t, origin, certificates),
    code: await startFormProvider(t, origin, certificates),
  }
  const backends = {
    corp: await startBackend(t, providers.corp),
    code: await startBackend(t, providers.code),
  }
  const dir = t.testdir({})
  const keys = makeKeys(dir)
  writeFileSync(
    join(dir, 'authserver-config.yaml'),
    authServerFile({
      origin,
      providers,
      keys,
      more: {
        cimd: { enabled: true },
        storage: { type: 'redis', redis: { addr: redis.addr, passwordEnv: 'REDIS_PASSWORD' } },
      },
    }),
  )
  const inject = (providerName: string) => ({ type: 'upstream_inject', upstreamInject: { providerName } })
  writeFileSync(
    join(dir, 'vmcp.yaml'),
    JSON.stringify({
      name: 'team',
      groupRef: 'team',
      incomingAuth: { type: 'oidc', oidc: oidcOf(origin) },
      outgoingAuth: { source: 'inline', backends: { corp: inject('corp'), code: inject('code') } },
      aggregation: {},
      operational: { failureHandling: { partialFailureMode: 'best_effort' } },
      sessionStorage: { provider: 'redis', address: redis.addr },
      audit: { enabled: true, logFile: join(dir, 'audit.log') },
      backends: Object.entries(backends).map(([name, { url }]) => ({
        name,
        url,
        transport: 'streamable-http',
      })),
    }),
  )
  const gateway = await startGateway(t, {
    dir,
    args: ['vmcp', 'serve', '-c', join(dir, 'vmcp.yaml'), '--port', String(port)],
    ready: /virtual MCP server listening/,
    env: {
      REDIS_PASSWORD: 'redis-password',
      GATEHOUSE_SESSION_REDIS_PASSWORD: 'redis-password',
      NODE_EXTRA_CA_CERTS: certificates.caFile,
      GATEHOUSE_AUTH_SERVER_CIMD_LOOPBACK: 'true',
    },
  })
  const audited = () => readFileSync(join(dir, 'audit.log'), 'utf8')
  return { url: `${origin}/mcp`, origin, gateway, providers, backends, keys, certificates, audited }
}

/** A client's metadata document at its https address, which is its client_id. */
async function publishDocument(t: Test, certificates: Certificates, redirectUri: string): Promise<string> {
  const { certFile, keyFile } = certificates
  const server = createServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }, (_req, res) => {
    res.setHeader('content-type', 'application/json')
    res.end(
      JSON.stringify({
        client_id: url,
        client_name: 'Described client',
        redirect_uris: [redirectUri],
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code', 'refresh_token'],
      }),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const address = server.address()
  const url = `https://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}/client.json`
  return url
}

/** How the client identifies itself: by dynamic registration, or by its metadata document. */
const kinds = ['registered', 'described'] as const

/** Connects a stock client and signs its user in. */
async function connect(
  t: Test,
  rig: Rig,
  browser: Browser,
  name: (typeof clients)[number],
  kind: (typeof kinds)[number],
): Promise<WorkingClient> {
  const documentFor = async (redirectUri: string): Promise<string | undefined> =>
    kind === 'described' ? publishDocument(t, rig.certificates, redirectUri) : undefined
  if (name === 'inspector') {
    return connectInspector(t, {
      url: rig.url,
      caFile: rig.certificates.caFile,
      documentFor,
      login: (landing, start) => signIn(browser, landing, start, 'alice'),
    })
  }
  const landing = await startLanding(t)
  const client = await connectSignedIn({
    generation: name,
    url: rig.url,
    provider: storingProvider(landing, await documentFor(landing.redirectUri)),
    login: (start) => signIn(browser, landing, start, 'alice'),
  })
  t.teardown(() => client.close())
  return client
}

const clients = ['sdk1', 'sdk2', 'inspector'] as const

t.test(
  'vmcp serve: clients sign in through two providers and keep working',
  { skip, timeout: 400_000 },
  async (t) => {
    const rig = await start(t)
    const browser = await openBrowser(t)
    const whoami = {
      corp: `alice at ${rig.providers.corp.issuer}`,
      code: `alice at ${rig.providers.code.issuer}`,
    }

    const ready = await fetch(`${rig.origin}/readyz`)
    t.equal(ready.status, 200, await ready.text())

    for (const [name, kind] of clients.flatMap((each) => kinds.map((how) => [each, how] as const))) {
      await t.test(`${name}, ${kind} client`, { timeout: 120_000 }, async (t) => {
        const client = await connect(t, rig, browser, name, kind)
        t.match(client.login.titles[0], /^Allow access to .+\?$/)
        t.ok(client.login.titles.length >= 5, 'consent, then login and grant at each provider')
        t.match(client.clientId(), kind === 'described' ? /^https:\/\/.*\/client\.json$/ : /^[0-9a-f-]{36}$/)
        t.same([...(await client.listTools())].sort(), ['code_whoami', 'corp_whoami'])
        // Each backend resolved the token at its own provider.
        t.equal(await client.call('corp_whoami'), whoami.corp)
        t.equal(await client.call('code_whoami'), whoami.code)

        const first = client.accessToken()
        t.match(decodeJwt(first), { iss: rig.origin, aud: [`${rig.origin}/mcp`] })
        await rig.gateway.ahead(2 * hour)
        t.equal(await client.call('corp_whoami'), whoami.corp, 'after the access token has ended')
        const second = client.accessToken()
        t.not(second, first, 'refreshed without a user')

        await rig.gateway.restart()
        await rig.gateway.ahead(2 * hour)
        t.equal(await client.call('code_whoami'), whoami.code, 'after a restart')
        t.equal(client.accessToken(), second, 'with the same token')

        const before = await publishedKeys(rig.origin)
        rig.keys.rotate()
        const kid = await newKey(rig.origin, before)
        t.equal(await client.call('corp_whoami'), whoami.corp, 'a token signed with the previous key')
        t.not(decodeProtectedHeader(client.accessToken()).kid, kid)
        await rig.gateway.ahead(4 * hour)
        t.equal(await client.call('code_whoami'), whoami.code, 'a token signed with the new key')
        t.equal(decodeProtectedHeader(client.accessToken()).kid, kid)
        await rig.gateway.ahead(0)
      })
    }

    await t.test('no secret was logged', async (t) => {
      const output = rig.gateway.running().output()
      t.notMatch(output, /eyJ|gh_rt_|upstream-secret|redis-password/)
      t.notMatch(rig.audited(), /eyJ|gh_rt_|gh_ac_|upstream-secret|redis-password/)
    })
  },
)

t.test(
  'vmcp serve: the failure of one provider does not affect the other',
  { skip, timeout: 120_000 },
  async (t) => {
    const rig = await start(t)
    const browser = await openBrowser(t)
    const landing = await startLanding(t)
    const whoami = {
      corp: `bob at ${rig.providers.corp.issuer}`,
      code: `bob at ${rig.providers.code.issuer}`,
    }
    const client = await connectSignedIn({
      generation: 'sdk1',
      url: rig.url,
      provider: storingProvider(landing),
      login: (start) => signIn(browser, landing, start, 'bob'),
    })
    t.teardown(() => client.close())
    t.equal(await client.call('corp_whoami'), whoami.corp)
    t.equal(await client.call('code_whoami'), whoami.code)
    const sent = (name: 'corp' | 'code') =>
      new Set(rig.backends[name].seen.map(({ authorization }) => authorization))
    const both = [...sent('corp')].filter((value) => value !== undefined && sent('code').has(value))
    t.same(both, [], 'no backend received the token of the other backend or of the gateway')
    t.notOk(
      [...sent('corp'), ...sent('code')].some((value) => value?.includes(client.provider.accessToken())),
    )

    // Both upstream tokens have expired, and one provider does not respond.
    rig.providers.code.failure = 'down'
    await rig.gateway.ahead(2 * hour)
    t.equal(await client.call('corp_whoami'), whoami.corp)
    t.match(await client.call('code_whoami').catch(String), /^!|Error/, 'a call to the other backend fails')
    rig.providers.code.failure = undefined
    t.equal(await untilCalled(client, 'code_whoami'), whoami.code, 'works once the provider is back')

    rig.providers.code.failure = 'refuse'
    await rig.gateway.ahead(4 * hour)
    const refused = await client.call('code_whoami').catch(String)
    t.match(
      refused,
      /the sign-in session with code has ended: ask the user to open http:\S+\/oauth\/accounts and renew code there/,
      'the error asks for a new login',
    )
    t.equal(await client.call('corp_whoami'), whoami.corp)
    rig.providers.code.failure = undefined
    t.same(await client.listTools(), ['corp_whoami'], 'its tools are hidden until then')
    t.match(rig.audited(), /"auth_upstream_refused".*"upstream":"code"/)
    t.equal(await client.call('corp_whoami'), whoami.corp)
  },
)

/** Retries until the call succeeds, because a backend whose listing failed is listed again only after a pause. */
async function untilCalled(client: SignedInClient, tool: string): Promise<string> {
  for (;;) {
    const text = await client.call(tool).catch(() => '!')
    if (!text.startsWith('!')) return text
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
