/**
 * Calls to a session's copies in other worker processes. Each worker that receives requests for a session has a copy of
 * the session. Only the worker that owns a stream or a request in flight can write to the stream or cancel the request.
 */
import type { PrimaryLink } from '../../../process/index.ts'

export interface OtherWorkers {
  /** Prefix of ids that route a client's message back to this worker. */
  readonly tag: string
  /** Cancels a request that another worker is processing. */
  cancel(session: string, request: string): void
  /** Sends a message on another worker's stream. Resolves to false if no worker has an open stream. */
  push(session: string, message: Buffer): Promise<boolean>
  /** Ends all other copies. Resolves when all other copies have been removed. */
  endCopies(session: string): Promise<void>
  /** Marks all other copies as outdated. An outdated copy is read from the store before its next use. */
  invalidateCopies(session: string): void
}

/** Names of the calls that workers can make to each other. */
export const sessionCalls = {
  cancel: 'session.cancel',
  push: 'session.push',
  ended: 'session.ended',
  changed: 'session.changed',
} as const

/** Maximum number of cancellations in flight. Further cancellations are dropped, because no caller waits for them. */
const maxCancelling = 64

/** Returns the calls to other workers. `tag` is this worker's tag. */
export function makeOtherWorkers(
  { others, any }: Pick<PrimaryLink, 'others' | 'any'>,
  tag: string,
): OtherWorkers {
  let cancelling = 0
  async function callOthers(name: string, argument: unknown): Promise<void> {
    await others(name, argument).catch(() => [])
  }
  return {
    tag,
    cancel(session, request) {
      if (cancelling >= maxCancelling) return
      cancelling++
      void callOthers(sessionCalls.cancel, { session, request }).then(() => cancelling--)
    },
    endCopies: (session) => callOthers(sessionCalls.ended, { session }),
    invalidateCopies: (session) => void callOthers(sessionCalls.changed, { session }),
    push: (session, message) => any(sessionCalls.push, { session, message }).catch(() => false),
  }
}
