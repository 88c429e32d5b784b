/**
 * Scope sets: parsing, defaults and baseline.
 * Source: RFC 6749 section 3.3; docs/reference/specification/external-auth.md, baselineClientScopes.
 */
import type { AuthServerConfig } from '../../config/index.ts'

/** Scopes that require a user who signed in at this server. */
export const userScopes: ReadonlySet<string> = new Set(['openid', 'profile', 'email', 'offline_access'])

/** Returns the distinct tokens of a scope string, in order. */
export function parseScope(scope: string): readonly string[] {
  return [...new Set(scope.split(' ').filter((token) => token !== ''))]
}

/** Returns the scopes that the server supports, in order. Other scopes are ignored (RFC 6749 section 3.3). */
export function supportedScopes(
  scopes: readonly string[],
  { scopesSupported }: Pick<AuthServerConfig, 'scopesSupported'>,
): readonly string[] {
  const supported = new Set(scopesSupported)
  return scopes.filter((scope) => supported.has(scope))
}

/**
 * Returns a client's scopes: the requested scopes that are supported, or all supported scopes when no requested scope
 * is supported. Always includes the baseline.
 */
export function clientScopes(
  requested: readonly string[] | undefined,
  config: Pick<AuthServerConfig, 'scopesSupported' | 'baselineClientScopes'>,
): readonly string[] {
  const usable = supportedScopes(requested ?? [], config)
  const chosen = usable.length > 0 ? usable : config.scopesSupported
  return [...new Set([...chosen, ...config.baselineClientScopes])]
}

/** True when `allowed` contains every scope. */
export function within(scopes: readonly string[], allowed: readonly string[]): boolean {
  return scopes.every((scope) => allowed.includes(scope))
}
