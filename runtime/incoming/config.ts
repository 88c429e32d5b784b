/**
 * Configuration of incoming authentication: one type for the proxy's flags and for the virtual server's
 * `incomingAuth`.
 *
 * All values are resolved: files have been read and environment variables replaced. An incomplete setting is an error
 * and never results in open access.
 * Source: docs/reference/specification/proxy-command.md#incoming (incoming flags),
 * docs/reference/specification/virtual-server.md#incomingAuth (config.incomingAuth.oidc).
 */
import type { TlsMaterial } from '../net/index.ts'
import { endpointViolation } from '../oauth/index.ts'

export type IncomingConfig =
  | { readonly type: 'anonymous' }
  | {
      readonly type: 'local'
      /** Operating system user name. */
      readonly username: string
    }
  | { readonly type: 'oidc'; readonly oidc: OidcConfig }

export interface OidcConfig {
  readonly issuer?: string | undefined
  /** Audience that the token's `aud` must contain. Default: `resource`. */
  readonly audience?: string | undefined
  /** Client id for introspection. */
  readonly clientId?: string | undefined
  /** Client secret for introspection. A function is called before each use, so that a rotated secret is reloaded. */
  readonly clientSecret?: string | (() => string) | undefined
  readonly introspectionUrl?: string | undefined
  /** Replaces the discovered key set. */
  readonly jwksUrl?: string | undefined
  /** Public URL of this server, for metadata and challenges. Default: `audience`, when that is a URL. */
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
}

/**
 * Returns the errors of an OIDC configuration as "field: rule" lines, with the field names of the virtual server's
 * configuration. `ownKeys` is true when this process holds the issuer's keys.
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
    problems.push('issuer: set issuer, jwksUrl or introspectionUrl, otherwise no token can be checked')
  }
  if (!config.audience && !config.resource) {
    problems.push('audience: set audience or resource, otherwise tokens for any audience would be accepted')
  }
  if (config.clientSecret !== undefined && !config.clientId) {
    problems.push('clientId: must be set when a client secret is given')
  }
  return problems
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

function isHttpUrl(value: string): boolean {
  return /^https?:\/\//i.test(value) && URL.canParse(value) && !value.includes('#')
}
