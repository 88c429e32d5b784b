/** What one of some things takes: the mean of those that were measured lately. */
export class Mean {
  readonly #windowMs: number
  #spentMs: number
  #count: number

  /** A measurement counts half as much once `windowMs` have been measured after it; the guess counts for ten. */
  constructor({ guessMs, windowMs }: { readonly guessMs: number; readonly windowMs: number }) {
    this.#windowMs = windowMs
    this.#spentMs = 10 * guessMs
    this.#count = 10
  }

  get ms(): number {
    return this.#spentMs / this.#count
  }

  /** So many took so long together. */
  add(count: number, spentMs: number): void {
    this.#spentMs += spentMs
    this.#count += count
    if (this.#spentMs < this.#windowMs) return
    this.#spentMs /= 2
    this.#count /= 2
  }
}
