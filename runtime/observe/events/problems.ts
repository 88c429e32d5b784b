/** Current problems: conditions that events have opened but not yet closed. The number of problems is limited. */
import type { EventType } from './fields.ts'
import type { EventCondition } from './row.ts'

export interface OpenProblem {
  /** Type of the event that opened the problem. */
  readonly type: EventType
  /** Milliseconds since the epoch. */
  readonly since: number
  readonly backend?: string | undefined
  readonly message: string
  readonly fix: string
}

/** Effect of an event on the corresponding problem. */
export type ProblemChange = 'opened' | 'changed' | 'closed' | 'same'

const maxProblems = 500

export class OpenProblems {
  readonly #open = new Map<string, OpenProblem>()

  apply(type: EventType, { id, backend, open }: EventCondition, at: number): ProblemChange {
    const known = this.#open.get(id)
    if (!open) return this.#open.delete(id) ? 'closed' : 'same'
    if (known && known.message === open.message && known.fix === open.fix) return 'same'
    if (!known && this.#open.size >= maxProblems) return 'same'
    this.#open.set(id, { type, since: known?.since ?? at, backend, ...open })
    return known ? 'changed' : 'opened'
  }

  /** Removes problems with backends that no longer exist. */
  forget(backends: readonly string[]): void {
    if (backends.length === 0) return
    for (const [id, { backend }] of this.#open)
      if (backend !== undefined && backends.includes(backend)) this.#open.delete(id)
  }

  all(): readonly OpenProblem[] {
    return [...this.#open.values()].sort((a, b) => a.since - b.since)
  }
}
