/**
 * A session of the session era whose requests fall on several worker processes: each has a copy of it, and what one copy
 * cannot do (reach the client's stream, cancel a request in flight, end the others) the copies elsewhere do.
 */
import type { PrimaryLink } from '../../workers/index.ts'

export interface Elsewhere {
  /** Begins the ids that lead a client's message back to this worker. */
  readonly tag: string
  /** The client does not want the response to this request any more. */
  cancel(session: string, request: string): void
  /** Sends a message on a stream that the client has open at another worker. False: there is none. */
  push(session: string, message: Buffer): Promise<boolean>
  /** Resolves when the copies are gone. */
  ended(session: string): Promise<void>
  /** What the store has of the session is newer than the copies. */
  changed(session: string): void
}

/** What workers offer to each other. */
export const sessionCalls = {
  cancel: 'session.cancel',
  push: 'session.push',
  ended: 'session.ended',
  changed: 'session.changed',
} as const

/** Of one worker; a client that makes more of them waits for nobody, so the rest is dropped. */
const maxTold = 64

/** `tag` is that of this worker. */
export function sessionsElsewhere(
  { others, any }: Pick<PrimaryLink, 'others' | 'any'>,
  tag: string,
): Elsewhere {
  let inFlight = 0
  async function tell(name: string, argument: unknown): Promise<void> {
    if (inFlight >= maxTold) return
    inFlight++
    await others(name, argument).catch(() => [])
    inFlight--
  }
  return {
    tag,
    cancel: (session, request) => void tell(sessionCalls.cancel, { session, request }),
    ended: (session) => tell(sessionCalls.ended, { session }),
    changed: (session) => void tell(sessionCalls.changed, { session }),
    push: (session, message) => any(sessionCalls.push, { session, message }).catch(() => false),
  }
}
