/**
 * Limits concurrent queries in total and per caller, so a caller with long lists delays only itself. Waiting callers
 * take turns.
 */
import { abortable } from '../../net/index.ts'

interface Waiting {
  start(): void
  left: boolean
  started: boolean
}

export class QuestionSlots {
  readonly #most: number
  readonly #mostPerCaller: number
  /** Number of open queries, keyed by caller. */
  readonly #open = new Map<string, number>()
  /** Waiting callers, in the order of their turns. */
  readonly #waiting = new Map<string, Waiting[]>()
  #total = 0

  constructor(most: number, mostPerCaller: number) {
    this.#most = most
    this.#mostPerCaller = mostPerCaller
  }

  /** Runs work when a slot is free. If the signal aborts first, rejects with its reason and does not start the work. */
  async run<T>(caller: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted()
    if (this.#mayStart(caller)) this.#take(caller)
    else await this.#turn(caller, signal)
    try {
      return await work()
    } finally {
      this.#release(caller)
    }
  }

  async #turn(caller: string, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const entry: Waiting = { start: resolve, left: false, started: false }
    const queue = this.#waiting.get(caller)
    if (queue) queue.push(entry)
    else this.#waiting.set(caller, [entry])
    try {
      await abortable(promise, signal)
    } catch (error) {
      entry.left = true
      // Frees a slot that was assigned to a caller whose signal had aborted.
      if (entry.started) this.#release(caller)
      throw error
    }
  }

  #mayStart(caller: string): boolean {
    return this.#total < this.#most && (this.#open.get(caller) ?? 0) < this.#mostPerCaller
  }

  #take(caller: string): void {
    this.#total++
    this.#open.set(caller, (this.#open.get(caller) ?? 0) + 1)
  }

  #release(caller: string): void {
    this.#total--
    const open = (this.#open.get(caller) ?? 1) - 1
    if (open > 0) this.#open.set(caller, open)
    else this.#open.delete(caller)
    this.#startNext()
  }

  #startNext(): void {
    for (const [caller, queue] of this.#waiting) {
      while (queue[0]?.left) queue.shift()
      if (queue.length > 0 && !this.#mayStart(caller)) continue
      this.#waiting.delete(caller)
      const next = queue.shift()
      if (!next) continue
      // Appends the caller to the end of the queue.
      if (queue.length > 0) this.#waiting.set(caller, queue)
      this.#take(caller)
      next.started = true
      next.start()
      return
    }
  }
}
