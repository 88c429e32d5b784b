/** The scopes that a login requests in addition to those of the resource. Source: OpenID Connect Core section 11. */
import type { ServerMetadata } from '../metadata/server-metadata.ts'

/** Adds the scope for a refresh token, if the server supports it. */
export function withOffline(
  scopes: readonly string[],
  server: Pick<ServerMetadata, 'scopes_supported'>,
): readonly string[] {
  const offered = server.scopes_supported?.includes('offline_access') ?? false
  return offered && !scopes.includes('offline_access') ? [...scopes, 'offline_access'] : scopes
}
