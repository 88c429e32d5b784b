/** One caller's session-era session through this proxy. */
import type { EventIds } from './event-ids.ts'

/** Requests that set state on the server, keyed by the watched resource or by the log level. */
export type ProxiedSessionState = Map<string, Buffer>

/**
 * Outcome of a recovery: the target opened a new session, the target did not open a session, or the target could not be
 * reached.
 */
export type Recovery = 'recovered' | 'refused' | 'unreachable'

export interface ProxiedSession {
  /** The client's session id. */
  readonly clientId: string
  /** The target's session id, which differs after a recovery. */
  upstreamId: string
  /** Body of the initialize request; undefined when it was not seen or is too large to store. */
  readonly initBody: Buffer | undefined
  /** The client's later settings, which a recovery sends again. */
  readonly state: ProxiedSessionState
  /** Event ids of the reopened session; undefined until the target has reopened it. */
  eventIds: EventIds | undefined
  /** The recovery in flight, shared by every request that needs it. */
  recovering: Promise<Recovery> | undefined
}
