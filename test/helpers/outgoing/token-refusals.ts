/**
 * Error responses that token endpoints of real providers send, with their meaning for the grant
 * (runtime/oauth/refusals/token-refusal.ts).
 */
import type { TokenRefusal } from '../../../runtime/oauth/refusals/token-refusal.ts'
import type { PeerResponse } from '../loopback.ts'

export interface TokenRefusalRow {
  readonly name: string
  readonly response: PeerResponse
  readonly refusal: TokenRefusal
}

const html = { headers: { 'content-type': 'text/html' }, body: '<h1>Bad request</h1>' }

const coded = (status: number, error: string): PeerResponse => ({ status, body: { error } })

export const tokenRefusals: readonly TokenRefusalRow[] = [
  ...(
    [
      'invalid_grant',
      'invalid_token',
      'expired_token',
      'interaction_required',
      'login_required',
      'consent_required',
    ] as const
  ).map((error) => ({ name: error, response: coded(400, error), refusal: 'grant' as const })),
  {
    name: 'Auth0, Atlassian: invalid_grant with 403',
    response: coded(403, 'invalid_grant'),
    refusal: 'grant',
  },
  { name: 'GitHub: bad_refresh_token with 200', response: coded(200, 'bad_refresh_token'), refusal: 'grant' },
  ...(['invalid_refresh_token', 'token_expired', 'token_revoked'] as const).map((error) => ({
    name: `Slack: ${error} with 200`,
    response: { body: { ok: false, error } },
    refusal: 'grant' as const,
  })),
  ...(
    [
      'invalid_request',
      'invalid_scope',
      'unsupported_grant_type',
      'access_denied',
      'word_of_its_own',
    ] as const
  ).map((error) => ({ name: error, response: coded(400, error), refusal: 'request' as const })),
  { name: '400 with HTML', response: { status: 400, ...html }, refusal: 'request' },
  { name: '401 without a body', response: { status: 401 }, refusal: 'request' },
  { name: 'invalid_client', response: coded(401, 'invalid_client'), refusal: 'client' },
  ...(['unauthorized_client', 'invalid_client_metadata'] as const).map((error) => ({
    name: error,
    response: coded(400, error),
    refusal: 'client' as const,
  })),
  {
    name: 'GitHub: incorrect_client_credentials with 200',
    response: coded(200, 'incorrect_client_credentials'),
    refusal: 'client',
  },
  ...(['invalid_client_id', 'bad_client_secret'] as const).map((error) => ({
    name: `Slack: ${error} with 200`,
    response: { body: { ok: false, error } },
    refusal: 'client' as const,
  })),
  { name: '500', response: { status: 500 }, refusal: 'temporary' },
  { name: '503 with invalid_grant', response: coded(503, 'invalid_grant'), refusal: 'temporary' },
  { name: '429', response: { status: 429 }, refusal: 'temporary' },
  { name: '408', response: { status: 408, ...html }, refusal: 'temporary' },
  ...(
    [
      'temporarily_unavailable',
      'server_error',
      'slow_down',
      'too_many_requests',
      'rate_limit_exceeded',
    ] as const
  ).map((error) => ({ name: error, response: coded(400, error), refusal: 'temporary' as const })),
  ...(
    ['ratelimited', 'internal_error', 'fatal_error', 'request_timeout', 'service_unavailable'] as const
  ).map((error) => ({
    name: `Slack: ${error} with 200`,
    response: { body: { ok: false, error } },
    refusal: 'temporary' as const,
  })),
  { name: '200 with HTML', response: { status: 200, ...html }, refusal: 'unclear' },
  { name: '403 with HTML', response: { status: 403, ...html }, refusal: 'unclear' },
  { name: '404', response: { status: 404, ...html }, refusal: 'unclear' },
]
