/**
 * What a failed token request says about the grant that it presented: one table for the proxy's login, for the upstream
 * tokens of the authorization server, and for the strategies towards backends.
 *
 * | Refusal | Meaning | With a refresh token | With a caller's token (exchange) |
 * |---|---|---|---|
 * | temporary | no response, 5xx, 408, 425, 429, or a code that promises a better answer later | keep it, try later | try later |
 * | client | the server blames our client or its secret | keep it; an own registration is made again | somebody must change the configuration |
 * | grant | the code names the grant or the user's consent | it is dead: sign in again | the caller signs in again |
 * | request | any other refusal, also 400 or 401 without a code | it is dead: sign in again | somebody must change the configuration |
 * | unclear | anything that is no answer of a token endpoint: other statuses without a code, no JSON | keep it, try later | somebody must look |
 *
 * Providers use codes of their own for a dead refresh token, so every refusal with another code ends it. Presenting a
 * dead token again never helps, and looks like theft to servers that detect reuse.
 * Source: RFC 6749 section 5.2; RFC 8693 section 2.2.2; OpenID Connect Core section 3.1.2.6; codes of GitHub, Slack.
 */
import { OAuthClientError } from '../client-error.ts'

export type TokenRefusal = 'temporary' | 'client' | 'grant' | 'request' | 'unclear'

const codes: ReadonlyMap<string, TokenRefusal> = new Map([
  ...each('temporary', [
    'temporarily_unavailable',
    'server_error',
    'slow_down',
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
    // GitHub and Slack, with status 200.
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
])

function each(refusal: TokenRefusal, names: readonly string[]): readonly (readonly [string, TokenRefusal])[] {
  return names.map((name) => [name, refusal] as const)
}

/** Undefined for an error that is not from a token endpoint. */
export function tokenRefusal(error: unknown): TokenRefusal | undefined {
  if (!(error instanceof OAuthClientError)) return undefined
  const { kind, error: code, responseStatus: status } = error
  if (kind === 'unreachable') return 'temporary'
  if (kind !== 'refused') return 'unclear'
  if (code !== undefined) return codes.get(code) ?? 'request'
  if (status === 408 || status === 425) return 'temporary'
  // Other statuses come from whatever stands in front of the endpoint.
  return status === undefined || status === 400 || status === 401 ? 'request' : 'unclear'
}

/** True when the refresh token that was presented must not be presented again. */
export function endsRefreshToken(error: unknown): boolean {
  const refusal = tokenRefusal(error)
  return refusal === 'grant' || refusal === 'request'
}
