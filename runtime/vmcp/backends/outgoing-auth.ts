/**
 * Provides the credentials and fixed headers for requests to each backend. Strategies come from the configuration.
 * Secret values and fixed headers come from the environment.
 *
 * A backend's explicit entry takes precedence over the default. A backend with neither entry gets no credentials. In a
 * pod, the hooks have already resolved references to entries.
 * Source: docs/reference/specification/virtual-server.md#outgoingAuth (config.outgoingAuth); header forwarding of
 * remote server entries.
 */
import {
  envName,
  headerNameViolation,
  headerValueViolation,
  isSwitchedOn,
  invalidConfig,
} from '../../../schemas/index.ts'
import { type VmcpConfig, vmcpEnvironment } from '../../config/index.ts'
import type { Log } from '../../net/index.ts'
import {
  makeOutgoing,
  type StrategyRegistry,
  type StrategyConfig,
  type UpstreamTokens,
} from '../../outgoing/index.ts'
import type { Credentials } from './transport/target.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** The credentials for requests to one backend. */
export interface BackendCredentials {
  readonly type: string
  readonly credentials: Credentials
  /** True if the credentials depend on the caller. */
  readonly perCaller: boolean
  /** Lowercase names of the headers that the credentials may set. */
  readonly headerNames: readonly string[]
  /** A digest that is equal for equal settings. */
  readonly fingerprint: string
}

export interface BackendStrategies {
  /** Lists a strategy's problems with paths below `field`. The list is empty if the strategy is valid. */
  strategyViolations(strategy: StrategyConfig, field: string): readonly string[]
  /** Returns one backend's credentials. Throws an INVALID_CONFIG error that lists every problem. */
  authFor(backend: string, config: VmcpConfig): BackendCredentials
  /** Returns one backend's fixed headers. Throws INVALID_CONFIG if the headers are invalid. */
  headersFor(backend: string, config: Pick<VmcpConfig, 'backends'>): Readonly<Record<string, string>>
  close(): Promise<void>
}

/** Creates the credentials for all backends. Throws INVALID_CONFIG if the configuration is invalid. */
export function makeOutgoingAuth(
  env: Environment,
  upstream: UpstreamTokens | undefined,
  log: Log,
  obtained?: (strategy: string, error: unknown) => void,
): BackendStrategies {
  const outgoing = makeOutgoing({
    secret: (name) => env[name],
    enableObo: isSwitchedOn(env, vmcpEnvironment.enableObo),
    upstream,
    log,
    obtained,
  })
  return {
    strategyViolations: (strategy, field) => outgoing.problems(strategy, field),
    authFor: (backend, config) => authFor(outgoing, backend, config),
    headersFor: (backend, config) => headersFor(backend, config, env),
    close: () => outgoing.close(),
  }
}

/** A strategy and its path in the configuration. */
export interface NamedStrategy {
  readonly field: string
  readonly strategy: StrategyConfig
}

/** Returns one backend's strategy, the default strategy, or `unauthenticated`. */
export function strategyOf(backend: string, { outgoingAuth }: VmcpConfig): NamedStrategy {
  const entries = outgoingAuth.backends ?? {}
  const own = Object.hasOwn(entries, backend) ? entries[backend] : undefined
  return own
    ? { field: `outgoingAuth.backends.${backend}`, strategy: own }
    : { field: 'outgoingAuth.default', strategy: outgoingAuth.default ?? { type: 'unauthenticated' } }
}

function authFor(outgoing: StrategyRegistry, backend: string, config: VmcpConfig): BackendCredentials {
  const named = strategyOf(backend, config)
  const strategy = outgoing.strategy(named.strategy, named.field)
  return {
    type: strategy.type,
    credentials: strategy,
    perCaller: strategy.perCaller,
    headerNames: strategy.headerNames,
    fingerprint: JSON.stringify(named.strategy),
  }
}

/**
 * Returns one backend's fixed headers. Throws INVALID_CONFIG if the variable is invalid or matches two backends. For
 * example, `a-b` and `a.b` map to the same variable, and no backend may receive another backend's headers.
 */
function headersFor(
  backend: string,
  { backends = [] }: Pick<VmcpConfig, 'backends'>,
  env: Environment,
): Readonly<Record<string, string>> {
  const named = backends.find(({ name }) => name === backend)?.headersEnv
  const variable = named ?? `${vmcpEnvironment.headerForward}${envName(backend)}`
  const text = env[variable]
  if (text === undefined || text === '') {
    if (named === undefined) return {}
    throw invalidConfig(`backends.${backend}.headersEnv: the variable ${named} is not set`)
  }
  const other = backends.find(({ name }) => name !== backend && envName(name) === envName(backend))
  if (other) throw invalidConfig(`${variable}: matches both ${backend} and ${other.name}; rename one of them`)
  const { addPlaintextHeaders, addHeadersFromSecret } = parseHeaderForward(variable, text)
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(addPlaintextHeaders)) addHeader(headers, variable, name, value)
  for (const [name, identifier] of Object.entries(addHeadersFromSecret)) {
    const value = env[`${vmcpEnvironment.headerSecret}${identifier}`]
    if (value === undefined || value === '') {
      throw invalidConfig(`${variable}: the variable ${vmcpEnvironment.headerSecret}${identifier} is not set`)
    }
    addHeader(headers, variable, name, value)
  }
  return headers
}

function addHeader(headers: Record<string, string>, variable: string, name: string, value: string): void {
  const lower = name.toLowerCase()
  const problem = headerNameViolation(name, 'injected')
  if (problem !== undefined) throw invalidConfig(`${variable}: ${problem}`)
  const valueViolation = headerValueViolation(value)
  if (valueViolation !== undefined) throw invalidConfig(`${variable}: the value of ${name} ${valueViolation}`)
  if (Object.hasOwn(headers, lower)) throw invalidConfig(`${variable}: ${name} occurs twice`)
  headers[lower] = value
}

interface HeaderForward {
  readonly addPlaintextHeaders: Readonly<Record<string, string>>
  readonly addHeadersFromSecret: Readonly<Record<string, string>>
}

function parseHeaderForward(variable: string, text: string): HeaderForward {
  let read: unknown
  try {
    read = JSON.parse(text)
  } catch {
    throw invalidConfig(`${variable}: must be a JSON object`)
  }
  if (typeof read !== 'object' || read === null || Array.isArray(read)) {
    throw invalidConfig(`${variable}: must be a JSON object`)
  }
  const {
    addPlaintextHeaders,
    addHeadersFromSecret,
  }: { addPlaintextHeaders?: unknown; addHeadersFromSecret?: unknown } = read
  return {
    addPlaintextHeaders: stringMap(variable, addPlaintextHeaders),
    addHeadersFromSecret: stringMap(variable, addHeadersFromSecret),
  }
}

function stringMap(variable: string, value: unknown): Readonly<Record<string, string>> {
  if (value === undefined) return {}
  if (typeof value !== 'object' || value === null)
    throw invalidConfig(`${variable}: must map header names to strings`)
  const entries = Object.entries(value).map(([name, text]): [string, string] => {
    if (typeof text !== 'string') throw invalidConfig(`${variable}: must map header names to strings`)
    return [name, text]
  })
  return Object.fromEntries(entries)
}
