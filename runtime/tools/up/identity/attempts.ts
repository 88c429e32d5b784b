/**
 * Limits how often passwords can be tried. After five wrong passwords for a name, the next attempt must wait, and the
 * wait doubles with each wrong password. Names without a user are counted in the same way, so that the limit does not
 * reveal which users exist. Passkeys are not limited, because they cannot be guessed.
 */
import { hash } from 'node:crypto'

const freeAttempts = 5
const firstWaitMs = 30_000
const longestWaitMs = 15 * 60_000

interface Failures {
  readonly count: number
  readonly until: number
}

export class Attempts {
  /** Keyed by the first 12 bits of the name's hash, which limits the number of entries. */
  readonly #failures = new Map<string, Failures>()
  readonly #now: () => number

  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  /** Returns the seconds until the next attempt for this name is allowed; 0 if it is allowed now. */
  waitSeconds(name: string): number {
    const { until = 0 } = this.#failures.get(rowOf(name)) ?? {}
    return Math.max(0, Math.ceil((until - this.#now()) / 1000))
  }

  /**
   * Counts an attempt when it begins, so that parallel attempts are limited too. Returns a function that discards the
   * attempt, for use when the password could not be checked.
   */
  begin(name: string): () => void {
    const row = rowOf(name)
    const before = this.#failures.get(row)
    const count = (before?.count ?? 0) + 1
    const over = count - freeAttempts
    const waitMs = over < 0 ? 0 : Math.min(firstWaitMs * 2 ** over, longestWaitMs)
    const counted = { count, until: this.#now() + waitMs }
    this.#failures.set(row, counted)
    return () => {
      if (this.#failures.get(row) !== counted) return
      if (before) this.#failures.set(row, before)
      else this.#failures.delete(row)
    }
  }

  /** Resets the count of wrong passwords after a correct password. */
  succeeded(name: string): void {
    this.#failures.delete(rowOf(name))
  }
}

function rowOf(name: string): string {
  return hash('sha256', name).slice(0, 3)
}
