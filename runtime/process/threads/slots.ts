/**
 * Schedules the tasks of a worker pool, which run, wait or are parked.
 *
 * The queue is fair: a full queue drops a task from the caller with the most queued tasks. Parked tasks resume before
 * new tasks start, because a user has already answered them.
 */
import { reasonOf } from '../../net/index.ts'
import { GatehouseError } from '../../../schemas/index.ts'
import type { PoolOptions } from './options.ts'

type SlotOptions = Pick<
  PoolOptions,
  | 'tasks'
  | 'maxWorkers'
  | 'maxPerCaller'
  | 'maxWaiting'
  | 'maxParked'
  | 'maxParkedPerCaller'
  | 'maxParkedBytes'
>

interface Waiting {
  readonly caller: string
  readonly resumes: boolean
  start(): void
  refuse(error: Error): void
}

export class WorkerSlots {
  readonly #options: SlotOptions
  readonly #running = new Counts()
  readonly #parked = new Counts()
  readonly #queue: Waiting[] = []
  #parkedBytes = 0

  constructor(options: SlotOptions) {
    this.#options = options
  }

  /** Waits for a slot. Rejects with RATE_LIMITED when the queue is full, or with the signal's reason. */
  take(
    caller: string,
    signal: AbortSignal,
    { resumes = false }: { readonly resumes?: boolean } = {},
  ): Promise<void> {
    if (signal.aborted) return Promise.reject(reasonOf(signal))
    if (this.#mayStart(caller)) {
      this.#running.add(caller)
      return Promise.resolve()
    }
    if (!resumes && !this.#makeRoom(caller)) return Promise.reject(this.#tooMany('at once'))
    return new Promise((resolve, reject) => {
      const leave = (error: Error): void => {
        signal.removeEventListener('abort', onAbort)
        const at = this.#queue.indexOf(entry)
        if (at >= 0) this.#queue.splice(at, 1)
        reject(error)
      }
      const onAbort = (): void => leave(reasonOf(signal))
      const entry: Waiting = {
        caller,
        resumes,
        refuse: leave,
        start: () => {
          signal.removeEventListener('abort', onAbort)
          this.#running.add(caller)
          resolve()
        },
      }
      signal.addEventListener('abort', onAbort, { once: true })
      this.#queue.push(entry)
    })
  }

  release(caller: string): void {
    this.#running.remove(caller)
    this.#startNext()
  }

  /** Parks a running task. Throws RATE_LIMITED when too many tasks or bytes are parked. */
  park(caller: string, bytes: number): void {
    const { maxParked, maxParkedPerCaller, maxParkedBytes } = this.#options
    if (
      this.#parked.total >= maxParked ||
      this.#parked.of(caller) >= maxParkedPerCaller ||
      this.#parkedBytes + bytes > maxParkedBytes
    )
      throw this.#tooMany('are waiting for user responses')
    this.#parked.add(caller)
    this.#parkedBytes += bytes
    this.release(caller)
  }

  /** Called when a parked task has a slot again, or has ended. */
  unpark(caller: string, bytes: number): void {
    this.#parked.remove(caller)
    this.#parkedBytes -= bytes
  }

  #tooMany(what: string): GatehouseError {
    return new GatehouseError('RATE_LIMITED', { detail: `too many ${this.#options.tasks} ${what}` })
  }

  #mayStart(caller: string): boolean {
    const { maxWorkers, maxPerCaller } = this.#options
    return this.#running.total < maxWorkers && this.#running.of(caller) < maxPerCaller
  }

  /** Returns false when the queue is full and no caller has more queued tasks than this caller would have. */
  #makeRoom(caller: string): boolean {
    const waiting = this.#queue.filter(({ resumes }) => !resumes)
    if (waiting.length < this.#options.maxWaiting) return true
    const counts = new Counts()
    for (const entry of waiting) counts.add(entry.caller)
    const last = waiting.findLast((entry) => counts.of(entry.caller) === counts.most)
    if (!last || counts.most <= counts.of(caller) + 1) return false
    last.refuse(this.#tooMany('at once'))
    return true
  }

  #startNext(): void {
    const able = this.#queue.filter(({ caller }) => this.#mayStart(caller))
    const rank = ({ caller, resumes }: Waiting): number => (resumes ? -1 : this.#running.of(caller))
    const [first] = able.toSorted((a, b) => rank(a) - rank(b))
    if (!first) return
    this.#queue.splice(this.#queue.indexOf(first), 1)
    first.start()
  }
}

/** Counts, keyed by caller. */
class Counts {
  readonly #counts = new Map<string, number>()
  total = 0

  of(key: string): number {
    return this.#counts.get(key) ?? 0
  }

  get most(): number {
    return Math.max(0, ...this.#counts.values())
  }

  add(key: string): void {
    this.#counts.set(key, this.of(key) + 1)
    this.total++
  }

  remove(key: string): void {
    const left = this.of(key) - 1
    if (left > 0) this.#counts.set(key, left)
    else this.#counts.delete(key)
    this.total--
  }
}
