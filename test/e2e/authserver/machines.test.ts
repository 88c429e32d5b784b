/** Servers whose embedded authorization server has declared clients and no upstream provider, as real processes. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t, { type Test } from 'tap'
import { tokenRequest, tokensOf } from '../../helpers/authserver/authserver.ts'
import { newSecret } from '../../helpers/authserver/declared-client.ts'
import {
  authServerFile,
  type Backend,
  makeKeys,
  oidcOf,
  startBackend,
  startFormProvider,
  startGateway,
} from '../../helpers/authserver/hosted.ts'
import { freePort } from '../../helpers/gatehouse.ts'
import { makeCertificates, missingRedisTls, until } from '../../helpers/redis.ts'

t.setTimeout(240_000)

interface Rig {
  readonly origin: string
  readonly backend: Backend
  /** Writes the clients of the authorization server's file. */
  publish(clientIds: readonly string[]): void
  tokenOf(clientId: string): Promise<string>
  audited(): string
}

const policies = [
  'permit(principal == Client::"client:ci", action, resource);',
  'permit(principal, action == Action::"list_tools", resource);',
]

/** Starts a virtual server or a proxy with the clients `ci` and `cron`. */
async function start(t: Test, host: 'vmcp' | 'proxy'): Promise<Rig> {
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const backend = await startBackend(t)
  const dir = t.testdir({})
  const secret = newSecret()
  writeFileSync(join(dir, 'secret'), secret)
  const keys = makeKeys(dir)
  const publish = (clientIds: readonly string[]): void => {
    const clients = clientIds.map((clientId) => ({
      clientId,
      scopes: ['tools'],
      clientSecretFiles: [join(dir, 'secret')],
    }))
    const file = authServerFile({ origin, providers: {}, keys, more: { clients } })
    writeFileSync(join(dir, 'authserver-config.yaml'), file)
  }
  publish(['ci', 'cron'])
  const audit = { enabled: true, logFile: join(dir, 'audit.log') }
  const backends = [{ name: 'who', url: backend.url, transport: 'streamable-http' }]
  writeFileSync(
    join(dir, 'vmcp.yaml'),
    JSON.stringify({
      name: 'team',
      groupRef: 'team',
      incomingAuth: { type: 'oidc', oidc: oidcOf(origin), authz: { type: 'cedar', policies } },
      outgoingAuth: { source: 'inline' },
      aggregation: {},
      audit,
      backends,
    }),
  )
  writeFileSync(
    join(dir, 'proxy.yaml'),
    JSON.stringify({
      name: 'guarded',
      targetUri: new URL(backend.url).origin,
      transport: 'streamable-http',
      host: '127.0.0.1',
      port,
      oidc: oidcOf(origin),
    }),
  )
  const args =
    host === 'vmcp'
      ? ['vmcp', 'serve', '-c', join(dir, 'vmcp.yaml'), '--port', String(port)]
      : ['proxy', '--config', join(dir, 'proxy.yaml'), 'guarded']
  await startGateway(t, { dir, args, ready: /virtual MCP server listening|[Pp]roxy started/ })
  return {
    origin,
    backend,
    publish,
    async tokenOf(clientId) {
      const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: secret }
      return (await tokensOf(await tokenRequest({ issuer: origin }, form))).access_token
    },
    audited: () => readFileSync(join(dir, 'audit.log'), 'utf8'),
  }
}

/** Calls the tool `whoami` and returns the text of the result. */
async function whoami({ origin }: Rig, token: string): Promise<string> {
  const client = new Client({ name: 'job', version: '1' })
  const requestInit = { headers: { authorization: `Bearer ${token}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(`${origin}/mcp`), { requestInit }))
  try {
    const { tools } = await client.listTools()
    return JSON.stringify(await client.callTool({ name: tools[0]?.name ?? 'who_whoami', arguments: {} }))
  } finally {
    await client.close()
  }
}

t.test('vmcp: a declared client calls a tool under a policy that names it', async (t) => {
  const rig = await start(t, 'vmcp')
  const token = await rig.tokenOf('ci')
  t.match(await whoami(rig, token), 'authorization: none, cookie: none')
  await t.rejects(whoami(rig, await rig.tokenOf('cron')), /denied/, 'another client is not permitted')
  t.match(rig.audited(), /"auth_token_issued".*"client:ci"/)
  t.notMatch(rig.audited(), token)

  rig.publish(['cron'])
  await until(async () => (await statusOf(rig, token)) === 401)
  t.equal(await statusOf(rig, await rig.tokenOf('cron')), 200)
  await t.rejects(rig.tokenOf('ci'), /401.*invalid_client/)
  await until(async () => /"auth_client_rejected".*unknown client/.test(rig.audited()))
})

/** Status of an initialize request. */
async function statusOf({ origin }: Rig, token: string): Promise<number> {
  const response = await fetch(`${origin}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: {
        protocolVersion: '2025-06-18',
        capabilities: {},
        clientInfo: { name: 'job', version: '1' },
      },
    }),
  })
  await response.text()
  return response.status
}

t.test('proxy: the target does not receive the token of a declared client', async (t) => {
  const rig = await start(t, 'proxy')
  t.match(await whoami(rig, await rig.tokenOf('ci')), 'authorization: none, cookie: none')
  t.ok(rig.backend.seen.length > 0)
  t.ok(rig.backend.seen.every(({ authorization }) => authorization === undefined))
})

t.test(
  'vmcp: a backend that requires a user is hidden from a declared client',
  { skip: missingRedisTls },
  async (t) => {
    const port = await freePort()
    const origin = `http://127.0.0.1:${port}`
    const certificates = makeCertificates()
    t.teardown(() => certificates.remove())
    const corp = await startFormProvider(t, origin, certificates)
    const [personal, open] = [await startBackend(t, corp), await startBackend(t)]
    const dir = t.testdir({})
    const secret = newSecret()
    writeFileSync(join(dir, 'secret'), secret)
    const clients = [{ clientId: 'ci', scopes: ['tools'], clientSecretFiles: [join(dir, 'secret')] }]
    writeFileSync(
      join(dir, 'authserver-config.yaml'),
      authServerFile({ origin, providers: { corp }, keys: makeKeys(dir), more: { clients } }),
    )
    const inject = { type: 'upstream_inject', upstreamInject: { providerName: 'corp' } }
    writeFileSync(
      join(dir, 'vmcp.yaml'),
      JSON.stringify({
        name: 'team',
        groupRef: 'team',
        incomingAuth: { type: 'oidc', oidc: oidcOf(origin) },
        outgoingAuth: { source: 'inline', backends: { personal: inject } },
        aggregation: {},
        operational: { failureHandling: { partialFailureMode: 'fail' } },
        backends: Object.entries({ personal, open }).map(([name, { url }]) => ({
          name,
          url,
          transport: 'streamable-http',
        })),
      }),
    )
    await startGateway(t, {
      dir,
      args: ['vmcp', 'serve', '-c', join(dir, 'vmcp.yaml'), '--port', String(port)],
      ready: /virtual MCP server listening/,
      env: { NODE_EXTRA_CA_CERTS: certificates.caFile },
    })
    const form = { grant_type: 'client_credentials', client_id: 'ci', client_secret: secret }
    const { access_token: token } = await tokensOf(await tokenRequest({ issuer: origin }, form))
    const client = new Client({ name: 'job', version: '1' })
    const requestInit = { headers: { authorization: `Bearer ${token}` } }
    await client.connect(new StreamableHTTPClientTransport(new URL(`${origin}/mcp`), { requestInit }))
    t.teardown(() => client.close())
    const { tools } = await client.listTools()
    t.strictSame(
      tools.map(({ name }) => name),
      ['open_whoami'],
    )
    const message = await client.callTool({ name: 'personal_whoami', arguments: {} }).then(
      (result) => JSON.stringify(result),
      (error: unknown) => String(error),
    )
    t.match(message, /requires a user who signed in here/)
  },
)
