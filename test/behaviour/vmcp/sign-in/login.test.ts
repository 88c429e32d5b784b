/** The user's login at a backend of a local virtual server, from the first start to a revoked refresh token. */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import t from 'tap'
import { Browser } from '../../../helpers/authserver/cookie-browser.ts'
import { connect } from '../../../helpers/mcp/clients.ts'
import { startFixture } from '../../../helpers/mcp/fixture-server/index.ts'
import {
  backendState,
  type ProtectedServer,
  type ProtectedServerOptions,
  revokeLogin,
  type SignInServer,
  startLoginProxy,
  startProtectedServer,
  startSignInServer,
} from '../../../helpers/sign-in/rig.ts'

t.setTimeout(120_000)

const isWaiting = ({ health, sign_in_url: url }: { health: string; sign_in_url?: string }) =>
  health === 'unauthenticated' && url !== undefined
const isHealthy = ({ health, sign_in_url: url }: { health: string; sign_in_url?: string }) =>
  health === 'healthy' && url === undefined

async function signIn(local: SignInServer): Promise<void> {
  const page = await new Browser().open(local.address())
  if (!page.text.includes('You are signed in')) throw new Error(page.text)
}

/** A client without URL elicitation. */
async function plainClient(t: Pick<SubTest, 'teardown'>, local: SignInServer): Promise<Client> {
  const client = new Client({ name: 'plain', version: '1' })
  const transport = new StreamableHTTPClientTransport(new URL(local.url))
  await client.connect(transport)
  t.teardown(() => client.close())
  return client
}

await t.test('first start: the state, the login, and the tools without a restart', async (t) => {
  const server = await startProtectedServer(t)
  const open = await startFixture()
  t.teardown(() => open.close())
  const state = t.testdir({})
  const local = await startSignInServer(t, { mail: server.url, other: open.url }, state)
  t.match(await backendState(local, 'mail', isWaiting), {
    sign_in_url: `${local.vmcp.origin}/sign-in/mail`,
    last_error: { category: 'sign_in_required' },
  })
  await backendState(local, 'other', isHealthy)
  const client = await plainClient(t, local)
  const names = async (): Promise<string[]> => (await client.listTools()).tools.map(({ name }) => name)
  const before = await names()
  t.ok(before.includes('other_test_simple_text'), 'other backends work')
  t.notOk(before.some((name) => name.startsWith('mail_')))
  const changed = new Promise<void>((resolve) =>
    client.setNotificationHandler(ToolListChangedNotificationSchema, async () => {
      if ((await names()).includes('mail_whoami')) resolve()
    }),
  )
  await signIn(local)
  await backendState(local, 'mail', isHealthy)
  await changed
  t.match(await client.callTool({ name: 'mail_whoami' }), { content: [{ text: 'alice' }] })

  await t.test('the login is stored as the proxy stores it, for the user alone', async (t) => {
    t.ok(local.kept(server.url))
    for (const file of readdirSync(state)) t.equal(statSync(join(state, file)).mode & 0o777, 0o600, file)
    const proxy = await startLoginProxy(t, server.url, state)
    t.match(await proxy.callWhoami(), /alice/)
    t.equal(proxy.logins(), 0, 'the proxy does not ask the user again')
  })
})

await t.test('a restart keeps the login', async (t) => {
  const server = await startProtectedServer(t)
  const state = t.testdir({})
  const first = await startSignInServer(t, { mail: server.url }, state)
  await backendState(first, 'mail', isWaiting)
  await signIn(first)
  await backendState(first, 'mail', isHealthy)
  await first.vmcp.close()
  const second = await startSignInServer(t, { mail: server.url }, state)
  await backendState(second, 'mail', isHealthy)
  const client = await connect('sdk1', second.url)
  t.teardown(() => client.close())
  t.equal(await client.callText('mail_whoami'), 'alice')
})

await t.test('a login by gatehouse proxy is used, also while the server runs', async (t) => {
  const server = await startProtectedServer(t)
  const state = t.testdir({})
  const local = await startSignInServer(t, { mail: server.url }, state)
  await backendState(local, 'mail', isWaiting)
  const proxy = await startLoginProxy(t, server.url, state)
  t.match(await proxy.callWhoami(), /alice/)
  t.equal(proxy.logins(), 1)
  await local.vmcp.view.recheck('mail')
  await backendState(local, 'mail', isHealthy)
})

async function signedIn(t: SubTest, options?: Parameters<typeof startProtectedServer>[1]): Promise<Rig> {
  const server = await startProtectedServer(t, options)
  const local = await startSignInServer(t, { mail: server.url }, t.testdir({}))
  await backendState(local, 'mail', isWaiting)
  await signIn(local)
  await backendState(local, 'mail', isHealthy)
  const client = await connect('sdk1', local.url)
  t.teardown(() => client.close())
  t.equal(await client.callText('mail_whoami'), 'alice')
  return { server, local, call: () => client.callText('mail_whoami') }
}

type SubTest = Pick<typeof t, 'teardown' | 'testdir' | 'equal'>

interface Rig {
  readonly server: ProtectedServer
  readonly local: SignInServer
  readonly call: () => Promise<string>
}

await t.test('an expired token is renewed before a call', async (t) => {
  // A token with less than ten seconds left counts as expired.
  const { server, call } = await signedIn(t, { accessTtl: 5 })
  const before = server.tokenRequests()
  t.equal(await call(), 'alice')
  t.ok(server.tokenRequests() > before)
})

await t.test('a rejected token is renewed during the call', async (t) => {
  const { server, call } = await signedIn(t)
  const before = server.tokenRequests()
  server.rejectTokens()
  t.equal(await call(), 'alice')
  t.equal(server.tokenRequests(), before + 1)
})

await t.test(
  'a revoked refresh token: the sign-in state returns, the call reports it, and a new login works',
  async (t) => {
    const { server, local } = await signedIn(t)
    const client = await plainClient(t, local)
    await client.listTools()
    await revokeLogin(local, server)
    server.rejectTokens()
    const refused = await client.callTool({ name: 'mail_whoami' })
    t.match(refused, { isError: true, content: [{ text: `sign in at ${local.vmcp.origin}/sign-in/mail` }] })
    await backendState(local, 'mail', isWaiting)
    t.equal(local.kept(server.url), undefined)
    t.same((await client.listTools()).tools, [])
    const again = await client.callTool({ name: 'mail_whoami' })
    t.match(again, { isError: true, content: [{ text: `sign in at ${local.vmcp.origin}/sign-in/mail` }] })
    await signIn(local)
    await backendState(local, 'mail', isHealthy)
    t.match(await client.callTool({ name: 'mail_whoami' }), { content: [{ text: 'alice' }] })
  },
)

await t.test('without the key in the environment, nothing changes', async (t) => {
  const server = await startProtectedServer(t)
  const local = await startSignInServer(t, { mail: server.url }, t.testdir({}), { key: '' })
  const report = await backendState(local, 'mail', ({ health }) => health === 'unauthenticated')
  t.match(report.last_error, { category: 'authentication_failed' })
  t.equal(report.sign_in_url, undefined)
  t.equal((await fetch(local.address())).status, 404)
})

await t.test('configured credentials are used instead of a login', async (t) => {
  const server = await startProtectedServer(t)
  const outgoingAuth = {
    source: 'inline',
    default: { type: 'bearer_token', bearerToken: { tokenEnv: 'TOKEN' } },
  }
  const local = await startSignInServer(t, { mail: server.url }, t.testdir({}), {
    more: { outgoingAuth },
    env: { TOKEN: 'wrong' },
  })
  await local.vmcp.view.recheck('mail')
  const report = await backendState(local, 'mail', () => true)
  t.equal(report.sign_in_url, undefined)
  t.equal((await fetch(local.address())).status, 404)
})

await t.test(
  'only a call needs the login: the tools are listed, and the call names the address',
  async (t) => {
    const server = await startProtectedServer(t)
    server.listsAreOpen = true
    const local = await startSignInServer(t, { mail: server.url }, t.testdir({}))
    await backendState(local, 'mail', isHealthy)
    const client = await plainClient(t, local)
    t.equal((await client.listTools()).tools.length, 2)
    const refused = await client.callTool({ name: 'mail_whoami' })
    t.match(refused, { isError: true, content: [{ text: `sign in at ${local.vmcp.origin}/sign-in/mail` }] })
    await backendState(
      local,
      'mail',
      ({ health, sign_in_url: url }) => health === 'healthy' && url !== undefined,
    )
    await signIn(local)
    t.match(await client.callTool({ name: 'mail_whoami' }), { content: [{ text: 'alice' }] })
  },
)

await t.test(
  'a call that needs more scopes: other calls work, and the next login requests them',
  async (t) => {
    const { local, call } = await signedIn(t)
    const client = await plainClient(t, local)
    const refused = await client.callTool({ name: 'mail_write' })
    t.match(refused, { isError: true, content: [{ text: `sign in at ${local.vmcp.origin}/sign-in/mail` }] })
    t.equal(await call(), 'alice')
    await backendState(
      local,
      'mail',
      ({ health, sign_in_url: url }) => health === 'healthy' && url !== undefined,
    )
    await signIn(local)
    await backendState(local, 'mail', isHealthy)
    t.match(await client.callTool({ name: 'mail_write' }), { content: [{ text: 'written' }] })
  },
)

await t.test(
  'a plain 401 requires a login only if the backend publishes its authorization server',
  async (t) => {
    const [server, other] = [await startProtectedServer(t), await startProtectedServer(t)]
    server.challenges = false
    other.challenges = false
    other.document = { authorization_servers: [] }
    const local = await startSignInServer(t, { mail: server.url, other: other.url }, t.testdir({}))
    await backendState(local, 'mail', isWaiting)
    await signIn(local)
    await backendState(local, 'mail', isHealthy)
    const report = await backendState(local, 'other', ({ health }) => health === 'unauthenticated')
    t.match(report.last_error, { category: 'authentication_failed' })
    t.equal(report.sign_in_url, undefined)
  },
)

await t.test(
  'with partialFailureMode fail, a backend that waits for its user does not fail the others',
  async (t) => {
    const server = await startProtectedServer(t)
    const open = await startFixture()
    t.teardown(() => open.close())
    const operational = { failureHandling: { partialFailureMode: 'fail' } }
    const backends = { mail: server.url, other: open.url }
    const local = await startSignInServer(t, backends, t.testdir({}), { more: { operational } })
    await backendState(local, 'mail', isWaiting)
    await backendState(local, 'other', isHealthy)
    const client = await plainClient(t, local)
    t.ok((await client.listTools()).tools.some(({ name }) => name === 'other_test_simple_text'))
  },
)

await t.test('a provider that is down during a renewal does not end the login', async (t) => {
  let isDown = false
  const intercept: ProtectedServerOptions['intercept'] = (_req, res) => {
    if (isDown) res.destroy()
    return isDown
  }
  const { server, local, call } = await signedIn(t, { intercept })
  isDown = true
  server.rejectTokens()
  t.match(await call(), /^!.*temporarily unavailable/)
  t.ok(local.kept(server.url))
  t.equal((await backendState(local, 'mail', () => true)).sign_in_url, undefined)
  isDown = false
  t.equal(await call(), 'alice')
})

await t.test('a stateless client with URL elicitation is asked to open the address', async (t) => {
  const server = await startProtectedServer(t)
  const local = await startSignInServer(t, { mail: server.url }, t.testdir({}))
  await backendState(local, 'mail', isWaiting)
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'c', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': { elicitation: { url: {} } },
  }
  const params = { name: 'mail_whoami', arguments: {}, _meta: meta }
  const response = await fetch(local.url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'mail_whoami',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
  })
  const text = await response.text()
  t.match(text, '"resultType":"input_required"')
  t.match(text, `"url":"${local.vmcp.origin}/sign-in/mail"`)
})
