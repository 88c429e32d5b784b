/**
 * Limits the rate at which clients with new sets of capabilities reach a backend. Each set requires a session and a
 * read of the lists, and untrusted clients can invent any number of sets. Beyond the limit, clients are distinguished
 * only by the capabilities that a protocol revision defines.
 */
const burst = 32
const refillMs = 60_000 / burst

export class NewClientLimiter {
  readonly #now: () => number
  #left = burst
  #filledAt: number

  constructor(now: () => number) {
    this.#now = now
    this.#filledAt = now()
  }

  get hasCapacity(): boolean {
    const now = this.#now()
    const refill = Math.floor((now - this.#filledAt) / refillMs)
    if (refill > 0) {
      this.#left = Math.min(burst, this.#left + refill)
      this.#filledAt += refill * refillMs
    }
    return this.#left > 0
  }

  /** Counts a client with a new set of capabilities. */
  take(): void {
    if (this.hasCapacity) this.#left--
  }
}
