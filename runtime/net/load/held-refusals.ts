/**
 * Refusals of an overloaded server. They have a share of each turn of the event loop, no more: beyond it a refusal waits for
 * a later turn, and with it whoever would come again at once. A client that is told immediately, over and over, would take
 * the time that the others need.
 */
import { GatehouseError } from '../../../schemas/index.ts'

interface Held {
  readonly refuse: (error: Error) => void
  next: Held | undefined
}

/** Clients are to come back spread over so many seconds. Made once: a stack for each would cost more than the response. */
const errors = [1, 2, 3].map(
  (seconds) => new GatehouseError('OVERLOADED', { headers: { 'retry-after': String(seconds) } }),
)

export class HeldRefusals {
  readonly #maxHeld: number
  #first: Held | undefined
  #last: Held | undefined
  /** Those that wait to be told. */
  held = 0
  #total = 0
  /** Within this turn. */
  #now = 0

  constructor(maxHeld: number) {
    this.#maxHeld = maxHeld
  }

  /** All so far. */
  get total(): number {
    return this.#total
  }

  /** Throws the refusal, or returns what rejects with it in a later turn, when this one has had `share` of them. */
  refuse(share: number): Promise<never> {
    if (this.#now < share || this.held >= this.#maxHeld) throw this.error()
    return new Promise((_resolve, refuse) => this.#hold({ refuse, next: undefined }))
  }

  /** One that cannot wait. */
  error(): GatehouseError {
    this.#now++
    return errors[this.#total++ % errors.length] ?? new GatehouseError('OVERLOADED')
  }

  /** A new turn begins: tells `share` of those that wait. */
  begin(share: number): void {
    this.#now = 0
    while (this.#first && this.#now < share) {
      const { refuse, next } = this.#first
      this.#first = next
      this.held--
      refuse(this.error())
    }
    if (!this.#first) this.#last = undefined
  }

  #hold(held: Held): void {
    if (this.#last) this.#last.next = held
    else this.#first = held
    this.#last = held
    this.held++
  }
}
