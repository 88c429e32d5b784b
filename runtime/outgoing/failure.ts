/**
 * Maps a failure to obtain a credential to an error for the backend's callers.
 *
 * The error classes are: sign in again (401), not allowed (403), the operator must change something (502), retry later
 * (503). The peer's own error text stays in the cause.
 * Source: proxy and virtual server failure rules; RFC 6749 section 5.2, RFC 8693 section 2.2.2.
 */
import { GatehouseError } from '../../schemas/index.ts'
import { OAuthClientError, tokenRefusal } from '../oauth/index.ts'

const defaultRetryAfterSec = 5

/**
 * `subject` is true if the rejected grant is the caller's token, in which case a new login helps. `settings` lists the
 * settings to check if the server rejects our client.
 */
export function credentialFailure(
  error: unknown,
  { subject, settings }: { readonly subject: boolean; readonly settings?: string | undefined },
): unknown {
  if (!(error instanceof OAuthClientError)) return error
  const refusal = tokenRefusal(error)
  if (subject && refusal === 'grant') return new GatehouseError('SUBJECT_REFUSED', { cause: error })
  if (refusal === 'temporary') return unavailable(error, error.retryAfterSec)
  return new GatehouseError('BACKEND_AUTH_FAILED', {
    detail: `authentication to the backend failed: ${error.message}${refusal === 'client' && settings ? `; check ${settings}` : ''}`,
    cause: error,
  })
}

export function unavailable(cause: unknown, retryAfterSec = defaultRetryAfterSec): GatehouseError {
  const seconds = Math.min(Math.max(retryAfterSec, 1), 300)
  return new GatehouseError('BACKEND_AUTH_UNAVAILABLE', {
    headers: { 'retry-after': String(seconds) },
    cause,
  })
}
