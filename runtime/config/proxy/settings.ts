/**
 * The settings of the proxy command. Checks all input at once, before any login, and resolves secrets by their
 * precedence.
 *
 * An incomplete security setting is an error and never results in open access. This module does not listen, connect or
 * open a browser.
 * Source: docs/reference/specification/proxy-command.md#rules, rules 1 to 7 and the flag tables.
 */
import type { CertificateFiles } from '../../../schemas/certificate/index.ts'
import {
  type AddressPolicy,
  isSwitchedOn,
  type OutgoingStrategy,
  type TargetTls,
  type RuntimeSessionStorage,
  type Dpop,
} from '../../../schemas/index.ts'
import { type ProxyEnvironment, proxyEnvironment } from '../../net/index.ts'
import { type Environment, variables } from './env.ts'
import { servingFiles } from '../common/serving-files.ts'
import { SettingErrors, originViolation } from '../common/setting-errors.ts'
import { injectedHeaders, type InjectedHeader } from './injected-headers.ts'
import { type IncomingIssuer, type IncomingOidc, oidcSettings } from './oidc.ts'
import { exchangeSettings, type ExchangeSettings } from './exchange.ts'
import { flagOf, type ProxyInput } from './flags.ts'
import { remoteSettings, type RemoteAuthSettings } from './remote.ts'
import { parseTarget, type TargetAddress } from './target.ts'

/** Final values, in which secrets are wrapped. */
export interface ProxySettings {
  readonly name: string
  readonly targetUri: string
  readonly target: TargetAddress
  /** Address as given. Binding resolves a name. */
  readonly host: string
  /** Port to listen on; 0 lets the system select a port. */
  readonly port: number
  /** Certificate files; undefined for plain HTTP. */
  readonly tls?: CertificateFiles | undefined
  readonly allowedOrigins: readonly string[]
  readonly resourceUrl: string | undefined
  /** Time limit for response headers in milliseconds; 0 waits forever. */
  readonly requestTimeoutMs: number
  /** True when the target accepts only POST. */
  readonly stateless?: boolean | undefined
  /** Authentication of clients; undefined for an open endpoint. */
  readonly oidc: IncomingOidc | undefined
  /** Additional issuers, from a configuration file. */
  readonly issuers?: readonly IncomingIssuer[] | undefined
  /** Settings for access tokens that are bound to a key, from a configuration file. */
  readonly dpop?: Dpop | undefined
  readonly passAuthorization: boolean
  readonly remote: RemoteAuthSettings
  readonly exchange: ExchangeSettings | undefined
  readonly inject: readonly InjectedHeader[]
  /** Trust anchors for the target and its authorization server, PEM. */
  readonly remoteCa: string | undefined
  readonly debug: boolean
  /** Allowed addresses of the target, from a configuration file; undefined allows any address. */
  readonly targetAddresses?: AddressPolicy | undefined
  /** Client certificate for the target, from a configuration file. */
  readonly targetTls?: TargetTls | undefined
  /** Alternative authentication strategy for the target, from a configuration file. */
  readonly strategy?: OutgoingStrategy | undefined
  /**
   * True if no credential may be sent, not even a token from an embedded authorization server. From a configuration
   * file.
   */
  readonly unauthenticated?: boolean | undefined
  readonly endpointPrefix?: string | undefined
  readonly trustProxyHeaders?: boolean | undefined
  /** True when the target is the bridge of a stdio server, which must be able to group requests by caller. */
  readonly identifyCallers?: boolean | undefined
  readonly sessionStorage?: RuntimeSessionStorage | undefined
  readonly metricsPort: number | undefined
  readonly workers: number
  readonly proxyEnvironment: ProxyEnvironment
  /** Allowed but risky configurations, one line each. */
  readonly warnings: readonly string[]
}

/** Resolves the settings. Throws INVALID_CONFIG with one line per error. `name` is SERVER_NAME. */
export function resolveProxyConfig(
  name: string,
  input: ProxyInput,
  env: Environment,
  { debug = false }: { readonly debug?: boolean } = {},
): ProxySettings {
  const violations = new SettingErrors(input)
  const warnings: string[] = []
  if (!/^[\x21-\x7e]{1,253}$/.test(name))
    violations.add('SERVER_NAME', 'must consist of 1 to 253 printable characters without spaces')
  const target = readTarget(input, violations)
  const inject = injectedHeaders(input, env, violations)
  const oidc = oidcSettings(input, env, violations)
  const remote = remoteSettings(input, env, violations, warnings)
  const exchange = exchangeSettings(input, env, violations, warnings)
  if (oidc === undefined && input.passAuthorization === true) {
    violations.about(
      'passAuthorization',
      'requires an --oidc-* flag; without one, Authorization is always forwarded',
    )
  }
  if (input.passAuthorization === true && (exchange || remote.kind !== 'none')) {
    violations.about(
      'passAuthorization',
      'cannot be combined with a login, a bearer token or token exchange, which set the same header',
    )
  }
  if (remote.kind === 'oauth' && remote.machineGrant && exchange?.subjectTokenType.endsWith(':id_token')) {
    violations.about(
      'tokenExchangeSubjectTokenType',
      'id_token requires a user login, because a login without a user returns no ID token',
    )
  }
  if (exchange && remote.kind === 'oauth' && remote.dpop === 'required') {
    violations.about(
      'remoteAuthDpop',
      'required cannot be combined with token exchange, because the target does not receive the token of the login',
    )
  }
  if (exchange && remote.kind === 'none' && oidc === undefined) {
    warnings.push('token exchange without --oidc-*: client tokens are exchanged without validation')
  }
  for (const { name: header } of inject) {
    if (header.toLowerCase() === 'authorization' && (remote.kind !== 'none' || exchange)) {
      warnings.push('an injected Authorization header replaces the token of the login or the exchange')
    }
  }
  const config: Omit<ProxySettings, 'target'> & { target: TargetAddress | undefined } = {
    name,
    targetUri: input.targetUri ?? '',
    target,
    host: violations.host('host') ?? '127.0.0.1',
    port: violations.integer('port', 0, 65_535) ?? 0,
    tls: violations.attempt(() => servingFiles(input)),
    allowedOrigins: readOrigins(input, violations),
    resourceUrl: readResourceUrl(input, violations),
    requestTimeoutMs: violations.duration('requestTimeout', { zero: true }) ?? 60_000,
    stateless: input.stateless,
    oidc,
    passAuthorization: input.passAuthorization ?? false,
    // The target's challenges concern the exchanged token, not the token of the login.
    remote: remote.kind === 'oauth' && exchange ? { ...remote, dpop: 'off' } : remote,
    exchange,
    inject,
    remoteCa: violations.file('remoteCaBundle'),
    debug: debug || (violations.attempt(() => isSwitchedOn(env, variables.debug.name)) ?? false),
    metricsPort: violations.integer('metricsPort', 0, 65_535),
    workers: violations.integer('workers', 1, 64) ?? 1,
    proxyEnvironment: proxyEnvironment(env),
    warnings,
  }
  violations.throwIfAny()
  if (config.target === undefined) throw violations.error()
  return { ...config, target: config.target }
}

function readTarget(input: ProxyInput, violations: SettingErrors): TargetAddress | undefined {
  const { targetUri } = input
  if (targetUri === undefined || targetUri === '') {
    violations.about('targetUri', 'is required')
    return undefined
  }
  return violations.attempt(() => parseTarget(targetUri), flagOf('targetUri'))
}

function readOrigins(input: ProxyInput, violations: SettingErrors): readonly string[] {
  const given = input.allowedOrigins ?? []
  for (const origin of given) {
    const problem = originViolation(origin)
    if (problem !== undefined) violations.about('allowedOrigins', problem)
  }
  return given
}

function readResourceUrl(input: ProxyInput, violations: SettingErrors): string | undefined {
  const { resourceUrl } = input
  if (resourceUrl === undefined) return undefined
  if (!/^https?:\/\//i.test(resourceUrl) || !URL.canParse(resourceUrl) || resourceUrl.includes('#')) {
    violations.about('resourceUrl', 'must be an absolute http or https URL without a fragment')
  }
  return resourceUrl
}
