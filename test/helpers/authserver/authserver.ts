/**
 * An embedded authorization server on a loopback port, with a real OpenID provider as its upstream and a browser that
 * signs in.
 *
 * The server's clock follows the machine's and can be moved ahead. `Browser` plays the user: it keeps cookies per host,
 * follows redirects and fills in forms. Tests that take screenshots use a real browser.
 */
import { createServer } from 'node:http'
import { createHash, randomBytes } from 'node:crypto'
import type { Test } from 'tap'

/** The part of a tap test that registers a teardown. */
type Scope = Pick<Test, 'teardown'>
import type { AuthServerEvent } from '../../../runtime/authserver/index.ts'
import { type AuthServer, makeAuthServer } from '../../../runtime/authserver/server/auth-server.ts'
import type { AuthServerConfig } from '../../../runtime/config/index.ts'
import { authServerDefaults } from '../../../runtime/config/authserver/settings.ts'
import { Exchange, type Fetch, type Log, sendText } from '../../../runtime/net/index.ts'
import { makeMemoryStore, type Store } from '../../../runtime/store/index.ts'
import { Browser } from './cookie-browser.ts'
import { startOidcProvider, type TestProvider, type TestProviderOptions } from './oidc-provider.ts'

export interface RigOptions {
  readonly config?: Partial<AuthServerConfig> | ((issuer: string) => Partial<AuthServerConfig>)
  readonly provider?: TestProviderOptions | ((issuer: string) => TestProviderOptions)
  /** Builds the upstreams. Default: the real provider as `corp`. */
  readonly upstreams?: (rig: { issuer: string; provider: TestProvider }) => AuthServerConfig['upstreams']
  readonly store?: Store
  readonly documentFetch?: Fetch
  /** Path of the upstream's redirect URI. Default: next to the issuer's endpoints. */
  readonly callbackPath?: string
  /** Handles requests to the host's own endpoints, which the authorization server does not serve. */
  readonly host?: (exchange: Exchange, rig: Rig) => void | Promise<void>
  /** Receives the path of each request. */
  readonly onRequest?: (path: string) => void
  /** Interval at which records are sealed again in the background. Default: the server's own. */
  readonly reseal?: { readonly everyMs: number; readonly afterMs: number }
  /** Path of the issuer, for instance `/tenant`. */
  readonly issuerPath?: string
}

export interface Rig {
  readonly issuer: string
  readonly resource: string
  readonly server: AuthServer
  readonly config: AuthServerConfig
  readonly provider: TestProvider
  readonly store: Store
  readonly events: readonly AuthServerEvent[]
  /** All log lines as text. */
  readonly logged: () => string
  /** Moves the server's clock ahead. */
  pass(ms: number): void
  readonly now: () => number
  /** Starts another replica with the same configuration and store, and its own process state. */
  replica(): Promise<Rig>
}

/** A log that keeps its lines. */
export function keepingLog(): { log: Log; text: () => string } {
  const lines: string[] = []
  const write =
    (level: string, more: object) =>
    (message: string, fields?: object): void =>
      void lines.push(JSON.stringify({ level, message, ...more, ...fields }, plain))
  const make = (more: object): Log => ({
    debug: write('debug', more),
    info: write('info', more),
    warn: write('warn', more),
    error: write('error', more),
    child: (fields) => make({ ...more, ...fields }),
    debugEnabled: true,
    infoEnabled: true,
  })
  return { log: make({}), text: () => lines.join('\n') }
}

function plain(_key: string, value: unknown): unknown {
  if (!(value instanceof Error)) return value
  return {
    ...Object.fromEntries(Object.entries(value)),
    name: value.name,
    message: value.message,
    cause: value.cause,
    stack: value.stack,
  }
}

export async function startAuthServer(t: Scope, options: RigOptions = {}): Promise<Rig> {
  let live: Rig | undefined
  const host = createServer((req, res) => {
    const exchange = new Exchange(req, res)
    options.onRequest?.(exchange.path)
    const stage = live?.server.routes(exchange.path)
    if (stage) void stage(exchange)
    else if (live && options.host) void options.host(exchange, live)
    else sendText(res, 404, 'the host itself answers here')
  })
  await new Promise<void>((resolve) => host.listen(0, '127.0.0.1', resolve))
  const address = host.address()
  const origin = `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`
  const issuer = `${origin}${options.issuerPath ?? ''}`
  const provider = await startOidcProvider(providerOptions(issuer, options))
  const config = rigConfig(issuer, provider, options)
  const store = options.store ?? makeMemoryStore()
  t.teardown(async () => {
    host.close()
    host.closeAllConnections()
    await provider.close()
  })
  const rig = await makeRig(t, { issuer, provider, config, store, options })
  live = rig
  return rig
}

/** Listens at another address and forwards requests to the server of `rig`, because a replica has no listener. */
export async function listenFor(
  t: Scope,
  { server }: Pick<Rig, 'server'>,
): Promise<{ readonly issuer: string }> {
  const host = createServer((req, res) => {
    const exchange = new Exchange(req, res)
    void server.routes(exchange.path)?.(exchange)
  })
  await new Promise<void>((resolve) => host.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    host.close()
    host.closeAllConnections()
  })
  const address = host.address()
  return { issuer: `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}` }
}

interface RigParts {
  readonly issuer: string
  readonly provider: TestProvider
  readonly config: AuthServerConfig
  readonly store: Store
  readonly options: RigOptions
}

async function makeRig(t: Scope, parts: RigParts): Promise<Rig> {
  const { issuer, provider, config, store, options } = parts
  let aheadMs = 0
  const events: AuthServerEvent[] = []
  const recorded = keepingLog()
  const now = (): number => Date.now() + aheadMs
  const server = await makeAuthServer(config, {
    store,
    log: recorded.log,
    now,
    onEvent: (event) => events.push(event),
    reloadEveryMs: 0,
    ...(options.reseal
      ? { resealEveryMs: options.reseal.everyMs, resealAfterMs: options.reseal.afterMs }
      : {}),
    ...(options.documentFetch === undefined ? {} : { documentFetch: options.documentFetch }),
  })
  t.teardown(() => server.close())
  return {
    issuer,
    resource: config.allowedAudiences[0] ?? '',
    server,
    config,
    provider,
    store,
    events,
    logged: recorded.text,
    pass: (ms) => void (aheadMs += ms),
    now,
    replica: () => makeRig(t, parts),
  }
}

const longLives = Object.fromEntries(
  ['AccessToken', 'AuthorizationCode', 'Grant', 'IdToken', 'Interaction', 'RefreshToken', 'Session'].map(
    (name) => [name, 90 * 86_400],
  ),
)

function providerOptions(issuer: string, options: RigOptions): TestProviderOptions {
  const given = typeof options.provider === 'function' ? options.provider(issuer) : options.provider
  return {
    claims: { name: 'Alice Example', email: 'alice@example.test' },
    ...given,
    // The rig's clock may be ahead of the provider's.
    configuration: { ttl: longLives, ...given?.configuration },
    clients: given?.clients ?? [
      {
        client_id: 'gatehouse',
        client_secret: 'upstream-secret',
        redirect_uris: [
          options.callbackPath === undefined
            ? `${issuer}/oauth/callback`
            : `${new URL(issuer).origin}${options.callbackPath}`,
        ],
        grant_types: ['authorization_code', 'refresh_token'],
      },
    ],
  }
}

export const upstreamSecret = 'upstream-secret'

/** The upstream that most tests use. */
export function corp(issuer: string, provider: TestProvider): AuthServerConfig['upstreams'][number] {
  return {
    name: 'corp',
    type: 'oidc',
    issuerUrl: provider.issuer,
    clientId: 'gatehouse',
    clientSecret: () => upstreamSecret,
    redirectUri: `${issuer}/oauth/callback`,
    scopes: ['openid', 'offline_access', 'profile', 'email'],
    additionalAuthorizationParams: {},
    subjectClaim: 'sub',
  }
}

const signingKeys: readonly string[] = []
const hmacSecrets = [randomBytes(48)]

function rigConfig(issuer: string, provider: TestProvider, options: RigOptions): AuthServerConfig {
  return {
    issuer,
    insecureAllowHttp: false,
    allowedAudiences: [`${new URL(issuer).origin}/mcp`],
    scopesSupported: ['openid', 'profile', 'email', 'offline_access'],
    baselineClientScopes: [],
    registration: { enabled: true, confidentialClients: false },
    consent: true,
    accessTokenMs: authServerDefaults.accessTokenMs,
    refreshTokenMs: authServerDefaults.refreshTokenMs,
    refreshGraceMs: authServerDefaults.refreshGraceMs,
    authCodeMs: authServerDefaults.authCodeMs,
    grantMs: authServerDefaults.grantMs,
    upstreams: options.upstreams?.({ issuer, provider }) ?? [corp(issuer, provider)],
    disableUpstreamTokenInjection: false,
    storage: { type: 'memory' },
    secrets: () => ({ signingKeys, hmacSecrets }),
    ...(typeof options.config === 'function' ? options.config(issuer) : options.config),
  }
}

/** PKCE values of one login. */
export function pkce(): { verifier: string; challenge: string } {
  const verifier = randomBytes(32).toString('base64url')
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') }
}

export const redirectUri = 'http://127.0.0.1:33418/callback'

/** Returns the JSON of a response as a plain object. */
export async function jsonOf(response: Response): Promise<Record<string, unknown>> {
  const body: unknown = await response.json()
  return typeof body === 'object' && body !== null ? Object.fromEntries(Object.entries(body)) : {}
}

export function textOf(value: unknown): string {
  if (typeof value !== 'string') throw new Error(`expected text, got ${typeof value}`)
  return value
}

/** Sends a registration request. */
export function postRegistration({ issuer }: Pick<Rig, 'issuer'>, metadata: object): Promise<Response> {
  const headers = { 'content-type': 'application/json' }
  return fetch(`${issuer}/oauth/register`, { method: 'POST', headers, body: JSON.stringify(metadata) })
}

/** Registers a client and returns its id. */
export async function registerClient(rig: Pick<Rig, 'issuer'>, metadata: object = {}): Promise<string> {
  const defaults = { client_name: 'Test Client', redirect_uris: [redirectUri] }
  return textOf((await jsonOf(await postRegistration(rig, { ...defaults, ...metadata })))['client_id'])
}

export function authorizeUrl(
  rig: Pick<Rig, 'issuer'>,
  parameters: Readonly<Record<string, string | undefined>>,
): URL {
  const url = new URL(`${rig.issuer}/oauth/authorize`)
  const all = {
    response_type: 'code',
    redirect_uri: redirectUri,
    code_challenge_method: 'S256',
    ...parameters,
  }
  for (const [name, value] of Object.entries(all)) if (value !== undefined) url.searchParams.set(name, value)
  return url
}

export interface LoggedIn {
  readonly clientId: string
  readonly code: string
  readonly verifier: string
  readonly browser: Browser
  readonly response: URL
}

/** Logs in, from the consent page through the provider to the client. Returns the code. */
export async function login(
  rig: Pick<Rig, 'issuer'>,
  parameters: Readonly<Record<string, string | undefined>> = {},
  browser = new Browser(),
): Promise<LoggedIn> {
  const { verifier, challenge } = pkce()
  const clientId = parameters['client_id'] ?? (await registerClient(rig))
  const target = parameters['redirect_uri'] ?? redirectUri
  const start = authorizeUrl(rig, {
    client_id: clientId,
    code_challenge: challenge,
    state: 'client-state',
    ...parameters,
  })
  let shown = await browser.open(start, target)
  if (shown.status === 200) shown = await browser.press(shown, 'approve', target)
  if (shown.status !== 0)
    throw new Error(`the login ended at ${shown.url.pathname}: ${shown.status} ${shown.text}`)
  return { clientId, verifier, browser, response: shown.url, code: shown.url.searchParams.get('code') ?? '' }
}

/** Sends a token request. Undefined members are omitted. */
export function tokenRequest(
  rig: Pick<Rig, 'issuer'>,
  parameters: Readonly<Record<string, string | undefined>>,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const form = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) form.set(name, value)
  return fetch(`${rig.issuer}/oauth/token`, { method: 'POST', body: form, headers })
}

export interface Tokens {
  readonly access_token: string
  readonly refresh_token: string
  readonly scope: string
  readonly id_token: string
}

/** Redeems the code of a login. */
export async function redeem(
  rig: Pick<Rig, 'issuer'>,
  from: LoggedIn,
  parameters: Readonly<Record<string, string | undefined>> = {},
): Promise<Response> {
  return tokenRequest(rig, {
    grant_type: 'authorization_code',
    code: from.code,
    code_verifier: from.verifier,
    client_id: from.clientId,
    redirect_uri: redirectUri,
    ...parameters,
  })
}

export async function tokensOf(response: Response): Promise<Tokens> {
  const body = await jsonOf(response)
  if (response.status !== 200) throw new Error(`${response.status} ${JSON.stringify(body)}`)
  const member = (name: string): string => (typeof body[name] === 'string' ? body[name] : '')
  return {
    access_token: member('access_token'),
    refresh_token: member('refresh_token'),
    scope: member('scope'),
    id_token: member('id_token'),
  }
}

export function refresh(
  rig: Pick<Rig, 'issuer'>,
  clientId: string,
  token: string,
  parameters: Readonly<Record<string, string | undefined>> = {},
): Promise<Response> {
  return tokenRequest(rig, {
    grant_type: 'refresh_token',
    refresh_token: token,
    client_id: clientId,
    ...parameters,
  })
}

/** Returns the status and the OAuth error code of a response. */
export async function refusal(response: Response): Promise<string> {
  const body = await jsonOf(response)
  return `${response.status} ${String(body['error'])}`
}
