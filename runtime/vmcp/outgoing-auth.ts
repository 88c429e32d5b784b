/**
 * How requests to each backend get their credentials and fixed headers: strategies from the configuration, secret
 * values and header forwarding from the environment.
 *
 * An explicit entry of a backend wins in either mode; then the default; then none. In a pod the hooks have resolved
 * references into entries already.
 * Source: spec document 3 (config.outgoingAuth); header forwarding of remote server entries.
 */
import {
  envName,
  GatehouseError,
  headerNameProblem,
  headerValueProblem,
  isSwitchedOn,
} from '../../schemas/index.ts'
import { type VmcpConfig, vmcpEnvironment } from '../config/index.ts'
import type { Log } from '../net/index.ts'
import { makeOutgoing, type Outgoing, type UpstreamTokens } from '../outgoing/index.ts'
import type { BackendAuth } from './fleet.ts'

type Environment = Readonly<Record<string, string | undefined>>

export interface OutgoingAuth {
  /** Faults of every strategy and of every backend's fixed headers, used or not; empty when all can be made. */
  problems(config: VmcpConfig): readonly string[]
  /** Throws INVALID_CONFIG naming every fault. */
  authFor(backend: string, config: VmcpConfig): BackendAuth
  headersFor(backend: string): Readonly<Record<string, string>>
  close(): Promise<void>
}

/** Throws INVALID_CONFIG. */
export function makeOutgoingAuth(
  env: Environment,
  upstream: UpstreamTokens | undefined,
  log: Log,
): OutgoingAuth {
  const outgoing = makeOutgoing({
    secret: (name) => env[name],
    enableObo: isSwitchedOn(env, vmcpEnvironment.enableObo),
    upstream,
    log,
  })
  return {
    problems: (config) => [...strategyProblems(outgoing, config), ...headerProblems(config, env)],
    authFor: (backend, config) => authFor(outgoing, backend, config),
    headersFor: (backend) => headersFor(backend, env),
    close: () => outgoing.close(),
  }
}

function strategyProblems(outgoing: Outgoing, { outgoingAuth }: VmcpConfig): string[] {
  const entries = Object.entries(outgoingAuth.backends ?? {})
  return [
    ...(outgoingAuth.default ? outgoing.problems(outgoingAuth.default, 'outgoingAuth.default') : []),
    ...entries.flatMap(([name, strategy]) => outgoing.problems(strategy, `outgoingAuth.backends.${name}`)),
  ]
}

function headerProblems(config: VmcpConfig, env: Environment): string[] {
  return (config.backends ?? []).flatMap(({ name }) => {
    try {
      headersFor(name, env)
      return []
    } catch (error) {
      return [error instanceof Error ? error.message : String(error)]
    }
  })
}

function authFor(outgoing: Outgoing, backend: string, { outgoingAuth }: VmcpConfig): BackendAuth {
  const own = outgoingAuth.backends?.[backend]
  const config = own ?? outgoingAuth.default ?? { type: 'unauthenticated' as const }
  const field = own ? `outgoingAuth.backends.${backend}` : 'outgoingAuth.default'
  const strategy = outgoing.strategy(config, field)
  return {
    type: strategy.type,
    credentials: strategy,
    perCaller: strategy.perCaller,
    fingerprint: JSON.stringify(config),
  }
}

/** Fixed headers of one backend. Throws INVALID_CONFIG when the variable is not what it should be. */
function headersFor(backend: string, env: Environment): Readonly<Record<string, string>> {
  const variable = `${vmcpEnvironment.headerForward}${envName(backend)}`
  const text = env[variable]
  if (text === undefined || text === '') return {}
  const { addPlaintextHeaders, addHeadersFromSecret } = parse(variable, text)
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(addPlaintextHeaders)) add(headers, variable, name, value)
  for (const [name, identifier] of Object.entries(addHeadersFromSecret)) {
    const value = env[`${vmcpEnvironment.headerSecret}${identifier}`]
    if (value === undefined || value === '') {
      throw invalid(`${variable}: the variable ${vmcpEnvironment.headerSecret}${identifier} is not set`)
    }
    add(headers, variable, name, value)
  }
  return headers
}

function add(headers: Record<string, string>, variable: string, name: string, value: string): void {
  const lower = name.toLowerCase()
  const problem = headerNameProblem(name, 'injected')
  if (problem !== undefined) throw invalid(`${variable}: ${problem}`)
  const valueProblem = headerValueProblem(value)
  if (valueProblem !== undefined) throw invalid(`${variable}: the value of ${name} ${valueProblem}`)
  if (Object.hasOwn(headers, lower)) throw invalid(`${variable}: ${name} occurs twice`)
  headers[lower] = value
}

interface HeaderForward {
  readonly addPlaintextHeaders: Readonly<Record<string, string>>
  readonly addHeadersFromSecret: Readonly<Record<string, string>>
}

function parse(variable: string, text: string): HeaderForward {
  let read: unknown
  try {
    read = JSON.parse(text)
  } catch {
    throw invalid(`${variable}: must be a JSON object`)
  }
  if (typeof read !== 'object' || read === null || Array.isArray(read)) {
    throw invalid(`${variable}: must be a JSON object`)
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
    throw invalid(`${variable}: must map header names to texts`)
  const entries = Object.entries(value).map(([name, text]): [string, string] => {
    if (typeof text !== 'string') throw invalid(`${variable}: must map header names to texts`)
    return [name, text]
  })
  return Object.fromEntries(entries)
}

function invalid(detail: string): GatehouseError {
  return new GatehouseError('INVALID_CONFIG', { detail })
}
