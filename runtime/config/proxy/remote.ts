/**
 * How the proxy signs in to its target: nothing, a fixed bearer token, or an OAuth login.
 *
 * Source: docs/reference/specification/proxy-command.md#rules, rules 1 to 6 and "Outgoing (remote server) flags".
 */
import { isProviderId, managedParameters, type ProviderId, providerIds } from '../../oauth/index.ts'
import { Secret } from '../../observe/index.ts'
import { type Environment, readVariable, variables } from './env.ts'
import { SettingErrors, type InputKey, shown } from '../common/setting-errors.ts'
import { flagOf, type ProxyInput } from './flags.ts'
import { renewalPace, type RenewalPace } from './renewal-pace.ts'
import { secretFrom } from '../common/secret-precedence.ts'
import { rotatingSecret } from '../common/secrets.ts'

export type RemoteAuthSettings =
  | { readonly kind: 'none' }
  | {
      readonly kind: 'bearer'
      /** Asked for every request, so that a changed file is reloaded. */
      readonly token: () => Secret
    }
  | OAuthSettings

export interface OAuthSettings {
  readonly kind: 'oauth'
  /** False: only when the target asks for it (rule 1). */
  readonly required: boolean
  /** Nobody asked for a login: what clients send themselves goes first, and a failed login changes nothing. */
  readonly optional: boolean
  readonly issuer: string | undefined
  readonly authorizeUrl: string | undefined
  readonly tokenUrl: string | undefined
  readonly clientId: string | undefined
  readonly clientSecret: Secret | undefined
  /** Used as client id where the authorization server takes metadata documents. */
  readonly clientMetadataUrl: string | undefined
  /** 0: any free port. */
  readonly callbackPort: number
  /** Undefined: from the target's metadata, else the target URI. '' sends none. */
  readonly resource: string | undefined
  /** Undefined: chosen from what the servers say. */
  readonly scopes: readonly string[] | undefined
  readonly scopeParamName: string | undefined
  /** Sets what is not given otherwise. */
  readonly provider: ProviderId | undefined
  readonly skipBrowser: boolean
  readonly timeoutMs: number
  /** Of renewals that failed. */
  readonly pace: RenewalPace
  /** Undefined: nothing is persisted beyond this process. */
  readonly keep: { readonly dir: string; readonly password: Secret | undefined } | undefined
}

const oauthOnly = [
  'remoteAuthIssuer',
  'remoteAuthAuthorizeUrl',
  'remoteAuthTokenUrl',
  'remoteAuthClientSecret',
  'remoteAuthClientSecretFile',
  'remoteAuthCallbackPort',
  'remoteAuthResource',
  'remoteAuthScopes',
  'remoteAuthScopeParamName',
  'remoteAuthProvider',
  'remoteAuthSkipBrowser',
  'remoteAuthTimeout',
  'remoteAuthEphemeral',
] as const satisfies readonly InputKey[]

const triggers = ['remoteAuth', 'remoteAuthClientId'] as const satisfies readonly InputKey[]

export function remoteSettings(
  input: ProxyInput,
  env: Environment,
  violations: SettingErrors,
  warnings: string[],
): RemoteAuthSettings {
  const bearer = bearerToken(env, violations)
  const oauth = triggers.some((key) => violations.given(key))
  if (bearer) {
    const clash = [...triggers, ...oauthOnly].filter((key) => violations.given(key))
    if (clash.length > 0)
      violations.add(clash.map(flagOf).join(', '), `${bearer.from} and a login exclude one another`)
    return { kind: 'bearer', token: bearer.token }
  }
  if (oauth) return oauthSettings(input, env, violations, warnings)
  violations.needs(oauthOnly, '--remote-auth or --remote-auth-client-id: nothing would be done otherwise')
  return { kind: 'none' }
}

function bearerToken(
  env: Environment,
  violations: SettingErrors,
): { token: () => Secret; from: string } | undefined {
  violations.exclusive('remoteAuthBearerToken', 'remoteAuthBearerTokenFile')
  const typed = violations.text('remoteAuthBearerToken')
  if (typed !== undefined) {
    checkToken(typed, '--remote-auth-bearer-token', violations)
    const secret = new Secret(typed)
    return { token: () => secret, from: '--remote-auth-bearer-token' }
  }
  const path = violations.text('remoteAuthBearerTokenFile')
  if (path !== undefined) {
    const token = violations.attempt(() => rotatingSecret(path), flagOf('remoteAuthBearerTokenFile'))
    if (token) checkToken(token().reveal(), `the file ${path}`, violations)
    return { token: token ?? (() => new Secret('')), from: '--remote-auth-bearer-token-file' }
  }
  const value = readVariable(env, variables.remoteBearerToken)
  if (value === undefined) return undefined
  checkToken(value, variables.remoteBearerToken.name, violations)
  const secret = new Secret(value)
  return { token: () => secret, from: variables.remoteBearerToken.name }
}

function checkToken(value: string, source: string, violations: SettingErrors): void {
  if (!/^[\x21-\x7e]+$/.test(value))
    violations.add(source, 'a bearer token is printable characters without blanks')
}

function oauthSettings(
  input: ProxyInput,
  env: Environment,
  violations: SettingErrors,
  warnings: string[],
): OAuthSettings {
  violations.exclusive('remoteAuthIssuer', 'remoteAuthAuthorizeUrl')
  violations.exclusive('remoteAuthIssuer', 'remoteAuthTokenUrl')
  const authorizeUrl = violations.url('remoteAuthAuthorizeUrl')
  const tokenUrl = violations.url('remoteAuthTokenUrl')
  if ((authorizeUrl === undefined) !== (tokenUrl === undefined)) {
    violations.add('--remote-auth-authorize-url, --remote-auth-token-url', 'give both or none')
  }
  const clientId = violations.text('remoteAuthClientId')
  const clientSecret = secretFrom(violations, env, {
    flag: 'remoteAuthClientSecret',
    file: 'remoteAuthClientSecretFile',
    variable: variables.remoteClientSecret,
  })
  if (clientSecret !== undefined && clientId === undefined) {
    violations.add('the client secret for the target', 'needs --remote-auth-client-id')
  }
  if (violations.given('remoteAuthClientSecret')) {
    warnings.push('--remote-auth-client-secret shows in process lists; a file or the environment does not')
  }
  return {
    kind: 'oauth',
    required: input.remoteAuth ?? false,
    optional: false,
    issuer: violations.url('remoteAuthIssuer'),
    authorizeUrl,
    tokenUrl,
    clientId,
    clientSecret,
    clientMetadataUrl: readVariable(env, variables.clientMetadataUrl),
    callbackPort: callbackPort(violations),
    resource: resource(input, violations),
    scopes: violations.scopes('remoteAuthScopes'),
    scopeParamName: scopeParamName(violations),
    provider: provider(violations),
    skipBrowser: input.remoteAuthSkipBrowser ?? false,
    timeoutMs: violations.duration('remoteAuthTimeout') ?? 30_000,
    pace: renewalPace(env, warnings),
    keep: input.remoteAuthEphemeral ? undefined : keepIn(env),
  }
}

function callbackPort(violations: SettingErrors): number {
  const port = violations.integer('remoteAuthCallbackPort', 0, 65_535) ?? 8666
  if (port > 0 && port < 1024) violations.about('remoteAuthCallbackPort', 'must be 0 or from 1024 to 65535')
  return port
}

/** RFC 8707: absolute, no fragment; and it must name a host, as every MCP server does. */
function resource({ remoteAuthResource: value }: ProxyInput, violations: SettingErrors): string | undefined {
  if (value === undefined || value === '') return value
  const url = URL.canParse(value) ? new URL(value) : undefined
  if (!url || url.host === '' || value.includes('#')) {
    violations.about('remoteAuthResource', 'must be an absolute URI with a host and without a fragment')
  }
  return value
}

function provider(violations: SettingErrors): ProviderId | undefined {
  const id = violations.text('remoteAuthProvider')
  if (id === undefined || isProviderId(id)) return id
  violations.about('remoteAuthProvider', `must be one of ${providerIds.join(', ')}, found ${shown(id)}`)
  return undefined
}

function scopeParamName(violations: SettingErrors): string | undefined {
  const name = violations.text('remoteAuthScopeParamName')
  if (name === undefined) return undefined
  if (!/^[\w.-]{1,64}$/.test(name))
    violations.about('remoteAuthScopeParamName', 'must be letters, digits, ".", "_" and "-"')
  else if (name !== 'scope' && managedParameters.has(name)) {
    violations.about('remoteAuthScopeParamName', `${name} is a parameter of the flow itself`)
  }
  return name
}

function keepIn(env: Environment): NonNullable<OAuthSettings['keep']> {
  const home = readVariable(env, { name: 'HOME', meaning: 'home directory' }) ?? '.'
  const base = readVariable(env, variables.stateHome) ?? `${home}/.local/state`
  const password = readVariable(env, variables.statePassword)
  return {
    dir: readVariable(env, variables.stateDir) ?? `${base}/gatehouse`,
    password: password === undefined ? undefined : new Secret(password),
  }
}

/**
 * The settings of a login that no flag asked for, for a person at a terminal: the target is asked whether it wants one.
 * Undefined when something else authenticates already.
 */
export function offeredLogin(
  config: {
    readonly remote: RemoteAuthSettings
    readonly exchange: unknown
    readonly inject: readonly { readonly name: string }[]
  },
  env: Environment,
): OAuthSettings | undefined {
  const taken = config.inject.some(({ name }) => name.toLowerCase() === 'authorization')
  if (config.remote.kind !== 'none' || config.exchange !== undefined || taken) return undefined
  return { ...oauthSettings({}, env, new SettingErrors({}), []), optional: true }
}
