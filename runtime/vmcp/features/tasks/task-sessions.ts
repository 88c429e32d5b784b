/**
 * Backend sessions for the tasks of clients without a session. A session-era backend may accept requests about a task
 * only in the session in which the task was created. Each such task therefore has its own backend session, and the
 * task's id contains what is needed to resume the session, here or at another replica.
 */
import { randomUUID } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { GatehouseError } from '../../../../schemas/index.ts'
import type { Ask, AskReply } from '../../../mcp/index.ts'
import type { Operation } from '../../model/operation.ts'
import type { BackendSession, ClientSession } from '../../model/session.ts'
import type { TaskRef } from '../../model/task.ts'

/** Maximum number of sessions with open connections. */
const maxSessions = 1_000
/** Time after the latest request for which the connection stays open, in milliseconds. */
const idleMs = 5 * 60_000

export class TaskSession implements ClientSession {
  readonly id: string = `task-${randomUUID()}`
  /** The backend's session. Undefined until the backend has opened it. */
  opened: BackendSession | undefined

  constructor(opened?: BackendSession) {
    this.opened = opened
  }

  deliver(): void {
    // Clients without a session receive no messages outside requests.
  }

  resume(_backend: string, binding: string): BackendSession | undefined {
    return this.opened?.binding === binding ? this.opened : undefined
  }

  backendSessionOpened(_backend: string, session: BackendSession): void {
    this.opened = session
  }

  ask(_request: Ask): Promise<AskReply> {
    return Promise.reject(new GatehouseError('METHOD_NOT_FOUND'))
  }
}

export class TaskSessions {
  readonly #sessions: LRUCache<string, TaskSession>
  readonly #end: (session: ClientSession, options: { readonly gone: boolean }) => void

  /** `end` closes a session's connections. With `gone`, it also ends the session at the backend. */
  constructor(end: (session: ClientSession, options: { readonly gone: boolean }) => void) {
    this.#end = end
    this.#sessions = new LRUCache({
      max: maxSessions,
      ttl: idleMs,
      updateAgeOnGet: true,
      dispose: (session) => end(session, { gone: false }),
    })
  }

  /** Keeps the connection of a new task. */
  keep({ hash }: TaskRef, session: TaskSession): void {
    this.#sessions.purgeStale()
    this.#sessions.set(hash, session)
  }

  /** Ends a session that no task uses. */
  discard(session: TaskSession): void {
    this.#end(session, { gone: true })
  }

  /** Closes all connections. With `gone`, also ends the sessions at the backends. */
  close(options: { readonly gone: boolean }): void {
    for (const session of this.#sessions.values()) this.#end(session, options)
    this.#sessions.clear()
  }

  /** Returns the operation, for requests in the session in which the task was created. */
  attach(operation: Operation, { hash, session: opened }: TaskRef): Operation {
    if (!opened || operation.client.session) return operation
    this.#sessions.purgeStale()
    const session = this.#sessions.get(hash) ?? new TaskSession(opened)
    this.#sessions.set(hash, session, { noDisposeOnSet: true })
    return { ...operation, client: { ...operation.client, session } }
  }
}
