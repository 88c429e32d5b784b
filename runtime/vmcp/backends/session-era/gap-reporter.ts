/**
 * Reports interruptions of a stream, during which a backend's announcements were lost. Reports the first interruption
 * immediately. Combines all interruptions during the next 30 seconds into one report at the end of that time. An
 * unstable stream therefore causes the lists to be read at most twice a minute.
 */
import { type Clock, systemClock } from '../../model/time/clock.ts'

const pauseMs = 30_000

export class GapReporter {
  readonly #report: () => void
  readonly #clock: Clock
  /** Cancels the current pause. Undefined outside a pause. */
  #cancel: (() => void) | undefined
  #hasPending = false

  constructor(report: () => void, clock: Clock = systemClock) {
    this.#report = report
    this.#clock = clock
  }

  note(): void {
    if (this.#cancel) {
      this.#hasPending = true
      return
    }
    this.#hasPending = false
    this.#cancel = this.#clock.after(pauseMs, () => {
      this.#cancel = undefined
      if (this.#hasPending) this.note()
    })
    this.#report()
  }

  close(): void {
    this.#cancel?.()
    this.#hasPending = false
  }
}
