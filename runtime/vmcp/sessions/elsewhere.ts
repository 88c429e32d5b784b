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
  ended(session: string): void
}

/** What workers offer to each other. */
export const sessionCalls = {
  cancel: 'session.cancel',
  push: 'session.push',
  ended: 'session.ended',
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
    // Without it the copies end with the record, at their next request.
    ended: (session) => void tell(sessionCalls.ended, { session }),
    push: (session, message) => any(sessionCalls.push, { session, message }).catch(() => false),
  }
}
