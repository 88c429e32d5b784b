/**
 * The environment of a gateway with an embedded authorization server in end-to-end tests: real OpenID providers with
 * login forms, MCP backends that ask the provider whose token they received, key files, and the gateway process.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type { Test } from 'tap'
import { type RunningGatehouse, startGatehouse } from '../gatehouse.ts'
import { startOidcProvider, type TestProvider } from './oidc-provider.ts'
import type { Certificates } from '../redis.ts'

type Scope = Pick<Test, 'teardown'>

export const upstreamSecretVariable = 'TEST_UPSTREAM_SECRET'
const upstreamSecret = 'upstream-secret-of-the-gateway'

export interface FormProvider extends TestProvider {
  /** Replaces the token endpoint's response. */
  failure: 'down' | 'refuse' | undefined
}

const longLives = Object.fromEntries(
  ['AuthorizationCode', 'Grant', 'IdToken', 'Interaction', 'RefreshToken', 'Session'].map((name) => [
    name,
    90 * 86_400,
  ]),
)

/** Starts a provider with its own login and consent forms at an https address, for the gateway at `gateway`. */
export async function startFormProvider(
  t: Scope,
  gateway: string,
  { certFile, keyFile }: Certificates,
): Promise<FormProvider> {
  let made: FormProvider | undefined
  const provider = await startOidcProvider({
    features: { devInteractions: { enabled: true } },
    tls: { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') },
    // The gateway's clock is ahead of the provider's, so tokens that the gateway checks must live long enough.
    configuration: { ttl: { ...longLives, AccessToken: 3600 } },
    clients: [
      {
        client_id: 'gatehouse',
        client_secret: upstreamSecret,
        // Default: `{resourceUrl}/oauth/callback`.
        redirect_uris: [`${gateway}/mcp/oauth/callback`],
        grant_types: ['authorization_code', 'refresh_token'],
      },
    ],
    intercept(req, res) {
      if (made === undefined) return false
      if (req.url?.startsWith('/interaction/')) {
        // Shows the provider's own forms instead of approving automatically.
        void made.provider.callback()(req, res)
        return true
      }
      if (made.failure === undefined || req.method !== 'POST' || !req.url?.startsWith('/token')) return false
      res.writeHead(made.failure === 'down' ? 503 : 400, { 'content-type': 'application/json' })
      res.end(made.failure === 'down' ? '{}' : '{"error":"invalid_grant"}')
      return true
    },
  })
  made = Object.assign(provider, { failure: undefined })
  t.teardown(() => provider.close())
  return made
}

export interface Backend {
  readonly url: string
  /** Header blocks of all MCP requests. */
  readonly seen: readonly IncomingMessage['headers'][]
}

/**
 * Starts an MCP server whose tool `whoami` asks the provider whose token the call contained. Without a provider, the
 * server requires no token and returns the credentials that it received. `alsoNamed` does the same.
 */
export async function startBackend(
  t: Scope,
  provider?: TestProvider,
  alsoNamed: readonly string[] = [],
): Promise<Backend> {
  const seen: IncomingMessage['headers'][] = []
  const server = createServer((req, res) => {
    seen.push(req.headers)
    void response(req, res, provider, alsoNamed)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const address = server.address()
  return { url: `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}/mcp`, seen }
}

async function response(
  req: IncomingMessage,
  res: ServerResponse,
  provider: TestProvider | undefined,
  alsoNamed: readonly string[],
): Promise<void> {
  const { authorization, cookie } = req.headers
  if (provider !== undefined && authorization === undefined) {
    res.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
    return
  }
  const mcp = new McpServer({ name: 'who', version: '1' })
  for (const name of ['whoami', ...alsoNamed]) {
    mcp.registerTool(name, { description: 'whose token was sent' }, async () => ({
      content: [
        {
          type: 'text',
          text:
            provider === undefined
              ? `authorization: ${authorization ?? 'none'}, cookie: ${cookie ?? 'none'}`
              : await userOf(provider, authorization ?? ''),
        },
      ],
    }))
  }
  const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true })
  await mcp.connect(transport)
  await transport.handleRequest(req, res)
}

async function userOf({ provider, issuer }: TestProvider, authorization: string): Promise<string> {
  const token = await provider.AccessToken.find(authorization.replace(/^Bearer /, ''))
  return token === undefined ? 'a token that the provider does not know' : `${token.accountId} at ${issuer}`
}

export interface Keys {
  readonly signing: readonly string[]
  readonly hmac: readonly string[]
  /** Adds a new signing key. The previous key still verifies. */
  rotate(): void
}

/** Writes key files in the layout of a mounted Secret. */
export function makeKeys(dir: string): Keys {
  const pem = (): string =>
    generateKeyPairSync('ec', { namedCurve: 'P-256' })
      .privateKey.export({ type: 'pkcs8', format: 'pem' })
      .toString()
  const signing = [join(dir, 'key-0.pem'), join(dir, 'key-1.pem')]
  const hmac = [join(dir, 'hmac-0')]
  let current = pem()
  const write = (first: string, second: string): void => {
    writeFileSync(signing[0] ?? '', first)
    writeFileSync(signing[1] ?? '', second)
  }
  write(current, pem())
  writeFileSync(hmac[0] ?? '', randomBytes(48).toString('base64url'))
  return {
    signing,
    hmac,
    rotate() {
      const next = pem()
      write(next, current)
      current = next
    },
  }
}

/** Returns the authorization server's file as JSON, which is valid YAML. */
export function authServerFile(options: {
  readonly origin: string
  readonly providers: Readonly<Record<string, TestProvider>>
  readonly keys: Keys
  readonly more?: Readonly<Record<string, unknown>>
}): string {
  const { origin, keys } = options
  return JSON.stringify({
    issuer: origin,
    allowedAudiences: [`${origin}/mcp`],
    signingKeyFiles: keys.signing,
    hmacSecretFiles: keys.hmac,
    upstreamProviders: Object.entries(options.providers).map(([name, provider]) => ({
      name,
      type: 'oidc',
      oidcConfig: {
        issuerUrl: provider.issuer,
        clientId: 'gatehouse',
        clientSecretEnv: upstreamSecretVariable,
      },
    })),
    ...options.more,
  })
}

/** `incomingAuth.oidc`, or `oidc` in a proxy's file. */
export function oidcOf(origin: string) {
  return {
    issuer: origin,
    audience: `${origin}/mcp`,
    clientId: 'gateway',
    resource: `${origin}/mcp`,
    scopes: ['openid', 'offline_access'],
  }
}

export interface Gateway {
  readonly running: () => RunningGatehouse
  /**
   * Sends a signal to the process, waits for its end, and starts it again with the same files. `path` is the program of
   * another version.
   */
  restart(path?: string): Promise<void>
  /** Moves the clock of the current process ahead. A restarted process has the normal time again. */
  ahead(ms: number): Promise<void>
}

/** Starts `gatehouse` from source. `ready` matches the line that it prints when it listens. */
export async function startGateway(
  t: Scope,
  options: {
    readonly args: readonly string[]
    readonly dir: string
    readonly ready: RegExp
    readonly env?: NodeJS.ProcessEnv
  },
): Promise<Gateway> {
  const clock = join(options.dir, 'clock')
  const env = {
    ...process.env,
    [upstreamSecretVariable]: upstreamSecret,
    NODE_OPTIONS: `--import=${join(import.meta.dirname, '../moved-clock.ts')}`,
    TEST_CLOCK_FILE: clock,
    ...options.env,
  }
  const start = async (path?: string): Promise<RunningGatehouse> => {
    const started = startGatehouse(options.args, env, path)
    await started.waitFor(options.ready)
    return started
  }
  let running = await start()
  let moves = 0
  t.teardown(() => running.interrupt())
  return {
    running: () => running,
    async restart(path) {
      await running.interrupt()
      running = await start(path)
      moves = 0
    },
    async ahead(ms) {
      writeFileSync(clock, String(ms))
      moves += 1
      const said = running.waitFor(new RegExp(`the clock is ${ms} ms ahead, move ${moves}\\n`))
      running.child.kill('SIGUSR2')
      await said
    },
  }
}

/** Returns the ids of the published keys. */
export async function publishedKeys(origin: string): Promise<readonly string[]> {
  const response = await fetch(`${origin}/.well-known/jwks.json`)
  const { keys } = (await response.json()) as { keys: { kid: string }[] }
  return keys.map(({ kid }) => kid)
}

/** Waits until the server publishes a new key. */
export async function newKey(origin: string, before: readonly string[]): Promise<string> {
  for (;;) {
    const added = (await publishedKeys(origin)).find((kid) => !before.includes(kid))
    if (added !== undefined) return added
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
