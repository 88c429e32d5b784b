/**
 * Limits logins for additional scopes, so that a target that always requires more cannot open browser windows
 * forever.
 */

const maxInWindow = 3
/** Requesting the same scopes again helps at most once, if the user had deselected one of them. */
const maxRepeats = 1
const windowMs = 600_000

export class StepUps {
  readonly #now: () => number
  #count = 0
  /** Number of consecutive step-ups that did not request a new scope. */
  #repeats = 0
  #lastAt = Number.NEGATIVE_INFINITY

  constructor(now: () => number) {
    this.#now = now
  }

  /** True when no further step-up is allowed. `isRepeat`: the target does not require a new scope. */
  isExhausted(isRepeat = false): boolean {
    if (this.#now() - this.#lastAt >= windowMs) return false
    return this.#count >= maxInWindow || (isRepeat && this.#repeats >= maxRepeats)
  }

  /** Counts a step-up that is starting. */
  begin(isRepeat = false): void {
    const continues = this.#now() - this.#lastAt < windowMs
    this.#count = continues ? this.#count + 1 : 1
    if (!isRepeat) this.#repeats = 0
    else this.#repeats = continues ? this.#repeats + 1 : 1
    this.#lastAt = this.#now()
  }
}
