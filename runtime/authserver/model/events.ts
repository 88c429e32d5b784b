/**
 * What happened, for audit: one row per kind of event, no secrets, session ids only as short hashes.
 *
 * The host turns these into audit events; without a sink they go to the log.
 */

const eventTypes = [
  'client_registered',
  'client_updated',
  'client_deleted',
  'consent_given',
  'consent_refused',
  'login_completed',
  'login_failed',
  'code_issued',
  'token_issued',
  'token_refreshed',
  'code_reused',
  'refresh_reused',
  'grant_ended',
  'upstream_refreshed',
  'upstream_refused',
] as const

export type AuthServerEventType = (typeof eventTypes)[number]

export interface AuthServerEvent {
  readonly type: AuthServerEventType
  readonly outcome: 'success' | 'failure' | 'denied'
  readonly clientId?: string | undefined
  readonly userId?: string | undefined
  /** First characters of a hash of the session id: tells sessions apart, opens none. */
  readonly sessionHash?: string | undefined
  readonly upstream?: string | undefined
  /** Network address of whoever made the request. */
  readonly source?: string | undefined
  /** Fixed wording. */
  readonly reason?: string | undefined
}

/** A client id as it may be logged: of a metadata document only the host. */
export function shownClient(clientId: string): string {
  return clientId.includes('://') && URL.canParse(clientId) ? new URL(clientId).host : clientId.slice(0, 64)
}
