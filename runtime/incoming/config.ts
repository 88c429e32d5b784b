/**
 * Configuration of incoming authentication: one type for both the proxy's flags and the virtual server's
 * `incomingAuth`.
 *
 * All values are resolved: files have been read, and environment variables have been replaced. An incomplete setting is
 * an error and never results in open access.
 * Source: docs/reference/specification/proxy-command.md#incoming (incoming flags),
 * docs/reference/specification/virtual-server.md#incomingAuth (config.incomingAuth.oidc).
 */
import { userInfo } from 'node:os'
import {
  type Dpop,
  GatehouseError,
  type IncomingAuthFile,
  issuerViolations,
  type RuntimeIssuer,
} from '../../schemas/index.ts'
import { rotatingSecret } from '../config/index.ts'
import { followCaBundle, type Log, type TlsMaterial } from '../net/index.ts'
import { endpointViolation } from '../oauth/index.ts'

export type IncomingConfig =
  | { readonly type: 'anonymous' }
  | {
      readonly type: 'local'
      /** Operating system user name. */
      readonly username: string
    }
  | {
      readonly type: 'oidc'
      readonly oidc: OidcConfig
      /** Additional issuers. The `iss` claim of a token selects the issuer. */
      readonly issuers?: readonly AdditionalIssuer[] | undefined
      /** Claims with groups or roles that policies read, in addition to the well-known claims. May be dotted paths. */
      readonly groupClaims?: readonly string[] | undefined
    }

export interface OidcConfig {
  readonly issuer?: string | undefined
  /** Audience that the token's `aud` must contain. Default: `resource`. */
  readonly audience?: string | undefined
  /** Client id for introspection. */
  readonly clientId?: string | undefined
  /** Client secret for introspection. */
  readonly clientSecret?: string | undefined
  readonly introspectionUrl?: string | undefined
  /** Replaces the discovered key set. */
  readonly jwksUrl?: string | undefined
  /** Public URL of this server, for metadata and challenges. Default: `audience`, if it is a URL. */
  readonly resource?: string | undefined
  /** Scopes for metadata and challenges. Default: `openid` in metadata, none in challenges. */
  readonly scopes?: readonly string[] | undefined
  /** Allows plain http to hosts other than loopback; for development only. */
  readonly insecureAllowHttp?: boolean | undefined
  /** Allows private addresses for discovery and keys. */
  readonly jwksAllowPrivateIp?: boolean | undefined
  /** Allows private addresses for introspection. */
  readonly protectedResourceAllowPrivateIp?: boolean | undefined
  /** Returns the certificates to trust in addition to the system's. Called for each new connection. */
  readonly tls?: (() => TlsMaterial) | undefined
  /** File that contains the bearer token for requests to the key set. A changed file takes effect without a restart. */
  readonly jwksAuthTokenPath?: string | undefined
  /** Accept only this subject's tokens. */
  readonly subject?: string | undefined
  /**
   * True if the protected-resource document lists the issuer. Default: true for the first issuer, false for other
   * issuers.
   */
  readonly advertise?: boolean | undefined
  /** Default: tokens that are bound to a key are rejected. */
  readonly dpop?: Dpop | undefined
}

/** An issuer in addition to the first issuer. The server's own URL and scopes are settings of the first issuer. */
export interface AdditionalIssuer extends Omit<OidcConfig, 'resource' | 'scopes' | 'dpop'> {
  readonly issuer: string
  readonly audience: string
  /** Prefix for subjects. Default: the issuer followed by `#`. */
  readonly subjectPrefix?: string | undefined
  /** Prefix for groups and roles. Default: the issuer followed by `#`. */
  readonly groupPrefix?: string | undefined
}

/**
 * Returns the errors of an OIDC configuration as "field: rule" lines, with the field names of the virtual server's
 * configuration. `ownKeys` is true when this process has the issuer's keys.
 */
export function oidcViolations(
  config: OidcConfig,
  { ownKeys = false }: { readonly ownKeys?: boolean } = {},
): readonly string[] {
  const problems: string[] = []
  for (const field of ['issuer', 'jwksUrl', 'introspectionUrl'] as const) {
    const value = config[field]
    const problem = value === undefined ? undefined : endpointViolation(value, config.insecureAllowHttp)
    if (problem !== undefined) problems.push(`${field}: ${problem}`)
  }
  if (config.resource !== undefined && !isHttpUrl(config.resource)) {
    problems.push('resource: must be an absolute http or https URL without a fragment')
  }
  if (!config.issuer && !config.jwksUrl && !config.introspectionUrl && !ownKeys) {
    problems.push('issuer: set issuer, jwksUrl or introspectionUrl; otherwise, no token can be checked')
  }
  if (!config.audience && !config.resource) {
    problems.push('audience: set audience or resource; otherwise, tokens for any audience would be accepted')
  }
  if (config.clientSecret !== undefined && !config.clientId) {
    problems.push('clientId: must be set when a client secret is given')
  }
  if (acceptsProofs(config) && resourceUrl(config) === undefined) {
    problems.push('resource: must be set for DPoP, because proofs contain the URL of this server')
  }
  const tokenFile = secretFileViolation(config.jwksAuthTokenPath)
  if (tokenFile !== undefined) problems.push(`jwksAuthTokenPath: ${tokenFile}`)
  return problems
}

function secretFileViolation(path: string | undefined): string | undefined {
  try {
    if (path !== undefined) rotatingSecret(path)
    return undefined
  } catch (error) {
    if (error instanceof GatehouseError) return error.message
    throw error
  }
}

/**
 * Returns the errors in all issuers, as lines that begin with `oidc.` or `issuers[0].`. `ownKeys` is true when this
 * process has the keys of the first issuer.
 */
export function incomingViolations(
  { oidc, issuers = [] }: Extract<IncomingConfig, { type: 'oidc' }>,
  options: { readonly ownKeys?: boolean } = {},
): readonly string[] {
  const at = (index: number): string => (index === 0 ? 'oidc' : `issuers[${index - 1}]`)
  return [
    ...oidcViolations(oidc, options).map((line) => `oidc.${line}`),
    ...issuers.flatMap((issuer, index) => oidcViolations(issuer).map((line) => `${at(index + 1)}.${line}`)),
    ...issuerViolations([oidc, ...issuers]).map(
      ({ index, field, message }) => `${at(index)}.${field}: ${message}`,
    ),
  ]
}

/** Returns the audience that tokens must contain. */
export function requiredAudience(config: OidcConfig): string {
  return config.audience || config.resource || ''
}

/** Returns the public URL of this server; undefined if it is unknown. */
export function resourceUrl(config: OidcConfig): string | undefined {
  if (config.resource) return config.resource
  return config.audience !== undefined && isHttpUrl(config.audience) ? config.audience : undefined
}

/** True if this server accepts tokens that are bound to a key. */
export function acceptsProofs({ dpop }: OidcConfig): boolean {
  return dpop !== undefined && dpop.mode !== 'off'
}

function isHttpUrl(value: string): boolean {
  return /^https?:\/\//i.test(value) && URL.canParse(value) && !value.includes('#')
}

export interface IncomingFileParts {
  readonly env: Environment
  readonly log: Log
  /** Claims with groups or roles that policies read, in addition to the well-known claims. */
  readonly groupClaims: readonly string[]
}

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Converts the `incomingAuth` of a configuration file. Resolves variables and files. Throws INVALID_CONFIG if a
 * variable or file cannot be read.
 */
export function incomingFromFile(file: IncomingAuthFile, parts: IncomingFileParts): IncomingConfig {
  const { type, oidc, issuers, dpop } = file
  if (type === 'anonymous') return { type }
  if (type === 'local') return { type, username: userInfo().username }
  if (!oidc)
    throw new GatehouseError('INVALID_CONFIG', { detail: 'incomingAuth.oidc: is required when type is oidc' })
  return {
    type,
    oidc: { ...resolved(oidc, 'incomingAuth.oidc', parts), dpop },
    issuers: issuers?.map((issuer, index) => resolved(issuer, `incomingAuth.issuers[${index}]`, parts)),
    groupClaims: parts.groupClaims,
  }
}

/** Returns the configured names of claims that contain groups or roles. */
export function groupClaimsOf(authz: IncomingAuthFile['authz']): readonly string[] {
  return [authz?.groupClaimName, authz?.roleClaimName].filter((name) => name !== undefined)
}

type Unresolved = Pick<RuntimeIssuer, 'clientSecretEnv' | 'caBundlePath'>

function resolved<Issuer extends Unresolved>(issuer: Issuer, field: string, { env, log }: IncomingFileParts) {
  const { clientSecretEnv, caBundlePath, ...rest } = issuer
  return {
    ...rest,
    clientSecret:
      clientSecretEnv === undefined
        ? undefined
        : secretFrom(env, clientSecretEnv, `${field}.clientSecretEnv`),
    tls: followCaBundle(caBundlePath, `${field}.caBundlePath`, log),
  }
}

function secretFrom(env: Environment, name: string, field: string): string {
  const value = env[name]
  if (value === undefined || value === '') {
    throw new GatehouseError('INVALID_CONFIG', { detail: `${field}: the variable ${name} is not set` })
  }
  return value
}
