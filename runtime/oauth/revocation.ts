/** Token revocation (RFC 7009), as the client that received the token. */
import * as oauth from 'oauth4webapi'
import { type OAuthCallOptions, send } from './call.ts'
import { chooseAuthMethod, clientAuth, type OAuthClient } from './client/client.ts'
import type { ServerMetadata } from './metadata/server-metadata.ts'

/**
 * Revokes the token. Returns false when the server has no revocation endpoint or rejects the request. Does not reject.
 */
export async function revokeToken(
  server: ServerMetadata,
  client: OAuthClient,
  token: string,
  options: OAuthCallOptions,
): Promise<boolean> {
  if (server.revocation_endpoint === undefined) return false
  // RFC 8414: when omitted, the token endpoint's methods apply.
  const methods =
    server.revocation_endpoint_auth_methods_supported ?? server.token_endpoint_auth_methods_supported
  try {
    const auth = clientAuth(client, chooseAuthMethod(client, methods))
    const response = await oauth.revocationRequest(server, { client_id: client.clientId }, auth, token, {
      [oauth.allowInsecureRequests]: true,
      [oauth.customFetch]: (url, init) => send('the revocation endpoint', url, init, options),
    })
    return response.status === 200
  } catch {
    return false
  }
}
