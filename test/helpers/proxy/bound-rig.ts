/**
 * An MCP server that accepts tokens that are bound to a key, and the embedded authorization server that issues them, at
 * one origin. Both check each proof as in production.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { decodeJwt } from 'jose'
import type { Test } from 'tap'
import { type ProxyInput, resolveProxyConfig } from '../../../runtime/config/index.ts'
import { type Authenticator, makeAuthenticator } from '../../../runtime/incoming/index.ts'
import { type Exchange, type Log, sendProblem, silentLog } from '../../../runtime/net/index.ts'
import { runProxy } from '../../../runtime/proxy/index.ts'
import { makeMemoryStore } from '../../../runtime/store/index.ts'
import type { Dpop } from '../../../schemas/index.ts'
import { type Rig, startAuthServer } from '../authserver/authserver.ts'
import { Browser } from '../authserver/cookie-browser.ts'
import { declared, newSecret } from '../authserver/declared-client.ts'

export const boundSecret = newSecret()
export const required: Dpop = { mode: 'required', requireNonce: true, proofMaxAge: '60s', replay: 'store' }
export const optional: Dpop = { ...required, mode: 'optional' }
export const off: Dpop = { ...required, mode: 'off' }

/** A request to the MCP endpoint. */
export interface SeenCall {
  readonly method: string
  readonly headers: IncomingHttpHeaders
}

export interface BoundWorld {
  readonly rig: Rig
  readonly origin: string
  readonly resource: string
  readonly calls: readonly SeenCall[]
  /** Number of requests to the token endpoint. */
  readonly tokenRequests: () => number
  /** Answers requests to the MCP endpoint instead of the server, if it returns true. */
  intercept: ((exchange: Exchange) => boolean) | undefined
}

export interface BoundOptions {
  /** Settings of the authorization server. Default: proofs and nonces are required. */
  readonly server?: Dpop
  /** Settings of the MCP server. Default: the same. */
  readonly resource?: Dpop
  /** Handles an authenticated request. Default: a stateless MCP server with the tool `whoami`. */
  readonly serve?: (exchange: Exchange) => Promise<void>
}

export async function startBoundWorld(t: Pick<Test, 'teardown'>, options: BoundOptions = {}) {
  const { server: atServer = required, resource: atResource = atServer, serve = whoami } = options
  const calls: SeenCall[] = []
  let authenticator: Authenticator | undefined
  let tokenRequests = 0
  const rig = await startAuthServer(t, {
    config: (issuer) => ({
      dpop: atServer,
      allowedAudiences: [`${issuer}/mcp`],
      clients: [declared('job', [`${issuer}/mcp`], { secrets: [() => boundSecret] })],
    }),
    async host(exchange) {
      const route = authenticator?.route(exchange)
      if (route) return route(exchange)
      calls.push({ method: exchange.req.method ?? '', headers: exchange.req.headers })
      if (world.intercept?.(exchange)) return
      try {
        await authenticator?.stage(exchange)
        await serve(exchange)
      } catch (error) {
        if (!authenticator?.sendChallenge(exchange, error)) sendProblem(exchange.res, error)
      }
    },
    onRequest: (path) => void (path === '/oauth/token' && tokenRequests++),
  })
  const { issuer, server } = rig
  const resource = `${issuer}/mcp`
  authenticator = makeAuthenticator(
    {
      type: 'oidc',
      oidc: { issuer, audience: resource, resource, insecureAllowHttp: true, dpop: atResource },
    },
    { keys: server.keys, isLive: server.isLive, dpop: { store: makeMemoryStore() } },
  )
  t.teardown(() => authenticator?.close())
  const world: BoundWorld = {
    rig,
    origin: issuer,
    resource,
    calls,
    tokenRequests: () => tokenRequests,
    intercept: undefined,
  }
  return world
}

async function whoami({ req, res, caller }: Exchange): Promise<void> {
  const server = new McpServer({ name: 'bound', version: '1.0.0' })
  const text = caller?.subject ?? 'nobody'
  server.registerTool('whoami', { description: 'The account' }, () => ({ content: [{ type: 'text', text }] }))
  const transport = new StreamableHTTPServerTransport()
  await server.connect(transport)
  await transport.handleRequest(req, res)
}

/** Signs in as the user, and consents. */
export async function consent(url: string): Promise<void> {
  const browser = new Browser()
  const page = await browser.open(url)
  if (page.text.includes('value="approve"')) await browser.press(page, 'approve')
}

export interface BoundProxy {
  readonly url: string
  readonly ready: Promise<void>
  /** URLs that the user had to open. */
  readonly logins: readonly string[]
  /** Calls `whoami`. */
  call(
    headers?: Readonly<Record<string, string>>,
  ): Promise<{ readonly status: number; readonly text: string }>
}

/** Starts a proxy for the server. Its user signs in at once. */
export async function startBoundProxy(
  t: Pick<Test, 'teardown'>,
  world: BoundWorld,
  input: ProxyInput,
  { stateDir, log = silentLog }: { readonly stateDir?: string; readonly log?: Log } = {},
): Promise<BoundProxy> {
  const isUser = input.remoteAuthGrant === undefined
  const user = { remoteAuthCallbackPort: '0', remoteAuthSkipBrowser: true, remoteAuthEphemeral: !stateDir }
  const config = resolveProxyConfig(
    'demo',
    { targetUri: world.origin, remoteAuth: true, ...(isUser ? user : {}), ...input },
    {
      GATEHOUSE_STATE_DIR: stateDir ?? '/nonexistent',
      GATEHOUSE_REMOTE_OAUTH_CLIENT_SECRET: secretFor(input),
    },
  )
  const logins: string[] = []
  const proxy = await runProxy(config, {
    log,
    notify(line) {
      const url = /https?:\/\/\S+/.exec(line)?.[0]
      if (url === undefined) return
      logins.push(url)
      void consent(url)
    },
  })
  t.teardown(() => proxy.close({ graceMs: 0 }))
  proxy.ready.catch(() => {})
  return {
    url: proxy.url,
    ready: proxy.ready,
    logins,
    call: (headers) => callWhoami(`${proxy.url}/mcp`, headers),
  }
}

function secretFor({ remoteAuthGrant }: ProxyInput): string {
  return remoteAuthGrant === 'client_credentials' ? boundSecret : ''
}

export async function callWhoami(url: string, headers: Readonly<Record<string, string>> = {}) {
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'whoami', arguments: {} } }
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    body: JSON.stringify(call),
  })
  return { status: response.status, text: await response.text() }
}

/** Returns the last call's credential. */
export function lastCall({ calls }: BoundWorld) {
  const { authorization = '', dpop = '' } = calls.at(-1)?.headers ?? {}
  const [scheme = '', token = ''] = authorization.split(' ')
  return { scheme, token, dpop: String(dpop), claims: token === '' ? {} : decodeJwt(token) }
}
