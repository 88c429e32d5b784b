/**
 * A session of the session era whose requests fall on several worker processes: each has a copy of it, and what one copy
 * cannot do (reach the client's stream, cancel a request in flight, end the others) the copies elsewhere do.
 */
import type { PrimaryLink } from '../../../process/index.ts'

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

/** Cancellations of one worker that are on their way; nobody waits for one, so what is beyond them is dropped. */
const maxCancelling = 64

/** `tag` is that of this worker. */
export function sessionsElsewhere(
  { others, any }: Pick<PrimaryLink, 'others' | 'any'>,
  tag: string,
): Elsewhere {
  let cancelling = 0
  async function tell(name: string, argument: unknown): Promise<void> {
    await others(name, argument).catch(() => [])
  }
  return {
    tag,
    cancel(session, request) {
      if (cancelling >= maxCancelling) return
      cancelling++
      void tell(sessionCalls.cancel, { session, request }).then(() => cancelling--)
    },
    ended: (session) => tell(sessionCalls.ended, { session }),
    changed: (session) => void tell(sessionCalls.changed, { session }),
    push: (session, message) => any(sessionCalls.push, { session, message }).catch(() => false),
  }
}
