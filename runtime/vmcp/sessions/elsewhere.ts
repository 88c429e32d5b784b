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

/** `tag` is that of this worker. */
export function sessionsElsewhere({ others }: Pick<PrimaryLink, 'others'>, tag: string): Elsewhere {
  const tell = (name: string, argument: unknown): void => void others(name, argument).catch(() => {})
  return {
    tag,
    cancel: (session, request) => tell(sessionCalls.cancel, { session, request }),
    ended: (session) => tell(sessionCalls.ended, { session }),
    async push(session, message) {
      const sent = await others(sessionCalls.push, { session, message }).catch((): readonly unknown[] => [])
      return sent.includes(true)
    },
  }
}
