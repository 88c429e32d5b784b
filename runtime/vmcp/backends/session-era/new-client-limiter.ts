/**
 * Says how many kinds of clients never seen before a backend may be bothered with: each costs it a session and a reading
 * of its lists, and untrusted clients can make up as many as they like. Beyond the measure they are treated as their plain kind.
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

  get any(): boolean {
    const now = this.#now()
    const refill = Math.floor((now - this.#filledAt) / refillMs)
    if (refill > 0) {
      this.#left = Math.min(burst, this.#left + refill)
      this.#filledAt += refill * refillMs
    }
    return this.#left > 0
  }

  /** One more kind has come. */
  take(): void {
    if (this.any) this.#left--
  }
}
