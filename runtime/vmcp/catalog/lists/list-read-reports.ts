import type { Events } from '../../../observe/index.ts'
import type { BackendSettings } from '../../backends/settings.ts'
import { type ListErrors, maxExamples } from '../items/errors.ts'
import { shownDetail } from '../read-failure.ts'

/** The state of a backend's lists, as used in reports. */
export interface ListsState {
  /** Time at which lists in use became stale, in milliseconds since the epoch. Undefined if no lists are stale. */
  readonly staleSince: number | undefined
  /** Numbers of repaired items in use and of omitted items. */
  readonly repaired: number
  readonly leftOut: number
}

/** Reports the reads of one backend's lists, regardless of the client. */
export class ListReadReports {
  readonly #backend: string
  readonly #perCaller: boolean
  readonly #events: Events
  /** True while malformed items are reported. */
  #malformed = false
  #stale = false

  constructor({ name, perCaller }: Pick<BackendSettings, 'name' | 'perCaller'>, events: Events) {
    this.#backend = name
    this.#perCaller = perCaller
    this.#events = events
  }

  /** Records a successful read. `state` covers all of the backend's listings. */
  read({ repaired, leftOut, problems }: ListErrors, state: ListsState): void {
    if (this.#stale && state.staleSince === undefined) {
      this.#stale = false
      this.#events.emit('lists_recovered', { backend: this.#backend })
    }
    const bad = repaired + leftOut > 0
    if (!bad && (!this.#malformed || state.repaired + state.leftOut > 0)) return
    this.#malformed = bad
    this.#events.emit('items_malformed', {
      backend: this.#backend,
      repaired,
      left_out: leftOut,
      examples: problems.slice(0, maxExamples).map(({ message }) => message),
    })
  }

  /** Records a failed read. */
  failed(err: unknown, { staleSince }: ListsState): void {
    this.#stale ||= staleSince !== undefined
    this.#events.emit('lists_failed', {
      backend: this.#backend,
      stale_since: staleSince === undefined ? undefined : new Date(staleSince).toISOString(),
      detail: shownDetail(err, this.#perCaller),
      err,
    })
  }
}
