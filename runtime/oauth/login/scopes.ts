/** What a login asks for beyond the scopes of the resource. Source: OpenID Connect Core section 11. */
import type { ServerMetadata } from '../metadata/server-metadata.ts'

/** A refresh token is worth having, where the server knows the scope for it. */
export function withOffline(
  scopes: readonly string[],
  server: Pick<ServerMetadata, 'scopes_supported'>,
): readonly string[] {
  const offered = server.scopes_supported?.includes('offline_access') ?? false
  return offered && !scopes.includes('offline_access') ? [...scopes, 'offline_access'] : scopes
}
