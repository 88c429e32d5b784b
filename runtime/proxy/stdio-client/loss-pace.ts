/**
 * Computes the pause before a lost session is reopened. The first reopening is immediate; the pause grows when
 * sessions are repeatedly lost right after they were opened.
 */
import { longestRetryMs } from './http.ts'

/** A session that stays open for at least this long is not counted as lost immediately after opening. */
const keptMs = 5_000
const firstPauseMs = 500

export class LossPace {
  #quickLosses = 0
  #openedAt = 0

  opened(): void {
    this.#openedAt = performance.now()
  }

  /** Returns the pause in milliseconds. */
  lost(): number {
    this.#quickLosses = performance.now() - this.#openedAt < keptMs ? this.#quickLosses + 1 : 0
    if (this.#quickLosses <= 1) return 0
    return Math.min(firstPauseMs * 2 ** (this.#quickLosses - 2), longestRetryMs)
  }
}
