/**
 * Events for the audit log. The events contain no secrets, and they contain session ids only as short hashes. The host
 * converts them to audit events; without a host, they are written to the log.
 */
import { shortClientId } from '../../net/index.ts'
import { sessionHash } from '../../observe/index.ts'

type Outcome = 'success' | 'failure' | 'denied'

/** Every event, with its usual outcome. */
const outcomes = {
  client_registered: 'success',
  client_updated: 'success',
  client_deleted: 'success',
  client_rejected: 'denied',
  consent_given: 'success',
  consent_refused: 'denied',
  login_completed: 'success',
  login_failed: 'failure',
  code_issued: 'success',
  token_issued: 'success',
  token_refreshed: 'success',
  token_exchanged: 'success',
  code_reused: 'denied',
  refresh_reused: 'denied',
  grant_ended: 'success',
  upstream_refreshed: 'success',
  upstream_refused: 'failure',
} as const satisfies Record<string, Outcome>

type AuthServerEventType = keyof typeof outcomes

interface EventDetails {
  readonly clientId?: string | undefined
  readonly userId?: string | undefined
  readonly upstream?: string | undefined
  /** Network address from which the request came. */
  readonly source?: string | undefined
  /** Reason in fixed wording. */
  readonly reason?: string | undefined
}

export interface AuthServerEvent extends EventDetails {
  readonly type: AuthServerEventType
  readonly outcome: Outcome
  /** First characters of the session id's hash. Distinguishes sessions, but does not give access to them. */
  readonly sessionHash?: string | undefined
}

/** Builds an event. `about` can be a grant or a session record, whose other fields are ignored. */
export function makeEvent(
  type: AuthServerEventType,
  about: EventDetails & { readonly sessionId?: string; readonly outcome?: Outcome },
): AuthServerEvent {
  const { clientId, userId, upstream, source, reason, sessionId } = about
  return {
    type,
    outcome: about.outcome ?? outcomes[type],
    clientId: clientId === undefined ? undefined : shortClientId(clientId),
    userId,
    sessionHash: sessionId === undefined ? undefined : sessionHash(sessionId),
    upstream,
    source,
    reason,
  }
}
