/**
 * Puts the proxy command together from its settings: dispatcher, outgoing credential, incoming authentication, server,
 * and the login at the target, which runs while the port is open already (requests get 503 until it is done).
 *
 * Source: spec document 1, "What the service does".
 */
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { GatehouseError } from '../../schemas/index.ts'
import type { ExchangeSettings, OAuthSettings, ProxyConfig } from '../config/index.ts'
import { type Authenticator, makeAuthenticator } from '../incoming/index.ts'
import { type Dispatcher, type Log, makeDispatcher, unbracket } from '../net/index.ts'
import { makeOutgoing, type Outgoing, type StrategyConfig, type UpstreamTokens } from '../outgoing/index.ts'
import { type Credential, loginCredential, strategyCredential } from './credential.ts'
import { openBrowser } from './login/browser.ts'
import { type LoginFetch, makeLoginFetch } from './login/fetches.ts'
import { keepInDirectory, keepNothing } from './login/kept.ts'
import { Login } from './login/login.ts'
import type { RequestObserver } from './request-log.ts'
import { type ProxyAddress, type RunningProxy, startProxy } from './server.ts'

export interface RunParts {
  readonly log: Log
  /** Prints a line for the person at the terminal (login URLs). */
  readonly notify: (line: string) => void
  /** The user's own browser program. */
  readonly browser?: string | undefined
  readonly observe?: RequestObserver
  /** Ends a login under way. */
  readonly signal?: AbortSignal
  /** Protects the endpoint in place of the --oidc-* settings. */
  readonly incoming?: (address: ProxyAddress) => Authenticator | Promise<Authenticator>
  /** Host names under which this proxy is reached from outside; may change at any time. */
  readonly allowedHosts?: ReadonlySet<string>
}

export interface RunningCommand extends RunningProxy {
  /** Resolves when requests can be served; rejects when the login failed. */
  readonly ready: Promise<void>
}

/** Name that the proxy's own login has as an upstream provider. */
const loginProvider = 'login'

/** Binds and serves. Rejects with INVALID_CONFIG, or with the system's error when the address cannot be bound. */
export async function runProxy(config: ProxyConfig, parts: RunParts): Promise<RunningCommand> {
  const { log } = parts
  for (const warning of config.warnings) log.warn(warning)
  if (!config.oidc && !parts.incoming)
    log.warn('no --oidc-* flag is given: everybody who reaches this port may use the proxy')
  const host = await resolveHost(config.host)
  const shared = { ca: config.remoteCa, proxy: config.proxyEnvironment }
  const dispatcher = makeDispatcher({ ...shared, origin: config.target.origin })
  const made = await makeRemote(config, parts, dispatcher)
  let proxy: RunningProxy
  try {
    proxy = await startProxy({
      target: config.target,
      host,
      port: config.port,
      dispatcher,
      log,
      allowedOrigins: config.allowedOrigins,
      allowedHosts: parts.allowedHosts ?? publicHosts(config),
      incoming: parts.incoming ?? incomingFor(config, log),
      credential: made.credential,
      inject: config.inject,
      // An exchanged token takes the place of the client's, in whatever header it travels.
      passAuthorization:
        config.exchange === undefined && (config.passAuthorization || (!config.oidc && !parts.incoming)),
      headersTimeoutMs: config.requestTimeoutMs,
      ...(parts.observe ? { observe: parts.observe } : {}),
    })
  } catch (error) {
    await made.close()
    await dispatcher.destroy()
    throw error
  }
  return {
    url: proxy.url,
    port: proxy.port,
    ready: made.start(),
    async close(options) {
      await proxy.close(options)
      await made.close()
      await dispatcher.destroy()
    },
  }
}

/** A literal as it is; a name's first IPv4 address, else its first. Throws INVALID_CONFIG for a name without any. */
async function resolveHost(host: string): Promise<string> {
  if (isIP(host) !== 0) return host
  try {
    const addresses = await lookup(host, { all: true })
    const found = addresses.find(({ family }) => family === 4) ?? addresses[0]
    if (found) return found.address
  } catch {
    // Said below.
  }
  throw new GatehouseError('INVALID_CONFIG', { detail: `invalid host: ${host}` })
}

function publicHosts({ resourceUrl }: ProxyConfig): ReadonlySet<string> {
  return new Set(resourceUrl === undefined ? [] : [unbracket(new URL(resourceUrl).hostname).toLowerCase()])
}

/** The authenticator of the --oidc-* settings, when there are any. `resourceUrl` beats what is derived. */
export function incomingFor(
  { oidc, resourceUrl, host, proxyEnvironment }: ProxyConfig,
  log: Log,
): ((address: ProxyAddress) => Authenticator) | undefined {
  if (!oidc) return undefined
  return ({ port }) => {
    const resource = resourceUrl ?? `http://${host.includes(':') ? `[${host}]` : host}:${port}/mcp`
    if (resourceUrl === undefined)
      log.info('no --resource-url is given, using the listening address', { resource })
    return makeAuthenticator(
      {
        type: 'oidc',
        oidc: {
          issuer: oidc.issuer,
          audience: oidc.audience,
          clientId: oidc.clientId,
          clientSecret: oidc.clientSecret?.reveal(),
          introspectionUrl: oidc.introspectionUrl,
          jwksUrl: oidc.jwksUrl,
          resource,
          scopes: oidc.scopes,
          ca: oidc.ca,
          insecureAllowHttp: oidc.insecureAllowHttp,
          jwksAllowPrivateIp: oidc.allowPrivateIp,
          protectedResourceAllowPrivateIp: oidc.allowPrivateIp,
        },
      },
      { log, proxy: proxyEnvironment },
    )
  }
}

interface Remote {
  readonly credential: Credential | undefined
  start(): Promise<void>
  close(): Promise<void>
}

async function makeRemote(config: ProxyConfig, parts: RunParts, dispatcher: Dispatcher): Promise<Remote> {
  const { remote, exchange } = config
  const login = remote.kind === 'oauth' ? await makeLogin(config, remote, parts, dispatcher) : undefined
  const outgoing = makeOutgoing({
    ca: config.remoteCa,
    proxy: config.proxyEnvironment,
    log: parts.log,
    secret: remote.kind === 'bearer' ? () => remote.token().reveal() : secretOf(exchange),
    ...(login ? { upstream: upstreamOf(login.login) } : {}),
  })
  return {
    credential: credentialFor(config, outgoing, login?.login),
    start: async () => login?.login.start(),
    async close() {
      login?.stop.abort(new Error('the proxy is ending'))
      login?.login.close()
      await Promise.all([outgoing.close(), login?.fetch.close()])
    },
  }
}

function credentialFor(
  config: ProxyConfig,
  outgoing: Outgoing,
  login: Login | undefined,
): Credential | undefined {
  const { remote, exchange } = config
  if (exchange) {
    return strategyCredential(
      outgoing.strategy(exchangeStrategy(exchange, login !== undefined), '--token-exchange'),
    )
  }
  if (login) return loginCredential(login)
  if (remote.kind !== 'bearer') return undefined
  return strategyCredential(
    outgoing.strategy({ type: 'bearer', bearer: { tokenEnv: 'token' } }, '--remote-auth-bearer'),
  )
}

function secretOf(exchange: ExchangeSettings | undefined): () => string | undefined {
  return () => exchange?.clientSecret?.reveal()
}

function exchangeStrategy(exchange: ExchangeSettings, withLogin: boolean): StrategyConfig {
  return {
    type: 'token_exchange',
    tokenExchange: {
      tokenUrl: exchange.url,
      audience: exchange.audience,
      clientId: exchange.clientId,
      clientSecretEnv: exchange.clientSecret === undefined ? undefined : 'secret',
      scopes: exchange.scopes,
      subjectTokenType: exchange.subjectTokenType,
      externalTokenHeaderName: exchange.headerName,
      subjectProviderName: withLogin ? loginProvider : undefined,
    },
  }
}

/** The proxy's own login as the source of the token to exchange, the same for every caller. */
function upstreamOf(login: Login): UpstreamTokens {
  return {
    async get() {
      const accessToken = await login.token()
      return accessToken === undefined ? undefined : { accessToken, idToken: login.idToken }
    },
  }
}

interface MadeLogin {
  readonly login: Login
  readonly fetch: LoginFetch
  readonly stop: AbortController
}

async function makeLogin(
  config: ProxyConfig,
  settings: OAuthSettings,
  parts: RunParts,
  dispatcher: Dispatcher,
): Promise<MadeLogin> {
  const { log, notify } = parts
  const fetch = await makeLoginFetch({
    target: config.target,
    typed: [settings.issuer, settings.authorizeUrl, settings.tokenUrl],
    ca: config.remoteCa,
    proxy: config.proxyEnvironment,
  })
  const stop = new AbortController()
  const login = new Login({
    settings,
    target: config.target,
    dispatcher,
    fetch: fetch.fetch,
    log,
    notify,
    open: (url) => openBrowser(url, parts.browser),
    kept: settings.keep ? keepInDirectory(settings.keep.dir, settings.keep.password, log) : keepNothing,
    needIdToken: config.exchange?.subjectTokenType.endsWith(':id_token') ?? false,
    signal: parts.signal ? AbortSignal.any([stop.signal, parts.signal]) : stop.signal,
    now: Date.now,
  })
  return { login, fetch, stop }
}
