/**
 * Authenticates to backends: maps the strategy names of the configuration to their implementations, and creates
 * strategies.
 *
 * To add a strategy, write its file and add it to the table; the compiler reports a missing entry. All strategies in a
 * process share one cache and one set of connections.
 */
import { formatViolations, GatehouseError } from '../../schemas/index.ts'
import { type Fetch, type Log, makeFetch, type ProxyEnvironment, silentLog } from '../net/index.ts'
import { BackendProvers } from './backend-provers.ts'
import { basicAuth } from './strategies/basic-auth.ts'
import { bearerToken } from './strategies/bearer-token.ts'
import { CredentialCache } from './cache.ts'
import { clientCredentials } from './strategies/client-credentials.ts'
import { cloudSts } from './strategies/cloud-sts.ts'
import type { StrategyConfig, StrategyModule, StrategyParts } from './config.ts'
import { headerInjection } from './strategies/header-injection.ts'
import { obo } from './strategies/obo.ts'
import type { CredentialStrategy, UpstreamTokens } from './strategy.ts'
import { regionalEndpoint } from './aws/sts.ts'
import { tokenExchange } from './strategies/token-exchange.ts'
import { upstreamInject } from './strategies/upstream-inject.ts'
import { xaa } from './strategies/xaa.ts'

/** Adds no credential. Source: docs/reference/specification/external-auth.md (type unauthenticated). */
const unauthenticated: StrategyModule = {
  problems: () => [],
  make: () => ({
    type: 'unauthenticated',
    perCaller: false,
    headerNames: [],
    apply() {},
    refused: () => false,
  }),
}

const strategies = {
  unauthenticated,
  basic_auth: basicAuth,
  bearer_token: bearerToken,
  client_credentials: clientCredentials,
  header_injection: headerInjection,
  token_exchange: tokenExchange,
  upstream_inject: upstreamInject,
  cloud_sts: cloudSts,
  obo,
  xaa,
} as const satisfies Record<StrategyConfig['type'], StrategyModule>

export interface OutgoingParts {
  /** Source of the callers' upstream tokens. Absent: strategies that need upstream tokens are rejected. */
  readonly upstream?: UpstreamTokens | undefined
  /** Returns the value of the variable whose name is in a `…Env` field. Default: no variable exists. */
  readonly secret?: ((name: string) => string | undefined) | undefined
  /** Enables the on-behalf-of exchange. Default: off. */
  readonly enableObo?: boolean | undefined
  readonly proxy?: ProxyEnvironment | undefined
  /** PEM certificates to trust in addition to the system's certificates. */
  readonly ca?: string | undefined
  readonly log?: Log | undefined
  /** Reports each attempt to obtain a credential; `error` is undefined on success. */
  readonly obtained?: ((strategy: string, error: unknown) => void) | undefined
  /** Returns Unix milliseconds. Default: Date.now. */
  readonly now?: (() => number) | undefined
  /** Replaces the fetch function for token endpoints. */
  readonly fetch?: Fetch | undefined
  /** Returns the URL of a region's token service. Default: the public endpoints. */
  readonly stsEndpoint?: ((region: string) => string) | undefined
}

export interface StrategyRegistry {
  /** Creates the strategy. Throws an INVALID_CONFIG error that lists all errors, with paths relative to `field`. */
  strategy(config: StrategyConfig, field?: string): CredentialStrategy
  /** Returns the errors that `strategy` would throw, one line each. */
  problems(config: StrategyConfig, field?: string): readonly string[]
  close(): Promise<void>
}

/**
 * Creates the registry. The operator configures the token endpoints, so private addresses are allowed. Plain http is
 * allowed only for loopback.
 */
export function makeOutgoing(from: OutgoingParts = {}): StrategyRegistry {
  const now = from.now ?? Date.now
  const shared = { proxy: from.proxy, ca: from.ca, maxRedirects: 0 }
  const secure = makeFetch(shared)
  const plain = makeFetch({ ...shared, allowHttp: true })
  const parts: StrategyParts = {
    fetch: from.fetch ?? secure,
    httpFetch: from.fetch ?? plain,
    cache: new CredentialCache(now),
    tokens: new CredentialCache(now),
    provers: new BackendProvers(now),
    upstream: from.upstream,
    secret: from.secret ?? (() => undefined),
    enableObo: from.enableObo ?? false,
    now,
    log: from.log ?? silentLog,
    obtained: from.obtained ?? (() => {}),
    stsEndpoint: from.stsEndpoint ?? regionalEndpoint,
  }

  function problems(config: StrategyConfig, field = 'outgoingAuth'): readonly string[] {
    if (!isType(config.type)) return [`${field}.type: must be one of ${Object.keys(strategies).join(', ')}`]
    return strategies[config.type]
      .problems(config, parts)
      .map(({ path, message }) => formatViolations([{ path: `${field}.${path}`, message }]))
  }

  return {
    problems,
    strategy(config, field = 'outgoingAuth') {
      const found = problems(config, field)
      if (found.length > 0) throw new GatehouseError('INVALID_CONFIG', { detail: found.join('\n') })
      return strategies[config.type].make(config, parts, field)
    },
    close: async () => {
      await Promise.all([secure.close(), plain.close()])
    },
  }
}

function isType(type: string): type is keyof typeof strategies {
  return Object.hasOwn(strategies, type)
}
