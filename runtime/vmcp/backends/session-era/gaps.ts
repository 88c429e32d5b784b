/**
 * Tells of gaps in a stream: what a backend announced while the stream was down was heard by nobody. The first is told at once;
 * of those within the next half minute one, at its end, so that a stream that comes and goes has lists read twice a minute.
 */
import { type Clock, systemClock } from '../../model/time/clock.ts'

const pauseMs = 30_000

export class Gaps {
  readonly #tell: () => void
  readonly #clock: Clock
  /** There until the pause is over. */
  #cancel: (() => void) | undefined
  #missed = false

  constructor(tell: () => void, clock: Clock = systemClock) {
    this.#tell = tell
    this.#clock = clock
  }

  note(): void {
    if (this.#cancel) {
      this.#missed = true
      return
    }
    this.#missed = false
    this.#cancel = this.#clock.after(pauseMs, () => {
      this.#cancel = undefined
      if (this.#missed) this.note()
    })
    this.#tell()
  }

  close(): void {
    this.#cancel?.()
    this.#missed = false
  }
}
