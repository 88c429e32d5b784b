/**
 * Scope sets: parsing, defaults and the baseline.
 * Source: RFC 6749 section 3.3; docs/specification/external-auth.md, baselineClientScopes.
 */
import type { AuthServerConfig } from '../../config/index.ts'

/** The distinct tokens of a scope string, in order. */
export function parseScope(scope: string): readonly string[] {
  return [...new Set(scope.split(' ').filter((token) => token !== ''))]
}

/**
 * What a client is registered with: what it asked for as far as it is supported, else the defaults, and the baseline
 * in any case. Undefined when it asked for scopes and not one of them is supported.
 */
export function clientScopes(
  requested: readonly string[] | undefined,
  config: Pick<AuthServerConfig, 'scopesSupported' | 'baselineClientScopes'>,
): readonly string[] | undefined {
  const supported = new Set(config.scopesSupported)
  const usable = (requested ?? config.scopesSupported).filter((scope) => supported.has(scope))
  if (requested !== undefined && requested.length > 0 && usable.length === 0) return undefined
  const chosen = usable.length > 0 ? usable : config.scopesSupported
  return [...new Set([...chosen, ...config.baselineClientScopes])]
}

/** True when every scope is in the set. */
export function within(scopes: readonly string[], allowed: readonly string[]): boolean {
  return scopes.every((scope) => allowed.includes(scope))
}
