/** How soon a lost session is opened again: at once, unless it is lost time and again as soon as it is open. */
import { longestRetryMs } from './http.ts'

/** A session that is open for this long does not count as lost at once. */
const keptMs = 5_000
const firstPauseMs = 500

export class LossPace {
  #quickLosses = 0
  #openedAt = 0

  opened(): void {
    this.#openedAt = performance.now()
  }

  /** Returns the milliseconds to wait. */
  lost(): number {
    this.#quickLosses = performance.now() - this.#openedAt < keptMs ? this.#quickLosses + 1 : 0
    if (this.#quickLosses <= 1) return 0
    return Math.min(firstPauseMs * 2 ** (this.#quickLosses - 2), longestRetryMs)
  }
}
