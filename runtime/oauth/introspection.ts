/**
 * Token introspection, as a resource server.
 *
 * Returns the claims of the response, or undefined for an inactive token. runtime/incoming validates the claims.
 * Without client credentials, the request is unauthenticated.
 * Source: RFC 7662.
 */
import * as oauth from 'oauth4webapi'
import { type OAuthCallOptions, type JsonRecord, readJson, send } from './call.ts'
import { chooseAuthMethod, clientAuth, type OAuthClient } from './client/client.ts'
import { OAuthClientError } from './client-error.ts'

const what = 'the introspection endpoint'

/** Rejects with OAuthClientError. A 4xx status means that our credentials or the endpoint are wrong, not the token. */
export async function introspect(
  endpoint: string,
  token: string,
  options: OAuthCallOptions & {
    readonly client?: OAuthClient | undefined
    /** The server's introspection_endpoint_auth_methods_supported, if known. */
    readonly authMethods?: readonly string[] | undefined
  },
): Promise<JsonRecord | undefined> {
  const { client } = options
  const auth = client ? clientAuth(client, chooseAuthMethod(client, options.authMethods)) : () => {}
  const response = await oauth.introspectionRequest(
    { issuer: endpoint, introspection_endpoint: endpoint },
    { client_id: client?.clientId ?? 'anonymous' },
    auth,
    token,
    {
      [oauth.allowInsecureRequests]: true,
      [oauth.customFetch]: (url, init) => send(what, url, init, options),
      additionalParameters: { token_type_hint: 'access_token' },
    },
  )
  const body = await readJson(what, response)
  if (typeof body['active'] !== 'boolean') {
    throw new OAuthClientError('protocol', `the response from ${what} has no boolean "active"`)
  }
  return body['active'] ? body : undefined
}
