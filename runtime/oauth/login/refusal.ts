/**
 * Whether an authorization server refuses a client, found out before a user is sent there.
 *
 * A server shows its refusal of an unknown client on a page, because it has no redirect URI that it may trust: the login
 * would wait until its time is over. So the authorization request is made once without a browser; it carries values of
 * its own, and nothing is signed in by it.
 * Source: RFC 6749 section 4.1.2.1; draft-ietf-oauth-client-id-metadata-document-02 section 4.
 */
import { type OAuthCallOptions, send } from '../call.ts'
import { OAuthClientError } from '../client-error.ts'

const what = 'the authorization endpoint'

/** OAuth error codes that blame the client itself, not the user, the login or the request. */
const ofClient: ReadonlySet<string> = new Set([
  'invalid_client',
  'invalid_client_metadata',
  'unauthorized_client',
])

/** True for an error that another client of the same server might not get. */
export function refusesClient(error: unknown): boolean {
  return error instanceof OAuthClientError && error.error !== undefined && ofClient.has(error.error)
}

/** True when the server answers this authorization request with a refusal of the client. Does not reject. */
export async function isRefusedClient(
  request: URL,
  redirectUri: string,
  { fetch, signal }: OAuthCallOptions,
): Promise<boolean> {
  try {
    // Only the first response tells: what a redirect leads to may ask for cookies.
    const init = { headers: { accept: 'text/html' }, maxRedirects: 0 }
    const response = await send(what, request.href, init, { fetch, signal })
    const location = response.headers.get('location')
    if (location === null) return [400, 401, 403, 404].includes(response.status)
    if (!location.startsWith(redirectUri)) return false
    return ofClient.has(new URL(location).searchParams.get('error') ?? '')
  } catch (error) {
    // A server that cannot be asked is no reason to prefer another client.
    if (error instanceof OAuthClientError || signal?.aborted) return false
    throw error
  }
}
