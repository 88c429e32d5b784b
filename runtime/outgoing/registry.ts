/**
 * Every way to authenticate to a backend, by the name that configuration uses, and the one place that makes them.
 *
 * Adding a strategy is a file and a line here; the compiler names the line. All strategies of a process share one
 * cache and one set of connections.
 */
import { formatViolations, GatehouseError } from '../../schemas/index.ts'
import { type Fetch, type Log, makeFetch, type ProxyEnvironment, silentLog } from '../net/index.ts'
import { basicAuth } from './strategies/basic-auth.ts'
import { bearerToken } from './strategies/bearer-token.ts'
import { CredentialCache } from './cache.ts'
import { cloudSts } from './strategies/cloud-sts.ts'
import type { StrategyConfig, StrategyModule, StrategyParts } from './config.ts'
import { headerInjection } from './strategies/header-injection.ts'
import { obo } from './strategies/obo.ts'
import type { CredentialStrategy, UpstreamTokens } from './strategy.ts'
import { regionalEndpoint } from './aws/sts.ts'
import { tokenExchange } from './strategies/token-exchange.ts'
import { unauthenticated } from './strategies/unauthenticated.ts'
import { upstreamInject } from './strategies/upstream-inject.ts'
import { xaa } from './strategies/xaa.ts'

const strategies = {
  unauthenticated,
  basic_auth: basicAuth,
  bearer_token: bearerToken,
  header_injection: headerInjection,
  token_exchange: tokenExchange,
  upstream_inject: upstreamInject,
  cloud_sts: cloudSts,
  obo,
  xaa,
} as const satisfies Record<StrategyConfig['type'], StrategyModule>

export interface OutgoingParts {
  /** Upstream tokens of callers; absent: strategies that need them are refused. */
  readonly upstream?: UpstreamTokens | undefined
  /** Value of the variable that a `…Env` field names. Default: there are none. */
  readonly secret?: ((name: string) => string | undefined) | undefined
  /** On-behalf-of exchange; default off. */
  readonly enableObo?: boolean | undefined
  readonly proxy?: ProxyEnvironment | undefined
  /** PEM certificates trusted beside the system's. */
  readonly ca?: string | undefined
  readonly log?: Log | undefined
  /** Called with each attempt to get a credential; `error` undefined: it worked. */
  readonly obtained?: ((strategy: string, error: unknown) => void) | undefined
  /** Milliseconds, default Date.now. */
  readonly now?: (() => number) | undefined
  /** Replaces the fetches for token endpoints. */
  readonly fetch?: Fetch | undefined
  /** Region -> URL of its token service; default the public ones. */
  readonly stsEndpoint?: ((region: string) => string) | undefined
}

export interface StrategyRegistry {
  /** Throws GatehouseError INVALID_CONFIG with every error, each below `field`. */
  strategy(config: StrategyConfig, field?: string): CredentialStrategy
  /** The same errors as lines; empty when `strategy` would succeed. */
  problems(config: StrategyConfig, field?: string): readonly string[]
  close(): Promise<void>
}

/** Token endpoints are the operator's words, so private addresses are allowed; https but for loopback. */
export function makeOutgoing(from: OutgoingParts = {}): StrategyRegistry {
  const now = from.now ?? Date.now
  const shared = { proxy: from.proxy, ca: from.ca, maxRedirects: 0 }
  const secure = makeFetch(shared)
  const plain = makeFetch({ ...shared, allowHttp: true })
  const parts: StrategyParts = {
    fetch: from.fetch ?? secure,
    httpFetch: from.fetch ?? plain,
    cache: new CredentialCache(now),
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
    strategy(config, field) {
      const found = problems(config, field)
      if (found.length > 0) throw new GatehouseError('INVALID_CONFIG', { detail: found.join('\n') })
      return strategies[config.type].make(config, parts)
    },
    close: async () => {
      await Promise.all([secure.close(), plain.close()])
    },
  }
}

function isType(type: string): type is keyof typeof strategies {
  return Object.hasOwn(strategies, type)
}
