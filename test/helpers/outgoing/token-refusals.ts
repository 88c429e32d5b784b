/** Refusals that token endpoints of real providers send, and what each says of the grant (runtime/oauth/refusals/token-refusal.ts). */
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
  ...(['invalid_grant', 'invalid_token', 'interaction_required', 'consent_required'] as const).map(
    (error) => ({
      name: error,
      response: coded(400, error),
      refusal: 'grant' as const,
    }),
  ),
  { name: 'GitHub: bad_refresh_token with 200', response: coded(200, 'bad_refresh_token'), refusal: 'grant' },
  {
    name: 'Slack: ok false with 200',
    response: { body: { ok: false, error: 'invalid_refresh_token' } },
    refusal: 'grant',
  },
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
  { name: 'unauthorized_client', response: coded(400, 'unauthorized_client'), refusal: 'client' },
  { name: '500', response: { status: 500 }, refusal: 'temporary' },
  { name: '503 with invalid_grant', response: coded(503, 'invalid_grant'), refusal: 'temporary' },
  { name: '429', response: { status: 429 }, refusal: 'temporary' },
  { name: '408', response: { status: 408, ...html }, refusal: 'temporary' },
  { name: 'temporarily_unavailable', response: coded(400, 'temporarily_unavailable'), refusal: 'temporary' },
  {
    name: 'Slack: ratelimited with 200',
    response: { body: { ok: false, error: 'ratelimited' } },
    refusal: 'temporary',
  },
  { name: '200 with HTML', response: { status: 200, ...html }, refusal: 'unclear' },
  { name: '403 with HTML', response: { status: 403, ...html }, refusal: 'unclear' },
  { name: '404', response: { status: 404, ...html }, refusal: 'unclear' },
]
