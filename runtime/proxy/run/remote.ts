/**
 * Builds the credential that the proxy presents to its target: its own login, a fixed token, token exchange or another
 * strategy, alone or combined.
 *
 * Source: docs/reference/specification/proxy-command.md#rules, rules 1 to 7.
 */
import type { ExchangeSettings, OAuthSettings, ProxySettings } from '../../config/index.ts'
import type { EmbeddedAuthServer } from '../../incoming/index.ts'
import type { Dispatcher } from '../../net/index.ts'
import { openBrowser } from '../../oauth/index.ts'
import {
  type LoginFetch,
  makeLoginFetch,
  makeOutgoing,
  type OwnLogin,
  persistInDirectory,
  persistNothing,
  type StrategyConfig,
  type StrategyRegistry,
  TargetLogin,
  type TokenSource,
  type UpstreamTokens,
} from '../../outgoing/index.ts'
import { swapStrategy } from './auth-server.ts'
import { type TargetCredential, loginCredential, strategyCredential } from '../model/credential.ts'
import { MachineLogin } from '../login/machine-login.ts'
import type { RunParts } from './run-parts.ts'

/** Names of internal secrets, chosen so that no environment variable can have the same name. */
const bearerName = '#bearer'
const exchangeName = '#exchange'
/** Provider name of the proxy's own login. */
const loginProvider = 'login'

export interface RemoteTarget {
  readonly credential: TargetCredential | undefined
  /** The required login, without which no request can be served. */
  readonly login: TokenSource | undefined
  start(): Promise<void>
  close(): Promise<void>
}

export async function makeRemote(
  config: ProxySettings,
  parts: RunParts,
  dispatcher: Dispatcher,
): Promise<RemoteTarget> {
  const { remote, exchange } = config
  const login =
    remote.kind === 'oauth' && !parts.tokens ? await makeLogin(config, remote, parts, dispatcher) : undefined
  const tokens = parts.tokens ?? login?.login
  const upstream = tokens ? upstreamOf(tokens) : parts.authServer?.upstreamTokens
  const outgoing = makeOutgoing({
    ca: config.remoteCa,
    proxy: config.proxyEnvironment,
    log: parts.log,
    enableObo: parts.enableObo,
    secret(name) {
      if (name === bearerName) return remote.kind === 'bearer' ? remote.token(parts.log).reveal() : undefined
      if (name === exchangeName) return exchange?.clientSecret?.reveal()
      return parts.secret?.(name)
    },
    upstream,
  })
  return {
    credential: credentialFor(config, outgoing, tokens, parts.authServer),
    // Requests can be served without an optional login.
    login: remote.kind === 'oauth' && remote.optional ? undefined : tokens,
    async start() {
      const started = login?.login.start()
      if (remote.kind === 'oauth' && remote.optional) started?.catch(() => undefined)
      else await started
    },
    async close() {
      login?.stop.abort(new Error('the proxy is shutting down'))
      login?.login.close()
      await Promise.all([outgoing.close(), login?.fetch.close()])
    },
  }
}

function credentialFor(
  config: ProxySettings,
  outgoing: StrategyRegistry,
  login: TokenSource | undefined,
  authServer: EmbeddedAuthServer | undefined,
): TargetCredential | undefined {
  const { remote, exchange } = config
  const swap = authServer && swapStrategy(config, authServer.config)
  if (swap) return strategyCredential(outgoing.strategy(swap, 'the embedded authorization server'))
  if (exchange) {
    return strategyCredential(
      outgoing.strategy(exchangeStrategy(exchange, login !== undefined), '--token-exchange'),
    )
  }
  if (config.strategy) return strategyCredential(outgoing.strategy(config.strategy, 'outgoingAuth'))
  if (login) return loginCredential(login, remote.kind === 'oauth' && remote.optional)
  if (remote.kind !== 'bearer') return undefined
  return strategyCredential(
    outgoing.strategy(
      { type: 'bearer_token', bearerToken: { tokenEnv: bearerName } },
      '--remote-auth-bearer',
    ),
  )
}

function exchangeStrategy(exchange: ExchangeSettings, withLogin: boolean): StrategyConfig {
  return {
    type: 'token_exchange',
    tokenExchange: {
      tokenUrl: exchange.url,
      audience: exchange.audience,
      clientId: exchange.clientId,
      clientSecretEnv: exchange.clientSecret === undefined ? undefined : exchangeName,
      scopes: exchange.scopes,
      subjectTokenType: exchange.subjectTokenType,
      externalTokenHeaderName: exchange.headerName,
      subjectProviderName: withLogin ? loginProvider : undefined,
    },
  }
}

/**
 * Returns a source of tokens to exchange. For every caller, the source returns the token from the proxy's own login.
 */
function upstreamOf(login: TokenSource): UpstreamTokens {
  return {
    async get() {
      const token = await login.token()
      return token && { accessToken: token.value, idToken: login.idToken }
    },
  }
}

export interface MadeLogin {
  readonly login: OwnLogin
  readonly fetch: LoginFetch
  readonly stop: AbortController
}

/** Creates the login with its own connections, without starting it. */
export async function makeLogin(
  config: ProxySettings,
  settings: OAuthSettings,
  parts: RunParts,
  dispatcher: Dispatcher,
): Promise<MadeLogin> {
  const { log, notify } = parts
  const fetch = await makeLoginFetch({
    target: config.target,
    typed: [settings.issuer, settings.authorizeUrl, settings.tokenUrl, settings.idpTokenUrl],
    ca: config.remoteCa,
    proxy: config.proxyEnvironment,
  })
  const stop = new AbortController()
  const shared = {
    target: config.target,
    dispatcher,
    fetch: fetch.fetch,
    log,
    signal: parts.signal ? AbortSignal.any([stop.signal, parts.signal]) : stop.signal,
    now: Date.now,
  }
  const { machineGrant } = settings
  const login = machineGrant
    ? new MachineLogin({ ...shared, settings: { ...settings, machineGrant } })
    : new TargetLogin({
        ...shared,
        settings,
        notify,
        open: (url) => openBrowser(url, parts.browser),
        persisted: settings.keep
          ? persistInDirectory(settings.keep.dir, settings.keep.password, log)
          : persistNothing,
        needIdToken: config.exchange?.subjectTokenType.endsWith(':id_token') ?? false,
      })
  return { login, fetch, stop }
}
