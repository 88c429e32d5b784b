/**
 * Marks one backend's lists as outdated when the backend announces a change. Repeated announcements take effect after
 * increasing pauses. A backend that keeps announcing changes is reported.
 */
import type { Events } from '../../../observe/index.ts'
import type { Backend } from '../../backends/backend.ts'
import type { ConnectionScope, SessionScope } from '../../backends/session-era/connections.ts'
import type { Clock } from '../../model/time/clock.ts'
import { ChangePacer, type Pace } from './change-pacer.ts'

const pace: Pace = {
  free: 10,
  burstMs: 100,
  firstPauseMs: 1_000,
  maxPauseMs: 60_000,
  quietMs: 10_000,
  reportFrom: 13,
}

/** Pacing key of the lists that sessions share. A backend repeats an announcement on each of its connections. */
const sharedKey = 'shared'

interface ChangingLists {
  /** Marks the lists of one kind of client, or all lists, as outdated. */
  expire(key?: string): void
  /** Creates separate lists for a session. */
  fork(scope: SessionScope): void
  hasFork(scope: SessionScope): boolean
}

export interface AnnouncedChangesOptions {
  readonly events: Events
  readonly clock: Clock
}

export class AnnouncedChanges {
  readonly #backend: Backend
  readonly #lists: ChangingLists
  readonly #pacer: ChangePacer
  /** Keys of lists with a pending change. */
  readonly #outdated = new Set<string>()
  #isAllOutdated = false

  constructor(backend: Backend, lists: ChangingLists, { events, clock }: AnnouncedChangesOptions) {
    this.#backend = backend
    this.#lists = lists
    const fields = { backend: backend.name, notification: 'list_changed' }
    const onChange = (state: 'paced' | 'quiet') =>
      events.emit('changes_paced', { ...fields, resolved: state === 'quiet' })
    this.#pacer = new ChangePacer({ pace, clock, onChange })
  }

  /**
   * Handles a change that a backend announced over a connection. With `isGap`, no change was announced, but Gatehouse
   * may have missed an announcement. Calls `onApplied` each time lists are marked as outdated.
   */
  handle(scope: ConnectionScope, onApplied: () => void, { isGap = false } = {}): void {
    // A change announced to a session may concern lists that only this session sees.
    if (scope.kind === 'session' && (isGap ? this.#lists.hasFork(scope) : this.#backend.era === 'session'))
      this.#pacer.announce(`${sessionPrefix(scope.session.id)}${scope.identity}`, () => {
        this.#lists.fork(scope)
        onApplied()
      })
    if (scope.kind !== 'listing' && isGap) return
    if (scope.kind === 'listing') this.#outdated.add(scope.key)
    else this.#isAllOutdated = true
    this.#pacer.announce(sharedKey, () => {
      this.#expire()
      onApplied()
    })
  }

  #expire(): void {
    if (this.#isAllOutdated) this.#lists.expire()
    else for (const key of this.#outdated) this.#lists.expire(key)
    this.#isAllOutdated = false
    this.#outdated.clear()
  }

  /**
   * Applies pending changes on behalf of an operation that must not use outdated lists. Changes are applied at least
   * `minPauseMs` apart.
   */
  flush(sessionId: string | undefined, minPauseMs = 0): void {
    if (sessionId !== undefined) this.#pacer.flushAll(sessionPrefix(sessionId), minPauseMs)
    this.#pacer.flush(sharedKey, minPauseMs)
  }

  /** Drops the pending changes of a session that has ended. */
  forget(sessionId: string): void {
    this.#pacer.forgetAll(sessionPrefix(sessionId))
  }

  close(): void {
    this.#pacer.close()
  }
}

/** Key prefix of a session. A session has one key for each identity that uses it. */
function sessionPrefix(sessionId: string): string {
  return `session ${sessionId} `
}
