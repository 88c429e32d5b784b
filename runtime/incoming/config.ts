/**
 * What the incoming side is configured with: one type for the flags of the proxy and for the virtual server's
 * `incomingAuth`.
 *
 * Values are final here: files read, environment resolved. A half-given setting is an error, never open access.
 * Source: docs/reference/specification/proxy-command.md#incoming (incoming flags), docs/reference/specification/virtual-server.md#incomingAuth (config.incomingAuth.oidc).
 */
import type { TlsMaterial } from '../net/index.ts'
import { endpointViolation } from '../oauth/index.ts'

export type IncomingConfig =
  | { readonly type: 'anonymous' }
  | {
      readonly type: 'local'
      /** Name of the operating system's user. */
      readonly username: string
    }
  | { readonly type: 'oidc'; readonly oidc: OidcConfig }

export interface OidcConfig {
  readonly issuer?: string | undefined
  /** Must be in the token's `aud`. Default: `resource`. */
  readonly audience?: string | undefined
  /** For introspection. */
  readonly clientId?: string | undefined
  /** For introspection; a function is asked before each use, so that a rotated secret is reloaded. */
  readonly clientSecret?: string | (() => string) | undefined
  readonly introspectionUrl?: string | undefined
  /** Replaces the discovered key set. */
  readonly jwksUrl?: string | undefined
  /** Public URL of this server, for metadata and challenges. Default: `audience`, when that is a URL. */
  readonly resource?: string | undefined
  /** Advertised and asked for in challenges. Not given: `openid` is advertised, challenges name none. */
  readonly scopes?: readonly string[] | undefined
  /** Plain http to hosts other than loopback; development only. */
  readonly insecureAllowHttp?: boolean | undefined
  /** Discovery and keys may live at a private address. */
  readonly jwksAllowPrivateIp?: boolean | undefined
  /** Introspection may live at a private address. */
  readonly protectedResourceAllowPrivateIp?: boolean | undefined
  /** Certificates that are trusted in addition to those of the system; read again for each new connection. */
  readonly tls?: (() => TlsMaterial) | undefined
}

/**
 * Errors of an OIDC configuration as "field: rule" lines, field names as in the virtual server's configuration;
 * `ownKeys` says that the process holds the issuer's keys itself.
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

/** The audience that tokens must carry. */
export function requiredAudience(config: OidcConfig): string {
  return config.audience || config.resource || ''
}

/** The public URL of this server, or undefined when none is known. */
export function resourceUrl(config: OidcConfig): string | undefined {
  if (config.resource) return config.resource
  return config.audience !== undefined && isHttpUrl(config.audience) ? config.audience : undefined
}

function isHttpUrl(value: string): boolean {
  return /^https?:\/\//i.test(value) && URL.canParse(value) && !value.includes('#')
}
