/**
 * A real MCP server behind a real OpenID provider, and a virtual server that lets its user sign in there. The tools are
 * `whoami`, which returns the account, and `write`, which requires the scope `write`.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import type { Test } from 'tap'
import { parseTarget, resolveProxyConfig, userLogin } from '../../../runtime/config/index.ts'
import { type Log, silentLog } from '../../../runtime/net/index.ts'
import { isKeptLogin, type KeptLogin, persistedName } from '../../../runtime/outgoing/login/kept-login.ts'
import { persistInDirectory } from '../../../runtime/outgoing/login/persisted.ts'
import { runProxy } from '../../../runtime/proxy/index.ts'
import type { VmcpServer } from '../../../runtime/vmcp/index.ts'
import { Browser } from '../authserver/cookie-browser.ts'
import {
  startOidcProvider,
  type TestProvider,
  type TestProviderOptions,
} from '../authserver/oidc-provider.ts'
import { freePort } from '../gatehouse.ts'
import { startTestVmcp } from '../vmcp/vmcp.ts'

const signInKey = 'planted-sign-in-key-planted-sign-in-key'

export interface ProtectedServer {
  readonly url: string
  readonly idp: TestProvider
  /** Number of requests for tokens. */
  readonly tokenRequests: () => number
  /** Rejects all access tokens that were accepted until now. */
  rejectTokens(): void
  /** Replaces the members of the protected-resource document. */
  document: Readonly<Record<string, unknown>>
  /** False: a rejection is a plain 401. */
  challenges: boolean
  /** True: requests need no token, except calls of `whoami`. */
  listsAreOpen: boolean
}

export interface ProtectedServerOptions extends TestProviderOptions {
  /** Lifetime of access tokens in seconds. Default 3600. */
  readonly accessTtl?: number
}

export async function startProtectedServer(
  t: Pick<Test, 'teardown'>,
  { accessTtl = 3600, ...provider }: ProtectedServerOptions = {},
): Promise<ProtectedServer> {
  const rejected = new Set<string>()
  const accepted = new Set<string>()
  const http = createServer((req, res) => void handle(req, res))
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const address = http.address()
  const origin = `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`
  const url = `${origin}/mcp`
  const idp = await startOidcProvider({
    resources: { [url]: {} },
    ...provider,
    configuration: {
      ttl: {
        AccessToken: accessTtl,
        Grant: 86_400,
        IdToken: 3600,
        Interaction: 600,
        RefreshToken: 86_400,
        Session: 600,
      },
      ...provider.configuration,
    },
  })
  const keys = createRemoteJWKSet(new URL(`${idp.issuer}/jwks`))
  const server: ProtectedServer = {
    url,
    idp,
    tokenRequests: () => idp.requests.filter((path) => path === '/token').length,
    rejectTokens() {
      for (const token of accepted) rejected.add(token)
    },
    document: {},
    challenges: true,
    listsAreOpen: false,
  }
  t.teardown(async () => {
    http.close()
    http.closeAllConnections()
    await idp.close()
  })

  async function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    if (req.url === '/.well-known/oauth-protected-resource/mcp') {
      res.setHeader('content-type', 'application/json')
      const document = { resource: url, authorization_servers: [idp.issuer], scopes_supported: ['read'] }
      res.end(JSON.stringify({ ...document, ...server.document }))
      return
    }
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk as Buffer)
    const body: unknown = chunks.length > 0 ? JSON.parse(Buffer.concat(chunks).toString()) : undefined
    const text = JSON.stringify(body ?? {})
    const metadata = `resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`
    const claims = await claimsOf(req.headers.authorization)
    const isOpen = server.listsAreOpen && !text.includes('"tools/call"')
    if (!claims && !isOpen) {
      res.writeHead(401, server.challenges ? { 'www-authenticate': `Bearer ${metadata}` } : {}).end()
      return
    }
    if (text.includes('"name":"write"') && !claims?.scopes.includes('write')) {
      const challenge = `Bearer error="insufficient_scope", scope="write", ${metadata}`
      res.writeHead(403, { 'www-authenticate': challenge }).end()
      return
    }
    const mcp = mcpServer(claims?.subject ?? 'nobody')
    const transport = new StreamableHTTPServerTransport()
    await mcp.connect(transport)
    await transport.handleRequest(req, res, body)
  }

  async function claimsOf(
    authorization: string | undefined,
  ): Promise<{ readonly subject: string; readonly scopes: readonly string[] } | undefined> {
    const token = authorization?.slice(7) ?? ''
    if (rejected.has(token)) return undefined
    try {
      const { payload } = await jwtVerify(token, keys, { issuer: idp.issuer, audience: url })
      accepted.add(token)
      return { subject: payload.sub ?? '', scopes: String(payload['scope']).split(' ') }
    } catch {
      return undefined
    }
  }
  return server
}

function mcpServer(account: string): McpServer {
  const server = new McpServer({ name: 'protected', version: '1.0.0' })
  const result = (text: string) => () => ({ content: [{ type: 'text' as const, text }] })
  server.registerTool('whoami', { description: 'The account' }, result(account))
  server.registerTool('write', { description: 'Needs more' }, result('written'))
  return server
}

export interface SignInServer {
  readonly vmcp: VmcpServer
  readonly url: string
  /** The address where a login at a backend starts, with the key. */
  readonly address: (backend?: string) => string
  /** The persisted login, if any. */
  readonly kept: (target: string) => KeptLogin | undefined
}

export interface SignInServerOptions {
  readonly log?: Log
  readonly more?: Readonly<Record<string, unknown>>
  readonly env?: Readonly<Record<string, string>>
  /** '' turns logins off. */
  readonly key?: string
}

/** Starts a virtual server as `gatehouse run` does. `stateDir` contains the persisted logins. */
export async function startSignInServer(
  t: Pick<Test, 'teardown'>,
  backends: Readonly<Record<string, string>>,
  stateDir: string,
  { log = silentLog, more = {}, env: moreEnv, key = signInKey }: SignInServerOptions = {},
): Promise<SignInServer> {
  const env = { GATEHOUSE_SIGN_IN_KEY: key, GATEHOUSE_STATE_DIR: stateDir, ...moreEnv }
  const vmcp = await startTestVmcp(backends, more, { port: await freePort(), env, log })
  t.teardown(() => vmcp.close())
  const persisted = persistInDirectory(stateDir, undefined, silentLog)
  return {
    vmcp,
    url: vmcp.url,
    address: (backend = 'mail') => `${vmcp.origin}/sign-in/${backend}?key=${signInKey}`,
    kept(target) {
      const found = persisted.read(persistedName(parseTarget(target, { withPath: true }), userLogin(env)))
      return isKeptLogin(found) ? found : undefined
    },
  }
}

export interface BackendReport {
  readonly name: string
  readonly health: string
  readonly sign_in_url?: string
  readonly last_error?: { readonly category: string }
}

/** Polls `/status` until the backend is in the wanted state. */
export async function backendState(
  { vmcp }: { readonly vmcp: Pick<VmcpServer, 'origin'> },
  name: string,
  isWanted: (report: BackendReport) => boolean,
): Promise<BackendReport> {
  for (;;) {
    const status = (await (await fetch(`${vmcp.origin}/status`)).json()) as { backends: BackendReport[] }
    const found = status.backends.find((backend) => backend.name === name)
    if (found && isWanted(found)) return found
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Revokes the persisted login's refresh token at the provider. */
export async function revokeLogin(local: SignInServer, { url, idp }: ProtectedServer): Promise<void> {
  const kept = local.kept(url)
  const body = new URLSearchParams({
    client_id: kept?.client.clientId ?? '',
    token: kept?.tokens.refreshToken ?? '',
  })
  const response = await fetch(`${idp.issuer}/token/revocation`, { method: 'POST', body })
  if (!response.ok || !kept) throw new Error(`the token was not revoked: ${response.status}`)
}

export interface LoginProxy {
  /** Returns the response to a call of `whoami`. */
  callWhoami(): Promise<string>
  /** Number of logins that the user was asked for. */
  logins(): number
}

/** Starts `gatehouse proxy --remote-auth` for a server, with the same persisted logins. Its user signs in at once. */
export async function startLoginProxy(
  t: Pick<Test, 'teardown'>,
  target: string,
  stateDir: string,
): Promise<LoginProxy> {
  const config = resolveProxyConfig(
    'demo',
    {
      targetUri: new URL(target).origin,
      remoteAuth: true,
      remoteAuthCallbackPort: '0',
      remoteAuthSkipBrowser: true,
    },
    { GATEHOUSE_STATE_DIR: stateDir },
  )
  let logins = 0
  const proxy = await runProxy(config, {
    log: silentLog,
    notify(line) {
      const url = /https?:\/\/\S+/.exec(line)?.[0]
      if (url === undefined) return
      logins++
      void new Browser().open(url)
    },
  })
  t.teardown(() => proxy.close())
  await proxy.ready
  return {
    logins: () => logins,
    async callWhoami() {
      const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'whoami', arguments: {} } }
      const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
      const response = await fetch(`${proxy.url}/mcp`, {
        method: 'POST',
        headers,
        body: JSON.stringify(call),
      })
      return response.text()
    },
  }
}
