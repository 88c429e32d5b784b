/** Counts logins for more scopes, so that a target that always asks for more does not make browser windows pop up for ever. */

const maxInWindow = 3
/** Asking again for what was asked for already helps once at most: when the user had left a scope out. */
const maxRepeats = 1
const windowMs = 600_000

export class StepUps {
  readonly #now: () => number
  #count = 0
  /** Those in a row that asked for nothing new. */
  #repeats = 0
  #lastAt = Number.NEGATIVE_INFINITY

  constructor(now: () => number) {
    this.#now = now
  }

  /** True while another one is refused. `isRepeat`: the target asks for nothing new. */
  isExhausted(isRepeat: boolean): boolean {
    if (this.#now() - this.#lastAt >= windowMs) return false
    return this.#count >= maxInWindow || (isRepeat && this.#repeats >= maxRepeats)
  }

  /** Counts one that begins now. */
  begin(isRepeat: boolean): void {
    const continues = this.#now() - this.#lastAt < windowMs
    this.#count = continues ? this.#count + 1 : 1
    if (!isRepeat) this.#repeats = 0
    else this.#repeats = continues ? this.#repeats + 1 : 1
    this.#lastAt = this.#now()
  }
}
