/**
 * Classifies failed token requests by their effect on the presented grant. This table is shared by the proxy's login,
 * the authorization server's upstream tokens, the outgoing strategies and the doctor.
 *
 * | Refusal | Meaning | With a refresh token | With a caller's token (exchange) |
 * |---|---|---|---|
 * | temporary | no response, 5xx, 408, 425, 429, or a code for a temporary failure | keep it, retry later | retry later |
 * | client | the server rejects our client or its secret | keep it; replace a registration of our own | the operator must change the configuration |
 * | grant | the code concerns the grant or the user's consent | drop it, sign in again | the caller signs in again |
 * | request | any other refusal, including 400 or 401 without a code | drop it, sign in again | the operator must change the configuration |
 * | unclear | not a response from a token endpoint: other statuses without a code, no JSON; or a rejected DPoP proof | keep it, retry later | the operator must investigate |
 *
 * Providers use their own codes for an invalid refresh token, so any refusal with an unlisted code ends the token.
 * Presenting an invalid token again never helps, and looks like theft to servers that detect reuse.
 * Source: RFC 6749 section 5.2; RFC 8693 section 2.2.2; OpenID Connect Core section 3.1.2.6; codes of GitHub, Slack.
 */
import { OAuthClientError } from '../client-error.ts'

export type TokenRefusal = 'temporary' | 'client' | 'grant' | 'request' | 'unclear'

const codes: ReadonlyMap<string, TokenRefusal> = new Map([
  ...each('temporary', [
    'temporarily_unavailable',
    'server_error',
    'slow_down',
    'too_many_requests',
    'rate_limit_exceeded',
    // Slack, with status 200.
    'ratelimited',
    'internal_error',
    'fatal_error',
    'request_timeout',
    'service_unavailable',
  ]),
  ...each('client', [
    'invalid_client',
    'unauthorized_client',
    'invalid_client_metadata',
    // Sent by GitHub and Slack with status 200.
    'incorrect_client_credentials',
    'invalid_client_id',
    'bad_client_secret',
  ]),
  ...each('grant', [
    'invalid_grant',
    'invalid_token',
    'expired_token',
    'interaction_required',
    'login_required',
    'consent_required',
    // GitHub; Slack.
    'bad_refresh_token',
    'invalid_refresh_token',
    'token_expired',
    'token_revoked',
  ]),
  // The refresh token has not been used. The cause may be this machine's clock.
  ...each('unclear', ['invalid_dpop_proof', 'use_dpop_nonce']),
])

function each(refusal: TokenRefusal, names: readonly string[]): readonly (readonly [string, TokenRefusal])[] {
  return names.map((name) => [name, refusal] as const)
}

/** Returns undefined for an error that does not come from a token request. */
export function tokenRefusal(error: unknown): TokenRefusal | undefined {
  if (!(error instanceof OAuthClientError)) return undefined
  const { kind, error: code, responseStatus: status } = error
  if (kind === 'unreachable') return 'temporary'
  if (kind !== 'refused') return 'unclear'
  if (code !== undefined) return codes.get(code) ?? 'request'
  if (status === 408 || status === 425) return 'temporary'
  // Other statuses come from a proxy or gateway in front of the endpoint.
  return status === undefined || status === 400 || status === 401 ? 'request' : 'unclear'
}

/** True when the refresh token must not be presented again. */
export function endsRefreshToken(error: unknown): boolean {
  const refusal = tokenRefusal(error)
  return refusal === 'grant' || refusal === 'request'
}
