/**
 * Counts the live tasks of this replica, and limits how often clients read them. The counts are bounded: a task is
 * forgotten when it ends or expires.
 */
import { LRUCache } from 'lru-cache'
import { GatehouseError } from '../../../../schemas/index.ts'
import { isShared } from '../../model/client.ts'
import { callerOf, type OperationClient } from '../../model/session.ts'
import type { TaskRef } from '../../model/task.ts'

/** Maximum number of tasks for which the time of the latest read is remembered. */
const maxPaced = 20_000
const sweepMs = 1_000

/** A task that had not ended when this replica last read its state. */
export interface LiveTask {
  readonly owner: string
  readonly ref: TaskRef
  /** The client that created the task. */
  readonly client: OperationClient
  readonly startedAt: number
  readonly endsAt: number
  /** The state at the last read. */
  state: 'working' | 'input_required'
}

export interface LiveTaskLimits {
  readonly max: number
  readonly maxPerCaller: number
}

export class LiveTasks {
  readonly #limits: () => LiveTaskLimits
  readonly #now: () => number
  readonly #tasks = new Map<string, LiveTask>()
  readonly #perOwner = new Map<string, number>()
  /** Time at which the next read is due if the client reads at the maximum rate. */
  readonly #dueAt = new LRUCache<string, number>({ max: maxPaced })
  readonly #ended = new LRUCache<string, true>({ max: maxPaced })
  #sweptAt = Number.NEGATIVE_INFINITY

  constructor(limits: () => LiveTaskLimits, now: () => number) {
    this.#limits = limits
    this.#now = now
  }

  get size(): number {
    return this.#tasks.size
  }

  /** True if the caller may create another task. */
  hasRoom(client: OperationClient): boolean {
    const { max, maxPerCaller } = this.#limits()
    const limit = isShared(client.caller) && !client.session ? max : Math.min(maxPerCaller, max)
    const isFull = () => this.#tasks.size >= max || (this.#perOwner.get(callerOf(client)) ?? 0) >= limit
    if (!isFull()) return true
    this.#sweep()
    return !isFull()
  }

  /** Counts a new task. */
  add(ref: TaskRef, client: OperationClient): void {
    const owner = callerOf(client)
    const startedAt = this.#now()
    this.#tasks.set(ref.hash, { owner, ref, client, startedAt, endsAt: ref.notAfter, state: 'working' })
    this.#perOwner.set(owner, (this.#perOwner.get(owner) ?? 0) + 1)
  }

  /** Returns the live tasks that have not expired. */
  all(): readonly LiveTask[] {
    const now = this.#now()
    return [...this.#tasks.values()].filter(({ endsAt }) => endsAt > now)
  }

  /** Records the state of a task that a client has read. */
  setState({ hash }: Pick<TaskRef, 'hash'>, state: string): void {
    const task = this.#tasks.get(hash)
    if (task && (state === 'working' || state === 'input_required')) task.state = state
  }

  /** Forgets a task that has ended. */
  forget({ hash }: TaskRef): void {
    this.#remove(hash)
  }

  /** Forgets a task whose end the client reads. Returns true for the first read at this replica. */
  end({ hash }: TaskRef): boolean {
    this.#remove(hash)
    const isFirst = !this.#ended.has(hash)
    this.#ended.set(hash, true)
    return isFirst
  }

  /**
   * Throws RATE_LIMITED if reads follow each other faster than half of the poll interval. One read may arrive early,
   * because clients read a task again after an update or at the beginning of a wait.
   */
  pace({ hash, pollMs }: TaskRef): void {
    const now = this.#now()
    const intervalMs = pollMs / 2
    const dueAt = Math.max(this.#dueAt.get(hash) ?? now, now)
    if (dueAt - now > intervalMs) {
      throw new GatehouseError('RATE_LIMITED', {
        detail: `the task was read too soon: wait ${pollMs} ms between reads`,
        data: { pollIntervalMs: pollMs },
      })
    }
    this.#dueAt.set(hash, dueAt + intervalMs)
  }

  /** Allows the next read immediately, because the client has changed the task. */
  resetPace({ hash }: TaskRef): void {
    this.#dueAt.delete(hash)
  }

  #sweep(): void {
    const now = this.#now()
    if (now - this.#sweptAt < sweepMs) return
    this.#sweptAt = now
    for (const [hash, { endsAt }] of this.#tasks) if (endsAt <= now) this.#remove(hash)
  }

  #remove(hash: string): void {
    const task = this.#tasks.get(hash)
    if (!task) return
    this.#tasks.delete(hash)
    const left = (this.#perOwner.get(task.owner) ?? 1) - 1
    if (left > 0) this.#perOwner.set(task.owner, left)
    else this.#perOwner.delete(task.owner)
  }
}

/** Returns the error for a caller with too many live tasks. */
export function tooManyTasks(): GatehouseError {
  return new GatehouseError('RATE_LIMITED', {
    detail: 'too many live tasks: wait until a task ends, or cancel one',
  })
}
