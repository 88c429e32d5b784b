/**
 * Converts one backend's section of the configuration to settings. If the backend cannot be served, lists all problems
 * in its section.
 *
 * A problem in one backend's section does not affect other backends. A backend with a problem is excluded, reported,
 * and treated as unavailable. The server checks each backend at startup and when the configuration file changes.
 * `gatehouse vmcp validate` checks all backends.
 */
import {
  type AddressPolicy,
  addressViolation,
  GatehouseError,
  type RuntimeBackend,
  timerMs,
  invalidConfig,
} from '../../../schemas/index.ts'
import type { ExcludedBackend, VmcpConfig } from '../../config/index.ts'
import { addsCredentialAgain, type AuthServerFacts } from '../../incoming/index.ts'
import { followCaBundle, followTls, type Log, type TlsMaterial } from '../../net/index.ts'
import type { OnDemandLogin, StrategyConfig } from '../../outgoing/index.ts'
import { type BackendCredentials, type BackendStrategies, strategyOf } from './outgoing-auth.ts'
import type { SignIns } from './sign-ins.ts'

export interface BackendParts {
  readonly outgoing: BackendStrategies
  /** Settings for the embedded authorization server. Undefined if no such server is configured. */
  readonly authServer: AuthServerFacts | undefined
  readonly log: Log
  /** The user's logins. Undefined unless the server runs on the user's own machine. */
  readonly signIns?: Pick<SignIns, 'loginFor'> | undefined
}

/** A backend's settings, without its connections. */
export interface DeclaredBackend {
  readonly url: URL
  /** The addresses to which connections are allowed. */
  readonly addresses: AddressPolicy
  /**
   * Returns the current client certificate and the certificates that are trusted in addition to the system's
   * certificates.
   */
  readonly tls: (() => TlsMaterial) | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly auth: BackendCredentials
  /** The user's login. Present only if the configuration contains no credentials. */
  readonly login: OnDemandLogin | undefined
  readonly timeoutMs: number
}

export type BackendConfiguration =
  | { readonly ready: DeclaredBackend; readonly problems?: undefined }
  | { readonly ready?: undefined; readonly problems: readonly string[] }

/** Returns one backend's settings, or all of its problems as `field: rule` lines. Never throws. */
export function configureBackend(
  backend: RuntimeBackend,
  config: VmcpConfig,
  parts: BackendParts,
): BackendConfiguration {
  const { outgoing, authServer } = parts
  const problems: string[] = []
  const attempt = <T>(read: () => T): T | undefined => {
    try {
      return read()
    } catch (error) {
      problems.push(...problemLines(error))
      return undefined
    }
  }
  const url = attempt(() => urlOf(backend))
  const tls = attempt(() => tlsOf(backend, parts.log))
  const headers = attempt(() => outgoing.headersFor(backend.name, config))
  const auth = attempt(() => outgoing.authFor(backend.name, config))
  const { field, strategy } = strategyOf(backend.name, config)
  const injection = injectionViolation(field, strategy, authServer)
  if (injection !== undefined) problems.push(injection)
  if (problems.length > 0 || !url || !headers || !auth) return { problems }
  const { timeouts } = config.operational
  const own = timeouts.perWorkload ?? {}
  const timeout = Object.hasOwn(own, backend.name) ? own[backend.name] : undefined
  const timeoutMs = timerMs(timeout ?? timeouts.default)
  const hasCredentials = auth.type !== 'unauthenticated' || headers['authorization'] !== undefined
  const login = hasCredentials ? undefined : parts.signIns?.loginFor(backend.name, url, tls?.().ca)
  return { ready: { url, addresses: backend.addresses, tls, headers, auth, login, timeoutMs } }
}

/** Returns the configured backends that cannot be served, with their problems. */
export function findBrokenBackends(config: VmcpConfig, parts: BackendParts): readonly ExcludedBackend[] {
  return (config.backends ?? []).flatMap((backend) => {
    const { problems } = configureBackend(backend, config, parts)
    return problems ? [{ name: backend.name, problems }] : []
  })
}

function problemLines(error: unknown): readonly string[] {
  if (error instanceof GatehouseError && error.code === 'INVALID_CONFIG') return error.message.split('\n')
  return [`cannot be set up: ${error instanceof Error ? error.name : 'unknown error'}`]
}

function tlsOf(backend: RuntimeBackend, log: Log): (() => TlsMaterial) | undefined {
  const field = `backends.${backend.name}`
  if (backend.clientCertificatePath === undefined)
    return followCaBundle(backend.caBundlePath, `${field}.caBundlePath`, log)
  return followTls({ ...backend, insecureSkipVerify: false }, field, log)
}

function urlOf({ name, url, addresses }: RuntimeBackend): URL {
  const violation = addressViolation(url, addresses)
  if (violation !== undefined) throw invalidConfig(`backends.${name}.url: ${violation}`)
  return new URL(url)
}

/**
 * Returns the reason why a strategy conflicts with the embedded authorization server. The server removes upstream
 * tokens from requests. `field` is the strategy's path in the configuration.
 */
export function injectionViolation(
  field: string,
  { type }: Pick<StrategyConfig, 'type'>,
  server: AuthServerFacts | undefined,
): string | undefined {
  return addsCredentialAgain(type, server)
    ? `${field}: ${type} cannot be combined with disableUpstreamTokenInjection, because this type adds a credential again`
    : undefined
}
