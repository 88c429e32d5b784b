/**
 * Runs the official MCP clients of both major versions against a listener that hosts everything: RFC 9728 document,
 * challenge, authorization server, and an MCP endpoint behind the bearer check.
 */
import { auth as authV2 } from '@modelcontextprotocol/client'
import { auth as authV1, type OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import t, { type Test } from 'tap'
import { makeAuthenticator } from '../../runtime/incoming/index.ts'
import { type Exchange, sendProblem } from '../../runtime/net/index.ts'
import { GatehouseError } from '../../schemas/index.ts'
import {
  login,
  redeem,
  redirectUri,
  type Rig,
  startAuthServer,
  tokensOf,
} from '../helpers/authserver/authserver.ts'
import { Browser } from '../helpers/authserver/cookie-browser.ts'

/** A small gateway: the real parts in the order of the pipeline. */
async function gateway(t: Test): Promise<Rig> {
  let stage: ((exchange: Exchange, rig: Rig) => Promise<void>) | undefined
  const rig = await startAuthServer(t, { host: (exchange, rig) => stage?.(exchange, rig) })
  const authenticator = makeAuthenticator(
    {
      type: 'oidc',
      oidc: {
        issuer: rig.issuer,
        audience: rig.resource,
        resource: rig.resource,
        scopes: ['openid', 'offline_access'],
        clientId: '',
        insecureAllowHttp: false,
        jwksAllowPrivateIp: false,
        protectedResourceAllowPrivateIp: false,
      },
    },
    { keys: rig.server.keys, now: rig.now },
  )
  t.teardown(() => authenticator.close())
  stage = async (exchange) => {
    try {
      const own = authenticator.route(exchange)
      if (own) {
        await own(exchange)
        return
      }
      await authenticator.stage(exchange)
      const { caller } = exchange
      if (!caller || !(await rig.server.isLive(caller))) {
        throw new GatehouseError('INVALID_TOKEN')
      }
      await whoAmI(exchange, caller.subject, await rig.server.upstreamTokens.get(caller))
    } catch (error) {
      if (!authenticator.sendChallenge(exchange, error)) sendProblem(exchange.res, error)
    }
  }
  return rig
}

/** An MCP server with one tool that returns the caller. */
async function whoAmI(exchange: Exchange, subject: string, upstream: unknown): Promise<void> {
  const server = new McpServer({ name: 'who', version: '1' })
  server.registerTool('whoami', { description: 'who is calling' }, () => ({
    content: [
      { type: 'text', text: `${subject} ${upstream === undefined ? 'without' : 'with'} upstream token` },
    ],
  }))
  const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true })
  await server.connect(transport)
  await transport.handleRequest(exchange.req, exchange.res)
}

interface Provider extends OAuthClientProvider {
  readonly sentTo: () => URL
}

function provider(): Provider {
  const kept = new Map<string, unknown>()
  let sent: URL | undefined
  return {
    redirectUrl: redirectUri,
    clientMetadata: {
      redirect_uris: [redirectUri],
      client_name: 'MCP client',
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
    },
    clientInformation: () => kept.get('client') as never,
    saveClientInformation: (client) => void kept.set('client', client),
    tokens: () => kept.get('tokens') as never,
    saveTokens: (tokens) => void kept.set('tokens', tokens),
    redirectToAuthorization: (url) => void (sent = url),
    saveCodeVerifier: (verifier) => void kept.set('verifier', verifier),
    codeVerifier: () => String(kept.get('verifier')),
    sentTo: () => sent ?? new URL('about:blank'),
  }
}

async function person(url: URL): Promise<URLSearchParams> {
  const browser = new Browser()
  const page = await browser.open(url, redirectUri)
  return (await browser.press(page, 'approve', redirectUri)).url.searchParams
}

t.test(
  'MCP SDK v1: from a 401 to a tool call, and a silent refresh after the access token has expired',
  async (t) => {
    const rig = await gateway(t)
    const authProvider = provider()
    const connect = async (): Promise<Client> => {
      const client = new Client({ name: 'test', version: '1' })
      await client.connect(new StreamableHTTPClientTransport(new URL(rig.resource), { authProvider }))
      return client
    }
    await t.rejects(connect(), { name: 'Error' })
    t.equal(authProvider.sentTo().searchParams.get('resource'), rig.resource)
    const back = await person(authProvider.sentTo())
    const transport = new StreamableHTTPClientTransport(new URL(rig.resource), { authProvider })
    await transport.finishAuth(back.get('code') ?? '')
    const client = await connect()
    const result = await client.callTool({ name: 'whoami', arguments: {} })
    t.match(result, { content: [{ type: 'text', text: /^[0-9a-f-]{36} with upstream token$/ }] })
    rig.pass(rig.config.accessTokenMs + 120_000)
    t.match(await client.callTool({ name: 'whoami', arguments: {} }), {
      content: [{ text: / with upstream token$/ }],
    })
    t.ok(rig.events.some((event) => event.type === 'token_refreshed'))
    await client.close()
  },
)

t.test(
  'MCP client v2: the authorization flow with issuer checks, from the challenge to tokens',
  async (t) => {
    const rig = await gateway(t)
    const authProvider = provider()
    t.equal(await authV2(authProvider, { serverUrl: rig.resource }), 'REDIRECT')
    const back = await person(authProvider.sentTo())
    const done = await authV2(authProvider, {
      serverUrl: rig.resource,
      callbackParams: back,
      authorizationCode: back.get('code') ?? '',
      iss: back.get('iss') ?? '',
    } as never)
    t.equal(done, 'AUTHORIZED')
    t.match(await authProvider.tokens(), { token_type: 'Bearer', refresh_token: /^gh_rt_/ })
  },
)

t.test('MCP SDK v1: auth() refreshes on its own once it has tokens', async (t) => {
  const rig = await gateway(t)
  const authProvider = provider()
  t.equal(await authV1(authProvider, { serverUrl: rig.resource }), 'REDIRECT')
  const back = await person(authProvider.sentTo())
  t.equal(
    await authV1(authProvider, { serverUrl: rig.resource, authorizationCode: back.get('code') ?? '' }),
    'AUTHORIZED',
  )
  const first = await authProvider.tokens()
  t.equal(await authV1(authProvider, { serverUrl: rig.resource }), 'AUTHORIZED')
  t.not((await authProvider.tokens())?.refresh_token, first?.refresh_token)
})

t.test('gateway: a 401 contains resource_metadata; foreign and revoked tokens are rejected', async (t) => {
  const rig = await gateway(t)
  const ask = (token?: string): Promise<Response> =>
    fetch(rig.resource, {
      method: 'POST',
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    })
  const untrusted = await ask()
  t.equal(untrusted.status, 401)
  t.match(
    untrusted.headers.get('www-authenticate'),
    /resource_metadata="http:\/\/127\.0\.0\.1:\d+\/\.well-known\/oauth-protected-resource\/mcp"/,
  )
  const done = await login(rig)
  t.equal((await ask(done.code)).status, 401)
  const tokens = await tokensOf(await redeem(rig, done))
  t.equal((await ask(tokens.id_token)).status, 401, 'an ID token is not an access token')
  t.not((await ask(tokens.access_token)).status, 401)
  const form = new URLSearchParams({ token: tokens.refresh_token, client_id: done.clientId })
  await fetch(`${rig.issuer}/oauth/revoke`, { method: 'POST', body: form })
  t.equal((await ask(tokens.access_token)).status, 401, 'revoked')
})
