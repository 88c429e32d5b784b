/**
 * Upgrade of a virtual server with the embedded authorization server from this version to a later one, and rollback,
 * with a real Redis, OpenID provider and browser. Sessions, logins and sealed request state continue in both directions.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import {
  authServerFile,
  type Gateway,
  makeKeys,
  oidcOf,
  startBackend,
  startFormProvider,
  startGateway,
} from '../helpers/authserver/hosted.ts'
import {
  connectSignedIn,
  missingBrowser,
  openBrowser,
  signIn,
  startLanding,
  storingProvider,
} from '../helpers/authserver/signed-in-client.ts'
import { freePort } from '../helpers/gatehouse.ts'
import { openSession, stateless, type WireSession } from '../helpers/mcp/wire.ts'
import { makeNextVersion, thisVersion } from '../helpers/kube/next-version.ts'
import { makeCertificates, missingRedisTls, startRedis } from '../helpers/redis.ts'
import { startAskingBackend } from '../helpers/vmcp/asking-backend.ts'

const hour = 3_600_000
t.setTimeout(240_000)

interface Rig {
  readonly url: string
  readonly issuer: string
  readonly gateway: Gateway
  /** Writes the virtual server's file with additional members. */
  writeConfig(more?: object): void
}

async function start(t: Test): Promise<Rig> {
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const certificates = makeCertificates()
  t.teardown(() => certificates.remove())
  const redis = await startRedis({ auth: { password: 'redis-password' } })
  t.teardown(() => redis.stop())
  const corp = await startFormProvider(t, origin, certificates)
  const who = await startBackend(t, corp)
  const asking = await startAskingBackend('ask')
  t.teardown(() => asking.close())
  const dir = t.testdir({})
  const storage = { type: 'redis', redis: { addr: redis.addr, passwordEnv: 'REDIS_PASSWORD' } }
  const file = { origin, providers: { corp }, keys: makeKeys(dir), more: { storage } }
  writeFileSync(join(dir, 'authserver-config.yaml'), authServerFile(file))
  const inject = { type: 'upstream_inject', upstreamInject: { providerName: 'corp' } }
  const config = {
    name: 'team',
    groupRef: 'team',
    incomingAuth: { type: 'oidc', oidc: oidcOf(origin) },
    outgoingAuth: { source: 'inline', backends: { who: inject } },
    aggregation: {},
    sessionStorage: { provider: 'redis', address: redis.addr },
    backends: [
      { name: 'who', url: who.url, transport: 'streamable-http' },
      { name: 'ask', url: asking.url, transport: 'streamable-http' },
    ],
  }
  const path = join(dir, 'vmcp.yaml')
  const writeConfig = (more = {}): void => writeFileSync(path, JSON.stringify({ ...config, ...more }))
  writeConfig()
  const gateway = await startGateway(t, {
    dir,
    args: ['vmcp', 'serve', '-c', path, '--port', String(port)],
    ready: /virtual MCP server listening/,
    env: {
      REDIS_PASSWORD: 'redis-password',
      GATEHOUSE_SESSION_REDIS_PASSWORD: 'redis-password',
      NODE_EXTRA_CA_CERTS: certificates.caFile,
    },
  })
  return { url: `${origin}/mcp`, issuer: corp.issuer, gateway, writeConfig }
}

const capabilities = { elicitation: { form: {} } }
const question = { name: 'ask_say', arguments: {} }
const inputResponses = { color: { action: 'accept', content: { color: 'red' } } }

/** Starts a call that asks its user. Returns the sealed state, with which another process continues the call. */
async function ask(url: string, headers: Record<string, string>): Promise<string> {
  const { response, text } = await stateless(url, 'tools/call', question, { capabilities, headers })
  const state = response?.result?.['requestState']
  if (typeof state !== 'string') throw new Error(`no request state: ${text}`)
  return state
}

async function proceed(url: string, headers: Record<string, string>, requestState: string): Promise<string> {
  const params = { ...question, requestState, inputResponses }
  return (await stateless(url, 'tools/call', params, { capabilities, headers })).text
}

await t.test(
  'upgrade and rollback of the runtime',
  { skip: missingBrowser || missingRedisTls, timeout: 220_000 },
  async (t) => {
    const next = makeNextVersion(t)
    const rig = await start(t)
    const browser = await openBrowser(t)
    const landing = await startLanding(t)
    const client = await connectSignedIn({
      generation: 'sdk1',
      url: rig.url,
      provider: storingProvider(landing),
      login: (page) => signIn(browser, landing, page, 'alice'),
    })
    t.teardown(() => client.close())
    const whoami = `alice at ${rig.issuer}`
    t.equal(await client.call('who_whoami'), whoami)
    const signedInAt = client.provider.sentTo()?.href
    const headers = () => ({ authorization: `Bearer ${client.accessToken()}` })
    const session: WireSession = await openSession(rig.url, { headers: headers() })
    const call = async () => {
      const { status, text } = await session.request('tools/call', { name: 'who_whoami' }, headers())
      return `${status} ${text}`
    }
    t.match(await call(), whoami)

    for (const [title, version, hours] of [
      ['upgrade', next, 2],
      ['rollback', thisVersion, 4],
    ] as const) {
      await t.test(`${title} to ${version.version}`, async (t) => {
        const state = await ask(rig.url, headers())
        await rig.gateway.restart(version.program)
        const token = client.accessToken()
        t.match(await call(), whoami, 'the session continues')
        t.equal(await client.call('who_whoami'), whoami, "a client's login and session continue")
        t.equal(client.accessToken(), token, 'with the same token')
        t.match(
          await proceed(rig.url, headers(), state),
          /ask got .*red/,
          'a call that asked its user continues',
        )
        await rig.gateway.ahead(hours * hour)
        t.equal(await client.call('who_whoami'), whoami, 'after the access token has expired')
        t.not(client.accessToken(), token, 'the token was refreshed')
        t.equal(client.provider.sentTo()?.href, signedInAt, 'without a login')
        await rig.gateway.ahead(0)
      })
    }

    await t.test('the older version keeps its settings when it gets a file of the later one', async (t) => {
      const refused = rig.gateway.running().waitFor(/the new configuration cannot be used/)
      rig.writeConfig({ displayName: 'Team' })
      await refused
      t.match(rig.gateway.running().output(), 'displayName')
      t.match(await call(), whoami)
    })

    await t.test('the later version accepts the same file', async (t) => {
      await rig.gateway.restart(next.program)
      t.match(await call(), whoami)
    })
  },
)
