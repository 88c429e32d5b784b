/**
 * MCP clients of both SDK generations that sign in with OAuth, and their user in a real Chromium. The user reads the
 * consent page, types name and password at every provider, and ends on the client's own page.
 */
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from '@modelcontextprotocol/client'
import type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { type Browser, chromium } from 'playwright-core'
import file, { type Test } from 'tap'

const executablePath = '/usr/bin/chromium'

export const missingBrowser: string | false = existsSync(executablePath)
  ? false
  : 'chromium is not installed on this machine: logins were NOT tested'

type Scope = Pick<Test, 'teardown'>

let started: { readonly of: unknown; readonly browser: Browser } | undefined

/**
 * Returns the Chromium that all tests of a file share, because starting it takes longer than most tests. The contexts
 * of a test share neither cookies nor caches, and are closed when the test ends.
 */
export async function openBrowser(t: Scope): Promise<Browser> {
  const { browser } = started?.of === file && started.browser.isConnected() ? started : await startBrowser()
  const others = new Set(browser.contexts())
  t.teardown(async () => {
    const own = browser.contexts().filter((context) => !others.has(context))
    await Promise.all(own.map((context) => context.close()))
  })
  return browser
}

async function startBrowser(): Promise<{ readonly browser: Browser }> {
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
  file.teardown(() => browser.close())
  started = { of: file, browser }
  return started
}

/** The client's own page, to which the last redirect sends the code. */
export interface Landing {
  readonly redirectUri: string
  /** Query of the next visit. */
  next(): Promise<URLSearchParams>
}

export async function startLanding(t: Scope): Promise<Landing> {
  let arrived: (query: URLSearchParams) => void = () => {}
  const server = createServer((req, res) => {
    const url = new URL(req.url ?? '/', 'http://127.0.0.1')
    res.setHeader('content-type', 'text/html')
    res.end('<title>done</title><p>signed in</p>')
    if (url.pathname === '/callback') arrived(url.searchParams)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return {
    redirectUri: `http://127.0.0.1:${port}/callback`,
    next: () => new Promise((resolve) => (arrived = resolve)),
  }
}

export interface SeenLogin {
  /** Titles of the pages, in order. */
  readonly titles: readonly string[]
  readonly query: URLSearchParams
}

/** Signs in as `account` in every form, and approves every request. */
export async function signIn(
  browser: Browser,
  landing: Landing,
  start: URL,
  account: string,
): Promise<SeenLogin> {
  const context = await browser.newContext({ ignoreHTTPSErrors: true })
  const page = await context.newPage()
  const titles: string[] = []
  const arrival = landing.next()
  try {
    await page.goto(start.href)
    for (let step = 0; step < 12; step++) {
      const url = page.url()
      if (url.startsWith(landing.redirectUri)) break
      titles.push(await page.title())
      const name = page.locator('input[name=login]')
      if ((await name.count()) > 0) {
        await name.fill(account)
        await page.locator('input[name=password]').fill('secret')
      }
      const approve = page.locator('button[value=approve]')
      const button = (await approve.count()) > 0 ? approve : page.locator('button[type=submit]').first()
      await Promise.all([page.waitForURL((next) => next.href !== url), button.click()])
    }
    return { titles, query: await arrival }
  } finally {
    await context.close()
  }
}

export interface StoringProvider extends OAuthClientProvider {
  /** URL to which the client sent its user. */
  readonly sentTo: () => URL | undefined
  readonly clientId: () => string
  readonly accessToken: () => string
}

/** Authorization state of an MCP client. The client registers dynamically unless it has a metadata document. */
export function storingProvider(landing: Landing, clientMetadataUrl?: string): StoringProvider {
  const stored = new Map<string, unknown>()
  let sent: URL | undefined
  return {
    redirectUrl: landing.redirectUri,
    ...(clientMetadataUrl === undefined ? {} : { clientMetadataUrl }),
    clientMetadata: {
      redirect_uris: [landing.redirectUri],
      client_name: 'Desk client',
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
    },
    clientInformation: () => stored.get('client') as never,
    saveClientInformation: (client) => void stored.set('client', client),
    tokens: () => stored.get('tokens') as never,
    saveTokens: (tokens) => void stored.set('tokens', tokens),
    invalidateCredentials: (what) => void (what === 'tokens' && stored.delete('tokens')),
    redirectToAuthorization: (url) => void (sent = url),
    saveCodeVerifier: (verifier) => void stored.set('verifier', verifier),
    codeVerifier: () => String(stored.get('verifier')),
    sentTo: () => sent,
    clientId: () => (stored.get('client') as { client_id: string }).client_id,
    accessToken: () => (stored.get('tokens') as { access_token: string }).access_token,
  }
}

export type Generation = 'sdk1' | 'sdk2'

/** Operations that every client supports once its user has signed in. */
export interface WorkingClient {
  readonly login: SeenLogin
  clientId(): string
  /** The current access token. */
  accessToken(): string
  listTools(): Promise<readonly string[]>
  /** Text of the first content item, with the prefix `!` for an error result. */
  call(name: string): Promise<string>
  close(): Promise<void>
}

export interface SignedInClient extends WorkingClient {
  readonly provider: StoringProvider
}

interface Sdk {
  listTools(): Promise<{ tools: { name: string }[] }>
  callTool(params: { name: string; arguments: object }): Promise<Record<string, unknown>>
  close(): Promise<void>
}

interface Attempt {
  readonly connect: () => Promise<Sdk>
  readonly finish: (query: URLSearchParams) => Promise<void>
}

function attemptOf(generation: Generation, url: string, authProvider: StoringProvider): Attempt {
  if (generation === 'sdk1') {
    const transport = new Transport1(new URL(url), { authProvider })
    return {
      finish: (query) => transport.finishAuth(query.get('code') ?? ''),
      async connect() {
        const client = new Client1({ name: 'sdk1', version: '1' })
        await client.connect(transport)
        return client as never
      },
    }
  }
  const transport = new Transport2(new URL(url), { authProvider: authProvider as never })
  return {
    finish: (query) => transport.finishAuth(query),
    async connect() {
      const client = new Client2({ name: 'sdk2', version: '1' })
      await client.connect(transport)
      return client as never
    },
  }
}

/**
 * Connects without any stored state: the client is rejected, discovers the server, registers, signs its user in, gets
 * tokens and connects.
 */
export async function connectSignedIn(options: {
  readonly generation: Generation
  readonly url: string
  readonly provider: StoringProvider
  readonly login: (start: URL) => Promise<SeenLogin>
}): Promise<SignedInClient> {
  const { generation, url, provider } = options
  const first = attemptOf(generation, url, provider)
  const refused = await first.connect().then(
    () => undefined,
    (error: unknown) => error,
  )
  const start = provider.sentTo()
  if (refused === undefined || start === undefined) {
    throw new Error(`the client was not sent away to sign in: ${String(refused)}`)
  }
  const login = await options.login(start)
  await first.finish(login.query)
  const client = await attemptOf(generation, url, provider).connect()
  return {
    provider,
    login,
    clientId: provider.clientId,
    accessToken: provider.accessToken,
    listTools: async () => (await client.listTools()).tools.map(({ name }) => name),
    async call(name) {
      const result = await client.callTool({ name, arguments: {} })
      const [content] = result['content'] as { text?: string }[]
      return `${result['isError'] === true ? '!' : ''}${content?.text ?? ''}`
    },
    close: () => client.close(),
  }
}
