/** Tells the event stream how reading the lists of one backend went, whatever kind of client they were read for. */
import type { Events } from '../../../observe/index.ts'
import type { BackendSettings } from '../../backends/settings.ts'
import { type ListErrors, maxExamples } from '../items/errors.ts'
import { shownDetail } from '../read-failure.ts'

/** How the lists of a backend are, for reports. */
export interface ListsState {
  /** Since when lists in use are stale, milliseconds since the epoch; undefined while none is. */
  readonly staleSince: number | undefined
  /** Items of the lists in use that are offered with repairs, and that are left out. */
  readonly repaired: number
  readonly leftOut: number
}

export class ListsTold {
  readonly #backend: string
  readonly #perCaller: boolean
  readonly #events: Events
  /** What was told and not taken back. */
  #malformed = false
  #stale = false

  constructor({ name, perCaller }: Pick<BackendSettings, 'name' | 'perCaller'>, events: Events) {
    this.#backend = name
    this.#perCaller = perCaller
    this.#events = events
  }

  /** A listing was read. `state` is that of all listings of the backend afterwards. */
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

  /** A listing could not be read. */
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
