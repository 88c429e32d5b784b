/**
 * Authentication of the proxy to its target: none, a fixed bearer token, or an OAuth login for a user or a machine.
 *
 * Source: docs/reference/specification/proxy-command.md#rules, rules 1 to 6 and "Outgoing (remote server) flags".
 */
import { isProviderId, managedParameters, type ProviderId, providerIds } from '../../oauth/index.ts'
import type { Log } from '../../net/index.ts'
import { Secret } from '../../observe/index.ts'
import { type Environment, readVariable, variables } from './env.ts'
import { SettingErrors, type InputKey, quoteShortened, secretFrom } from '../common/setting-errors.ts'
import { flagOf, proxyFlags, type ProxyInput } from './flags.ts'
import { identitySettings } from './identity-grant.ts'
import { grantName, isMachineGrant, machineGrant, type MachineGrantSource } from './machine-grant.ts'
import { renewalPace, type RenewalPace } from './renewal-pace.ts'
import { rotatingSecret } from '../common/secrets.ts'

export type RemoteAuthSettings =
  | { readonly kind: 'none' }
  | {
      readonly kind: 'bearer'
      /**
       * Called for every request, so that a changed file is reloaded. The log receives a warning if the file is
       * unusable.
       */
      readonly token: (log?: Log) => Secret
    }
  | OAuthSettings

export type RemoteDpop = (typeof proxyFlags.remoteAuthDpop.values)[number]

export interface OAuthSettings {
  readonly kind: 'oauth'
  /** False to log in only when the target requires a login (rule 1). */
  readonly required: boolean
  /**
   * True when none of the flags requests a login. Credentials from clients take precedence, and a failed login has no
   * effect.
   */
  readonly optional: boolean
  readonly issuer: string | undefined
  readonly authorizeUrl: string | undefined
  readonly tokenUrl: string | undefined
  readonly clientId: string | undefined
  readonly clientSecret: Secret | undefined
  /** Grant of a login without a user; undefined when a user logs in. */
  readonly machineGrant: MachineGrantSource | undefined
  /** Token endpoint at which the id-jag grant exchanges the ID token. */
  readonly idpTokenUrl: string | undefined
  /** Whether tokens are bound to a key. `auto`: if the target or the authorization server requires it. */
  readonly dpop: RemoteDpop
  /** Client id for authorization servers that support metadata documents. */
  readonly clientMetadataUrl: string | undefined
  /** Port of the callback server; 0 selects a free port. */
  readonly callbackPort: number
  /**
   * Resource indicator. Default: the resource in the target's metadata, or the target URI if the metadata contains
   * none. '' sends no indicator.
   */
  readonly resource: string | undefined
  /** Scopes to request. Default: scopes from the metadata of the servers. */
  readonly scopes: readonly string[] | undefined
  readonly scopeParamName: string | undefined
  /** Identity provider, which provides defaults for unset settings. */
  readonly provider: ProviderId | undefined
  readonly skipBrowser: boolean
  readonly timeoutMs: number
  /** Pace of retries after a failed renewal. */
  readonly pace: RenewalPace
  /** Store for logins; undefined keeps logins only in this process. */
  readonly keep: { readonly dir: string; readonly password: Secret | undefined } | undefined
}

const oauthOnly = [
  'remoteAuthIssuer',
  'remoteAuthAuthorizeUrl',
  'remoteAuthTokenUrl',
  'remoteAuthClientSecret',
  'remoteAuthClientSecretFile',
  'remoteAuthGrant',
  'remoteAuthPrivateKeyFile',
  'remoteAuthSigningAlg',
  'remoteAuthAssertionFile',
  ...identitySettings,
  'remoteAuthDpop',
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
      violations.add(clash.map(flagOf).join(', '), `${bearer.from} and a login are mutually exclusive`)
    return { kind: 'bearer', token: bearer.token }
  }
  if (oauth) return oauthSettings(input, env, violations, warnings)
  violations.needs(oauthOnly, '--remote-auth or --remote-auth-client-id to have an effect')
  return { kind: 'none' }
}

function bearerToken(
  env: Environment,
  violations: SettingErrors,
): { token: (log?: Log) => Secret; from: string } | undefined {
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
    violations.add(source, 'a bearer token must consist of printable characters without spaces')
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
  const grant = grantName(env, violations)
  if (!isMachineGrant(grant) && (authorizeUrl === undefined) !== (tokenUrl === undefined)) {
    violations.add('--remote-auth-authorize-url, --remote-auth-token-url', 'set both or neither')
  }
  const clientId = violations.text('remoteAuthClientId')
  const clientSecret = secretFrom(violations, env, {
    flag: 'remoteAuthClientSecret',
    file: 'remoteAuthClientSecretFile',
    variable: variables.remoteClientSecret,
  })
  if (!requiresClient(grant) && clientSecret !== undefined && clientId === undefined) {
    violations.add('the client secret for the target', 'requires --remote-auth-client-id')
  }
  if (violations.given('remoteAuthClientSecret')) {
    warnings.push(
      '--remote-auth-client-secret is visible in process lists; use a file or the environment instead',
    )
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
    machineGrant: machineGrant(grant, violations, { id: clientId, secret: clientSecret }),
    idpTokenUrl: input.remoteAuthIdpTokenUrl,
    dpop: remoteDpop(violations),
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

/** True for a grant whose own validation reports a missing client id. */
function requiresClient(grant: ReturnType<typeof grantName>): boolean {
  return grant === 'client_credentials' || grant === 'id-jag'
}

function remoteDpop(violations: SettingErrors): RemoteDpop {
  const { values, default: byDefault } = proxyFlags.remoteAuthDpop
  const given = violations.text('remoteAuthDpop') ?? byDefault
  const mode = values.find((known) => known === given)
  if (mode === undefined)
    violations.about('remoteAuthDpop', `must be one of ${values.join(', ')}, found ${quoteShortened(given)}`)
  return mode ?? byDefault
}

function callbackPort(violations: SettingErrors): number {
  const port = violations.integer('remoteAuthCallbackPort', 0, 65_535) ?? 8666
  if (port > 0 && port < 1024) violations.about('remoteAuthCallbackPort', 'must be 0 or from 1024 to 65535')
  return port
}

/** Returns the resource: an absolute URI without a fragment (RFC 8707) and with a host, as MCP servers require. */
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
  violations.about(
    'remoteAuthProvider',
    `must be one of ${providerIds.join(', ')}, found ${quoteShortened(id)}`,
  )
  return undefined
}

function scopeParamName(violations: SettingErrors): string | undefined {
  const name = violations.text('remoteAuthScopeParamName')
  if (name === undefined) return undefined
  if (!/^[\w.-]{1,64}$/.test(name))
    violations.about('remoteAuthScopeParamName', 'must consist of letters, digits, ".", "_" and "-"')
  else if (name !== 'scope' && managedParameters.has(name)) {
    violations.about('remoteAuthScopeParamName', `${name} is reserved for the flow`)
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
 * Returns the settings for a login that the flags do not request: a user at a terminal can log in if the target
 * requires it. Returns undefined when other credentials are configured.
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
  return { ...userLogin(env), optional: true }
}

/** Returns the settings of a user's login when no flags are set. */
export function userLogin(env: Environment): OAuthSettings {
  // A variable that selects another grant applies only to configured logins.
  const ownEnv = { ...env, [variables.remoteGrant.name]: undefined }
  return oauthSettings({}, ownEnv, new SettingErrors({}), [])
}

/** The variables that `userLogin` reads, in addition to HOME. */
export const userLoginVariables: readonly string[] = [
  variables.stateHome.name,
  variables.stateDir.name,
  variables.statePassword.name,
  variables.clientMetadataUrl.name,
]
