/**
 * Tests `gatehouse proxy --config` with an embedded authorization server and one upstream. The proxy replaces the
 * client's token with the user's token at the provider, or removes it. Clients are stock MCP clients of both
 * generations and a real Chromium.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import { freePort, runGatehouse } from '../../helpers/gatehouse.ts'
import {
  authServerFile,
  type Backend,
  type FormProvider,
  type Gateway,
  makeKeys,
  oidcOf,
  startBackend,
  startFormProvider,
  startGateway,
  upstreamSecretVariable,
} from '../../helpers/authserver/hosted.ts'
import { proves } from '../../helpers/proves.ts'
import { makeCertificates, missingRedisTls } from '../../helpers/redis.ts'
import {
  connectSignedIn,
  storingProvider,
  missingBrowser,
  openBrowser,
  signIn,
  startLanding,
} from '../../helpers/authserver/signed-in-client.ts'

proves(
  '2.auth.embeddedAuthServer',
  '2.embeddedAuthServer.disableUpstreamTokenInjection',
  '2.embeddedAuthServer.upstreamProviders.count',
)

const hour = 3_600_000
const skip = missingBrowser || missingRedisTls
t.setTimeout(240_000)

interface Rig {
  readonly origin: string
  readonly url: string
  readonly gateway: Gateway
  readonly provider: FormProvider
  readonly backend: Backend
}

interface AuditLine {
  readonly type: string
  readonly outcome: string
  readonly subjects: Readonly<Record<string, string>>
}

interface RigOptions {
  /** True: the target requires the provider's token. False: it returns what it received. */
  readonly strict: boolean
  /** Additional members of the authorization server's file. */
  readonly more?: object
  /** Additional members of the proxy's file. */
  readonly proxy?: object
  readonly env?: NodeJS.ProcessEnv
  readonly tools?: readonly string[]
}

async function start(t: Test, options: RigOptions): Promise<Rig> {
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const certificates = makeCertificates()
  t.teardown(() => certificates.remove())
  const provider = await startFormProvider(t, origin, certificates)
  const backend = await startBackend(t, options.strict ? provider : undefined, options.tools)
  const dir = t.testdir({})
  const file = { origin, providers: { corp: provider }, keys: makeKeys(dir) }
  writeFileSync(
    join(dir, 'authserver-config.yaml'),
    authServerFile(options.more ? { ...file, more: { ...options.more } } : file),
  )
  writeFileSync(join(dir, 'proxy.yaml'), proxyFile(origin, backend.url, port, options.proxy))
  const gateway = await startGateway(t, {
    dir,
    args: ['proxy', '--config', join(dir, 'proxy.yaml'), 'guarded'],
    ready: /[Pp]roxy started/,
    env: { NODE_EXTRA_CA_CERTS: certificates.caFile, ...options.env },
  })
  return { origin, url: `${origin}/mcp`, gateway, provider, backend }
}

function proxyFile(origin: string, target: string, port: number, more: object = {}): string {
  return JSON.stringify({
    name: 'guarded',
    targetUri: new URL(target).origin,
    transport: 'streamable-http',
    host: '127.0.0.1',
    port,
    oidc: oidcOf(origin),
    ...more,
  })
}

for (const generation of ['sdk1', 'sdk2'] as const) {
  t.test(`proxy, ${generation}: replaces the client’s token`, { skip, timeout: 120_000 }, async (t) => {
    const rig = await start(t, { strict: true })
    const [browser, landing] = [await openBrowser(t), await startLanding(t)]
    const client = await connectSignedIn({
      generation,
      url: rig.url,
      provider: storingProvider(landing),
      login: (start) => signIn(browser, landing, start, 'carol'),
    })
    t.teardown(() => client.close())
    const carol = `carol at ${rig.provider.issuer}`
    t.equal(await client.call('whoami'), carol)
    const first = client.provider.accessToken()
    await rig.gateway.ahead(2 * hour)
    t.equal(await client.call('whoami'), carol, 'after both tokens have ended')
    t.not(client.provider.accessToken(), first)
    const sent = rig.backend.seen.map(({ authorization }) => authorization ?? '')
    t.ok(sent.length > 0)
    t.notOk(
      sent.some((value) => value.includes(first) || value.includes(client.provider.accessToken())),
      'the target received no token of the gateway',
    )
    // After the provider ends the login, the client's token is rejected.
    rig.provider.failure = 'refuse'
    await rig.gateway.ahead(4 * hour)
    const refused = rig.gateway.running().waitFor(/upstream_refused/)
    await t.rejects(client.call('whoami'))
    await refused
    rig.provider.failure = undefined
    // The stream of the first client has ended, and its own new login would replace the stored verifier.
    await client.close()
    // Its refresh token has ended too, so a new connection requires the user.
    const again = await connectSignedIn({
      generation,
      url: rig.url,
      provider: client.provider,
      login: (start) => signIn(browser, landing, start, 'carol'),
    })
    t.teardown(() => again.close())
    t.equal(await again.call('whoami'), carol, 'after the user has signed in again')
    t.notMatch(rig.gateway.running().output(), /eyJ|gh_rt_/)
  })
}

t.test(
  'proxy with policies: replaces the token, enforces the policies, and logs who signed in from where',
  { skip, timeout: 120_000 },
  async (t) => {
    const logFile = join(t.testdir({}), 'audit.log')
    const rig = await start(t, {
      strict: true,
      tools: ['purge'],
      proxy: {
        authz: {
          type: 'cedar',
          policies: [
            'permit(principal, action, resource);',
            'forbid(principal, action == Action::"call_tool", resource == Tool::"purge");',
          ],
        },
        audit: { enabled: true, logFile },
      },
      env: { GATEHOUSE_AUTH_SERVER_TRUSTED_PROXIES: '127.0.0.1, 10.0.0.0/8' },
    })
    const [browser, landing] = [await openBrowser(t), await startLanding(t)]
    const client = await connectSignedIn({
      generation: 'sdk2',
      url: rig.url,
      provider: storingProvider(landing),
      login: (start) => signIn(browser, landing, start, 'dave'),
    })
    t.teardown(() => client.close())
    t.same(await client.listTools(), ['whoami'], 'the policy filters the list')
    t.equal(await client.call('whoami'), `dave at ${rig.provider.issuer}`)
    await t.rejects(client.call('purge'))
    t.ok(rig.backend.seen.every(({ authorization }) => !authorization?.includes(client.accessToken())))
    const before = client.accessToken()
    await rig.gateway.ahead(2 * hour)
    t.equal(await client.call('whoami'), `dave at ${rig.provider.issuer}`, 'after both tokens have ended')

    // A trusted proxy appends the address of its client. Entries to the left of it can be forged.
    await fetch(`${rig.origin}/oauth/register`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-forwarded-for': '192.0.2.66, 198.51.100.7, 10.1.2.3',
      },
      body: JSON.stringify({ redirect_uris: ['https://client.example/cb'] }),
    })
    await rig.gateway.running().interrupt()
    const text = readFileSync(logFile, 'utf8')
    const events = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as AuditLine)
    const [person] = events.flatMap(({ type, subjects }) =>
      type === 'auth_code_issued' ? [subjects['user_id']] : [],
    )
    const calls = events.filter(({ type }) => type === 'mcp_tool_call')
    t.same([...new Set(calls.map(({ outcome }) => outcome))].sort(), ['denied', 'success'])
    t.ok(calls.every(({ subjects }) => subjects['user_id'] === person))
    const told = events.filter(({ type }) => type.startsWith('auth_'))
    t.same(
      [...new Set(told.map(({ type }) => type))],
      [
        'auth_client_registered',
        'auth_consent_given',
        'auth_login_completed',
        'auth_code_issued',
        'auth_token_issued',
        'auth_token_refreshed',
        'auth_upstream_refreshed',
      ],
    )
    t.match(told[0], {
      component: 'gatehouse-authserver',
      outcome: 'success',
      source: { type: 'network', value: '127.0.0.1' },
      subjects: { client_id: client.clientId() },
      target: { type: 'auth_server' },
    })
    t.match(told.at(-1), { type: 'auth_client_registered', source: { value: '198.51.100.7' } })
    t.match(
      told.find(({ type }) => type === 'auth_token_issued'),
      {
        subjects: { user_id: person, client_id: client.clientId() },
        metadata: { extra: { session: /^.{12}$/ } },
      },
    )
    t.notMatch(text, /eyJ|gh_rt_|gh_ac_|gh_reg_/)
    for (const token of [before, client.accessToken()]) {
      t.notOk(text.includes(String(decodeJwt(token)['tsid'])), 'no session id')
    }
  },
)

t.test('proxy: disableUpstreamTokenInjection removes the token', { skip, timeout: 120_000 }, async (t) => {
  const rig = await start(t, { strict: false, more: { disableUpstreamTokenInjection: true } })
  const [browser, landing] = [await openBrowser(t), await startLanding(t)]
  const client = await connectSignedIn({
    generation: 'sdk1',
    url: rig.url,
    provider: storingProvider(landing),
    login: (start) => signIn(browser, landing, start, 'carol'),
  })
  t.teardown(() => client.close())
  t.equal(await client.call('whoami'), 'authorization: none, cookie: none')
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'whoami', arguments: {} } }
  const response = await fetch(rig.url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${client.provider.accessToken()}`,
      cookie: 'session=of-the-client',
      'proxy-authorization': 'Basic b2Y6Y2xpZW50',
    },
    body: JSON.stringify(body),
  })
  t.match(await response.text(), 'authorization: none, cookie: none')
  t.notOk(rig.backend.seen.some((headers) => headers['proxy-authorization'] !== undefined))
  t.equal(
    (await fetch(rig.url, { method: 'POST', body: '{}' })).status,
    401,
    'a request without a token is rejected',
  )
})

t.test('proxy: reports all contradictory settings together', async (t) => {
  const origin = 'http://127.0.0.1:4999'
  const dir = t.testdir({})
  const keys = makeKeys(dir)
  const upstream = (name: string) => ({
    name,
    type: 'oidc',
    oidcConfig: { issuerUrl: 'https://idp.example', clientId: 'x', redirectUri: `${origin}/oauth/callback` },
  })
  const write = (file: object, server: object): void => {
    writeFileSync(join(dir, 'proxy.yaml'), proxyFile(origin, 'http://127.0.0.1:9/mcp', 0, file))
    writeFileSync(
      join(dir, 'authserver-config.yaml'),
      authServerFile({
        origin,
        providers: {},
        keys,
        more: { upstreamProviders: [upstream('corp')], ...server },
      }),
    )
  }
  const violations = async (): Promise<string> => {
    const { code, stderr } = await runGatehouse(['proxy', '--config', join(dir, 'proxy.yaml'), 'guarded'])
    t.equal(code, 2, stderr)
    return stderr
  }
  write(
    {
      oidc: { ...oidcOf(origin), issuer: 'https://other.example', audience: `${origin}/other` },
      outgoingAuth: {
        type: 'token_exchange',
        tokenExchange: { tokenUrl: 'https://sts.example/token', audience: 'a' },
      },
    },
    { disableUpstreamTokenInjection: true },
  )
  const contradicting = await violations()
  t.match(contradicting, /oidc\.issuer: must be http:\/\/127\.0\.0\.1:4999/)
  t.match(contradicting, /oidc\.audience: must be one of/)
  t.match(contradicting, /disableUpstreamTokenInjection: conflicts with token_exchange/)
  write({ oidc: undefined }, { upstreamProviders: [upstream('corp'), upstream('code')] })
  t.match(await violations(), /upstreamProviders: at most 1 is supported here, but 2 are configured/)
  write({ oidc: undefined }, {})
  t.match(await violations(), /oidc: is required with an embedded authorization server/)
  writeFileSync(join(dir, 'authserver-config.yaml'), 'issuer: [')
  await violations()
  t.equal(process.env[upstreamSecretVariable], undefined)
})
