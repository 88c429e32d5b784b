/**
 * Detects, before opening the browser, whether an authorization server rejects our client.
 *
 * A server reports an unknown client on a page, because it has no redirect URI that it can trust. The login would then
 * wait until it times out. This module therefore sends the authorization request once without a browser, with its own
 * random values. This request does not sign the user in.
 * Source: RFC 6749 section 4.1.2.1; draft-ietf-oauth-client-id-metadata-document-02 section 4.
 */
import { type OAuthCallOptions, send } from '../call.ts'
import { OAuthClientError } from '../client-error.ts'

const what = 'the authorization endpoint'

/** OAuth error codes that concern the client, not the user, the login or the request. */
const clientCodes: ReadonlySet<string> = new Set([
  'invalid_client',
  'invalid_client_metadata',
  'unauthorized_client',
  'invalid_redirect_uri',
  'invalid_software_statement',
  'unapproved_software_statement',
])

/**
 * True when the login failed but might succeed with another client at the same server. Also true for servers that
 * report an invalid request instead, or that reject the client's secret without a code.
 */
export function refusesClientAtLogin(error: unknown): boolean {
  if (!(error instanceof OAuthClientError)) return false
  if (error.error !== undefined) return isClientError(error.error)
  return error.responseStatus === 401 || error.responseStatus === 403
}

function isClientError(code: string): boolean {
  return clientCodes.has(code) || code === 'invalid_request'
}

/** True when the server rejects the client in this authorization request. Does not reject. */
export async function isRefusedClient(
  request: URL,
  redirectUri: string,
  { fetch, signal }: OAuthCallOptions,
): Promise<boolean> {
  try {
    // Only the first response is conclusive: the target of a redirect may require cookies.
    const init = { headers: { accept: 'text/html' }, maxRedirects: 0 }
    const response = await send(what, request.href, init, { fetch, signal })
    const location = response.headers.get('location')
    if (location === null) return isRefusalPage(response)
    const error = URL.canParse(location, request.href)
      ? new URL(location, request.href).searchParams.get('error')
      : null
    if (error === null) return false
    // On the server's own pages, only client error codes concern the client.
    return location.startsWith(redirectUri) ? isClientError(error) : clientCodes.has(error)
  } catch (error) {
    // An unreachable server is not a reason to prefer another client.
    if (error instanceof OAuthClientError || signal?.aborted) return false
    throw error
  }
}

/** Servers respond to an unknown client with any 4xx status, or with 500. */
function isRefusalPage({ status, headers }: Response): boolean {
  if (status === 500) return true
  // A challenge requests a browser sign-in; 408, 425 and 429 request a retry.
  if (status === 401 && headers.has('www-authenticate')) return false
  return status >= 400 && status < 500 && ![408, 425, 429].includes(status)
}
