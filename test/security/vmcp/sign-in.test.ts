/** Attacks on the user's login at a backend: by web pages, other users, other browsers, and servers. */
import { createServer, request, type RequestListener } from 'node:http'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { UrlElicitationRequiredError } from '@modelcontextprotocol/sdk/types.js'
import type { Test } from 'tap'
import t from 'tap'
import { makeLog } from '../../../runtime/observe/index.ts'
import { Browser } from '../../helpers/authserver/cookie-browser.ts'
import {
  backendState,
  type ProtectedServer,
  type ProtectedServerOptions,
  type SignInServer,
  type SignInServerOptions,
  startProtectedServer,
  startSignInServer,
} from '../../helpers/sign-in/rig.ts'

t.setTimeout(120_000)

interface Rig {
  readonly server: ProtectedServer
  readonly local: SignInServer
  readonly log: readonly string[]
}

async function startRig(
  t: Pick<Test, 'teardown' | 'testdir'>,
  provider: ProtectedServerOptions = {},
  options: (server: ProtectedServer) => SignInServerOptions = () => ({}),
): Promise<Rig> {
  const lines: string[] = []
  const log = makeLog({ level: 'debug', destination: { write: (line) => void lines.push(line) } })
  const server = await startProtectedServer(t, provider)
  const local = await startSignInServer(t, { mail: server.url }, t.testdir({}), { log, ...options(server) })
  await backendState(local, 'mail', ({ sign_in_url: url }) => url !== undefined)
  return { server, local, log: lines }
}

const gatewayClient = {
  client_id: 'gateway',
  client_secret: 'planted',
  redirect_uris: ['https://client.example/callback'],
}

const callback = 'http://localhost:'

/** Follows a login up to the callback, without calling it. */
async function loginUntilCallback(local: SignInServer, browser: Browser): Promise<URL> {
  const entrance = await browser.open(local.address(), callback)
  const { url } = await browser.open(entrance.url, `${entrance.url.origin}/callback`)
  return url
}

async function titleOf(browser: Browser, url: URL | string): Promise<string> {
  const { text } = await browser.open(url)
  return /<h1>(.*?)<\/h1>/.exec(text)?.[1] ?? text
}

await t.test(
  'a login starts only with the key, on a local host name, without a foreign origin',
  async (t) => {
    const { server, local } = await startRig(t)
    const plain = `${local.vmcp.origin}/sign-in/mail`
    const before = server.idp.requests.length
    for (const url of [
      plain,
      `${plain}?key=`,
      `${plain}?key=wrong`,
      `${local.vmcp.origin}/sign-in/unknown`,
    ]) {
      const response = await fetch(url, { redirect: 'manual' })
      t.equal(response.status, 403)
      t.match(await response.text(), /Start this login from your terminal/)
    }
    const foreign = await fetch(local.address(), {
      headers: { origin: 'https://evil.example' },
      redirect: 'manual',
    })
    t.equal(foreign.status, 403)
    t.equal((await fetch(local.address(), { method: 'POST' })).status, 405)
    t.equal(await statusWithHost(local, 'evil.example'), 403)
    t.equal(server.idp.requests.length, before, 'the provider received no request')
    t.equal((await fetch(local.address('unknown'), { redirect: 'manual' })).status, 404)
  },
)

function statusWithHost(local: SignInServer, host: string): Promise<number | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>()
  request(local.address(), { headers: { host } }, (response) => {
    response.resume()
    resolve(response.statusCode)
  })
    .on('error', reject)
    .end()
  return promise
}

await t.test('a forged state, another browser, and a repeated callback are ignored', async (t) => {
  const { server, local } = await startRig(t)
  const browser = new Browser()
  const target = await loginUntilCallback(local, browser)
  const forged = new URL(target)
  forged.searchParams.set('state', 'forged')
  const before = server.tokenRequests()
  t.equal(await titleOf(browser, forged), 'This link is not valid')
  t.equal(await titleOf(new Browser(), target), 'This link is not valid', 'without the cookie')
  const other = new Browser()
  other.setCookie(target, `gatehouse_login_${target.port}`, 'forged')
  t.equal(await titleOf(other, target), 'This link is not valid', 'with a wrong cookie')
  t.equal(server.tokenRequests(), before, 'the code was not redeemed')
  t.equal(await titleOf(browser, target), 'You are signed in')
  t.equal(server.tokenRequests(), before + 1)
})

await t.test('a login link works once, and is no login without the key', async (t) => {
  const { local } = await startRig(t)
  const entrance = await new Browser().open(local.address(), callback)
  const [browser, thief] = [new Browser(), new Browser()]
  const first = await browser.open(entrance.url, `${entrance.url.origin}/callback`)
  t.ok(first.url.searchParams.get('code'))
  t.equal(await titleOf(thief, entrance.url), 'This link is not valid')
  const guessed = new URL(entrance.url)
  guessed.searchParams.set('ticket', 'x'.repeat(43))
  t.equal(await titleOf(thief, guessed), 'This link is not valid')
})

await t.test('the number of login links is bounded, and the oldest becomes invalid', async (t) => {
  const { local } = await startRig(t)
  const entrances: URL[] = []
  for (let i = 0; i < 17; i++) entrances.push((await new Browser().open(local.address(), callback)).url)
  const [first, second] = entrances
  t.ok(first && second)
  t.equal(new Set(entrances.map(({ port }) => port)).size, 1, 'one login is in progress')
  t.equal(await titleOf(new Browser(), first ?? ''), 'This link is not valid')
  t.equal(await titleOf(new Browser(), second ?? ''), 'You are signed in')
})

await t.test('two logins at the same time: the first browser to finish signs in', async (t) => {
  const { server, local } = await startRig(t)
  const [one, two] = [new Browser(), new Browser()]
  const first = await loginUntilCallback(local, one)
  const second = await loginUntilCallback(local, two)
  const before = server.tokenRequests()
  t.equal(await titleOf(two, second), 'You are signed in')
  await t.rejects(one.open(first), 'the login is over')
  t.equal(server.tokenRequests(), before + 1)
  await backendState(local, 'mail', ({ health }) => health === 'healthy')
  t.equal(await titleOf(new Browser(), local.address()), 'You are signed in', 'no second login starts')
})

await t.test('two backends sign in at the same time', async (t) => {
  const [mail, work] = [await startProtectedServer(t), await startProtectedServer(t)]
  const local = await startSignInServer(t, { mail: mail.url, work: work.url }, t.testdir({}))
  const browser = new Browser()
  const targets: URL[] = []
  for (const name of ['mail', 'work']) {
    await backendState(local, name, ({ sign_in_url: url }) => url !== undefined)
    const entrance = await browser.open(local.address(name), callback)
    targets.push((await browser.open(entrance.url, `${entrance.url.origin}/callback`)).url)
  }
  for (const target of targets) t.equal(await titleOf(browser, target), 'You are signed in')
  for (const name of ['mail', 'work']) await backendState(local, name, ({ health }) => health === 'healthy')
})

async function failedLogin(t: Test, { local }: Rig): Promise<void> {
  const page = await new Browser().open(local.address())
  t.equal(page.status, 502)
  t.match(page.text, /The login failed/)
  t.notMatch(page.text, /169\.254/)
  await backendState(local, 'mail', ({ sign_in_url: url }) => url !== undefined)
}

await t.test('the provider is down: the login fails, and works later', async (t) => {
  let isDown = true
  const intercept: ProtectedServerOptions['intercept'] = (_req, res) => {
    if (isDown) res.destroy()
    return isDown
  }
  const rig = await startRig(t, { intercept })
  await failedLogin(t, rig)
  isDown = false
  t.equal(await titleOf(new Browser(), rig.local.address()), 'You are signed in')
})

await t.test('metadata with a foreign issuer: the browser is not redirected', async (t) => {
  const rig = await startRig(t)
  const impostor = await listen(t, (_req, res) => {
    res.setHeader('content-type', 'application/json')
    res.end(
      JSON.stringify({
        issuer: rig.server.idp.issuer,
        authorization_endpoint: `${impostor}/auth`,
        token_endpoint: `${impostor}/token`,
        registration_endpoint: `${impostor}/reg`,
        code_challenge_methods_supported: ['S256'],
      }),
    )
  })
  rig.server.document = { authorization_servers: [impostor] }
  await failedLogin(t, rig)
})

await t.test('a redirect to a metadata address is not followed', async (t) => {
  const rig = await startRig(t)
  const redirecting = await listen(t, (_req, res) =>
    res.writeHead(302, { location: 'https://169.254.169.254/latest/meta-data' }).end(),
  )
  for (const issuer of [redirecting, 'https://169.254.169.254']) {
    rig.server.document = { authorization_servers: [issuer] }
    await failedLogin(t, rig)
  }
  t.match(rig.log.join(''), /refused to connect to 169\.254\.169\.254/)
})

async function listen(t: Pick<Test, 'teardown'>, listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`
}

await t.test('no log contains the key, a ticket, a state, a code or a token', async (t) => {
  const { server, local, log } = await startRig(t)
  const browser = new Browser()
  const target = await loginUntilCallback(local, browser)
  t.equal(await titleOf(browser, target), 'You are signed in')
  await backendState(local, 'mail', ({ health }) => health === 'healthy')
  const { tokens } = local.kept(server.url) ?? {}
  const visited = browser.visited.flatMap((url) => [...new URL(url).searchParams.values()])
  const secrets = [...visited, tokens?.accessToken ?? '', tokens?.refreshToken ?? ''].filter(
    (text) => text.length > 20 && !text.startsWith('http'),
  )
  t.ok(secrets.length >= 6)
  const text = log.join('')
  t.match(text, /signed in to the target/)
  for (const secret of secrets) t.notOk(text.includes(secret), secret)
})

await t.test(
  'a call that needs the login: the address with the key goes only to authenticated callers',
  async (t) => {
    const callers = { resources: { 'https://gateway.example': {} }, clients: [gatewayClient] }
    const anonymous = await startRig(t, callers)
    t.same(await elicited(t, anonymous.local, {}), [`${anonymous.local.vmcp.origin}/sign-in/mail`])

    const authenticated = await startRig(t, callers, ({ idp }) => {
      const oidc = { issuer: idp.issuer, clientId: 'gateway', audience: 'https://gateway.example' }
      return { more: { incomingAuth: { type: 'oidc', oidc } } }
    })
    const { idp } = authenticated.server
    const token = await idp.accessToken({ clientId: 'gateway', resource: 'https://gateway.example' })
    const addresses = await elicited(t, authenticated.local, { authorization: `Bearer ${token}` })
    t.same(addresses, [authenticated.local.address()])
  },
)

/** The URLs that a client with URL elicitation is asked to open. */
async function elicited(
  t: Pick<Test, 'teardown'>,
  local: SignInServer,
  headers: Record<string, string>,
): Promise<readonly string[]> {
  const client = new Client({ name: 'c', version: '1' }, { capabilities: { elicitation: { url: {} } } })
  const transport = new StreamableHTTPClientTransport(new URL(local.url), { requestInit: { headers } })
  await client.connect(transport)
  t.teardown(() => client.close())
  try {
    await client.callTool({ name: 'mail_whoami' })
  } catch (error) {
    if (error instanceof UrlElicitationRequiredError) return error.elicitations.map(({ url }) => url)
    throw error
  }
  return []
}
