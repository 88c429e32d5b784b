/**
 * A `gatehouse vmcp serve` process on Redis whose users sign in at a real OpenID provider with a private key, and at
 * the plain OAuth providers that their groups select.
 */
import { generateKeyPairSync } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import t, { type Test } from 'tap'
import { makeKeys, oidcOf, startGateway } from '../../helpers/authserver/hosted.ts'
import { startHub } from '../../helpers/authserver/oauth2-peer.ts'
import { startOidcProvider } from '../../helpers/authserver/oidc-provider.ts'
import { TestClient, webRedirect } from '../../helpers/authserver/test-client.ts'
import { freePort } from '../../helpers/gatehouse.ts'
import type { PeerResponse, SeenRequest } from '../../helpers/loopback.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { stateless } from '../../helpers/mcp/wire.ts'
import { makeCertificates, missingRedisTls, startRedis } from '../../helpers/redis.ts'

const hour = 3_600_000
t.setTimeout(300_000)

const longLives = Object.fromEntries(
  ['AccessToken', 'AuthorizationCode', 'Grant', 'IdToken', 'Interaction', 'RefreshToken', 'Session'].map(
    (name) => [name, 90 * 86_400],
  ),
)

function makeKey() {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return {
    pem: privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(),
    jwk: { ...publicKey.export({ format: 'jwk' }), use: 'sig', alg: 'ES256' },
  }
}

const sales = { groups: ['sales'], upstreamProviders: ['hub'] }
const engineering = { groups: ['engineering'], upstreamProviders: ['desk'] }

async function start(t: Test) {
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const account = { groups: ['sales'] }
  const [first, second] = [makeKey(), makeKey()]
  const certificates = makeCertificates()
  const trusted = getCACertificates('default')
  // Used by the browser of the test.
  setDefaultCACertificates([...trusted, certificates.ca])
  t.teardown(() => {
    setDefaultCACertificates(trusted)
    certificates.remove()
  })
  const corp = await startOidcProvider({
    claims: account,
    tls: {
      cert: readFileSync(certificates.certFile, 'utf8'),
      key: readFileSync(certificates.keyFile, 'utf8'),
    },
    configuration: { ttl: longLives, claims: { openid: ['sub', 'groups'] } },
    clients: [
      {
        client_id: 'gatehouse',
        redirect_uris: [`${origin}/mcp/oauth/callback`],
        grant_types: ['authorization_code', 'refresh_token'],
        token_endpoint_auth_method: 'private_key_jwt',
        token_endpoint_auth_signing_alg: 'ES256',
        jwks: { keys: [first.jwk, second.jwk] },
      },
    ],
  })
  /** Answer of hub's token endpoint, instead of a token. */
  const failure: { response?: PeerResponse | 'echo' } = {}
  const ok = { body: { access_token: 'hub-at', token_type: 'bearer', expires_in: 90 * 86_400 } }
  const echo = ({ form }: SeenRequest): PeerResponse =>
    failure.response === 'echo'
      ? { status: 400, body: { error: 'invalid_client', error_description: form.get('client_assertion') } }
      : (failure.response ?? ok)
  const hub = await startHub(t, { token: echo })
  const desk = await startHub(t, { name: 'desk' })
  const [crm, code] = await Promise.all([startRawBackend(), startRawBackend()])
  const redis = await startRedis({ auth: { password: 'redis-password' } })
  t.teardown(() => Promise.all([corp.close(), crm.close(), code.close(), redis.stop()]))
  const dir = t.testdir({})
  const keys = makeKeys(dir)
  const [keyPath, auditPath] = [join(dir, 'upstream.pem'), join(dir, 'audit.log')]
  writeFileSync(keyPath, first.pem)
  const plain = (name: string, url: string) => ({
    name,
    type: 'oauth2',
    oauth2Config: {
      authorizationEndpoint: `${url}/authorize`,
      tokenEndpoint: `${url}/token`,
      clientId: 'our-id',
      clientAuth: { method: 'privateKeyJwt', privateKeyPath: keyPath },
    },
  })
  const configure = (upstreamFilter: object): void =>
    writeFileSync(
      join(dir, 'authserver-config.yaml'),
      JSON.stringify({
        issuer: origin,
        allowedAudiences: [`${origin}/mcp`],
        signingKeyFiles: keys.signing,
        hmacSecretFiles: keys.hmac,
        storage: { type: 'redis', redis: { addr: redis.addr, passwordEnv: 'REDIS_PASSWORD' } },
        upstreamProviders: [
          {
            name: 'corp',
            type: 'oidc',
            oidcConfig: {
              issuerUrl: corp.issuer,
              clientId: 'gatehouse',
              clientAuth: { method: 'privateKeyJwt', privateKeyPath: keyPath },
            },
          },
          plain('hub', hub.url),
          plain('desk', desk.url),
        ],
        upstreamFilter,
      }),
    )
  configure({ rules: [sales, engineering] })
  const inject = (providerName: string) => ({ type: 'upstream_inject', upstreamInject: { providerName } })
  writeFileSync(
    join(dir, 'vmcp.yaml'),
    JSON.stringify({
      name: 'team',
      groupRef: 'team',
      incomingAuth: { type: 'oidc', oidc: oidcOf(origin) },
      outgoingAuth: { source: 'inline', backends: { crm: inject('hub'), code: inject('desk') } },
      aggregation: {},
      operational: { failureHandling: { partialFailureMode: 'best_effort' } },
      audit: { enabled: true, logFile: auditPath },
      backends: [
        { name: 'crm', url: crm.url, transport: 'streamable-http' },
        { name: 'code', url: code.url, transport: 'streamable-http' },
      ],
    }),
  )
  const gateway = await startGateway(t, {
    dir,
    args: ['vmcp', 'serve', '-c', join(dir, 'vmcp.yaml'), '--port', String(port)],
    ready: /virtual MCP server listening/,
    env: { REDIS_PASSWORD: 'redis-password', NODE_EXTRA_CA_CERTS: certificates.caFile },
  })
  const client = await TestClient.register({ issuer: origin }, { redirect_uris: [webRedirect] })
  const tools = async (access: string): Promise<string> => {
    const headers = { authorization: `Bearer ${access}` }
    const { text } = await stateless(`${origin}/mcp`, 'tools/list', {}, { headers })
    return ['crm_echo', 'code_echo'].filter((name) => text.includes(`"${name}"`)).join()
  }
  const call = async (access: string): Promise<string> => {
    const headers = { authorization: `Bearer ${access}` }
    const params = { name: 'crm_echo', arguments: {} }
    return (await stateless(`${origin}/mcp`, 'tools/call', params, { headers })).text
  }
  const written = () => gateway.running().output() + readFileSync(auditPath, 'utf8')
  return {
    ...{
      account,
      client,
      configure,
      corp,
      desk,
      failure,
      gateway,
      hub,
      keyPath,
      origin,
      call,
      tools,
      written,
    },
    pems: [first.pem, second.pem] as const,
  }
}

t.test(
  'upstreams: groups, restarts, broken keys and hostile token endpoints',
  { skip: missingRedisTls },
  async (t) => {
    const self = await start(t)
    const { account, client, configure, gateway, hub, desk, tools } = self

    t.comment('groups select providers, and forms cannot force others')
    const browsing = client.with()
    const seller = await browsing.signIn()
    t.equal(await tools(seller.access), 'crm_echo')
    const accounts = await browsing.browser.open(new URL(`${self.origin}/oauth/accounts`))
    const forced = await browsing.browser.send(accounts, { action: 'connect', provider: 'desk' })
    t.equal(forced.status, 400)
    t.equal(desk.count('/authorize'), 0)

    t.comment('a changed filter applies at the next sign-in, also after a restart')
    configure({ rules: [{ ...sales, upstreamProviders: ['desk'] }] })
    await gateway.restart()
    t.equal(await tools(seller.access), 'crm_echo', 'the earlier session')
    const moved = await client.with().signIn()
    t.equal(await tools(moved.access), 'code_echo')
    t.match(await self.call(seller.access), /the user's groups do not select hub/, 'the same session')
    account.groups = []
    t.equal(await tools((await client.with().signIn()).access), '')
    await gateway.running().waitFor(/the provider reported no groups; the default upstreams apply/)

    configure({ rules: [sales, engineering] })
    await gateway.restart()

    t.comment('a broken key ends no session, and a repaired one needs no restart')
    account.groups = ['sales']
    writeFileSync(self.keyPath, self.pems[1])
    await gateway.ahead(hour)
    const before = await client.with().signIn()
    writeFileSync(self.keyPath, self.pems[1].slice(0, 60))
    await gateway.ahead(2 * hour)
    t.equal((await client.with().login()).error, 'temporarily_unavailable')
    writeFileSync(self.keyPath, '')
    await gateway.ahead(2.1 * hour)
    t.equal(
      (await client.with().login()).error,
      'temporarily_unavailable',
      'the last value is the broken one',
    )
    await gateway.running().waitFor(/secret not reloaded; the last value stays in use/)
    writeFileSync(self.keyPath, self.pems[0])
    await gateway.ahead(2.2 * hour)
    t.ok((await client.with().signIn()).access)
    const renewed = await client.refresh(before)
    t.equal(renewed.outcome, '200')

    t.comment('hostile token endpoints stop one provider, not the server')
    const asked = desk.count('/token')
    for (const response of [
      {
        headers: { 'content-type': 'application/json' },
        body: `{"access_token":"${'x'.repeat(10_000_000)}"}`,
      },
      { status: 307, headers: { location: `${desk.url}/token` } },
      { body: { access_token: 7 } },
      'echo',
      'cut',
    ] as const) {
      self.failure.response = response
      account.groups = ['sales']
      const other = client.with()
      await other.browser.open(new URL(`${self.origin}/oauth/accounts`))
      const page = await other.authorize({ prompt: 'consent' })
      const failed = await disconnectAndLogin(self, other, page)
      t.match(failed, /hub could not be connected/)
    }
    delete self.failure.response
    t.equal(desk.count('/token'), asked, 'no redirected request')

    t.comment('logs and audit contain no secret')
    const text = self.written()
    const secrets = [...hub.seen, ...desk.seen].flatMap(({ form }) => form.get('client_assertion') ?? [])
    t.ok(secrets.length > 3)
    for (const secret of [
      ...secrets,
      ...self.pems.map((pem) => pem.split('\n')[1] ?? ''),
      'hub-at',
      seller.access,
    ])
      t.notOk(text.includes(secret))
    t.notMatch(text, /PRIVATE KEY/)
  },
)

/** Disconnects hub, so that the login asks for it again. Returns the page at which the login stops. */
async function disconnectAndLogin(
  { origin }: { readonly origin: string },
  client: TestClient,
  page: Awaited<ReturnType<TestClient['authorize']>>,
): Promise<string> {
  const first = await client.consent(page)
  if (first.status === 200) return first.text
  const accounts = await client.browser.open(new URL(`${origin}/oauth/accounts`))
  await client.browser.send(accounts, { action: 'disconnect', provider: 'hub' })
  return (await client.consent(await client.authorize())).text
}
