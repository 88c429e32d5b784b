/**
 * What is in flight at the moment: a list that every call enters and leaves, in constant time.
 *
 * Not a Map or a Set, because these chain what passes through them: when V8 replaces the table of one, which happens all
 * the time under churn, the old table points at the new one and holds on to its entries. Once one such table has reached
 * the old space, every scavenge takes its successors for alive, and promotes each call with all that belongs to it until
 * the next full collection. An entry of this list lets go of its neighbours when it leaves.
 * Source: V8, src/objects/ordered-hash-table (NextTable).
 */
export class InFlight<T> {
  #first: InFlightEntry<T> | undefined
  #last: InFlightEntry<T> | undefined
  size = 0

  /** Adds at the end. The result is what `remove` takes. */
  add(value: T): InFlightEntry<T> {
    const entry: InFlightEntry<T> = { value, previous: this.#last, next: undefined, isIn: true }
    if (this.#last) this.#last.next = entry
    else this.#first = entry
    this.#last = entry
    this.size++
    return entry
  }

  /** False when it was removed before. */
  remove(entry: InFlightEntry<T>): boolean {
    if (!entry.isIn) return false
    const { previous, next } = entry
    if (previous) previous.next = next
    else this.#first = next
    if (next) next.previous = previous
    else this.#last = previous
    entry.isIn = false
    entry.previous = undefined
    entry.next = undefined
    this.size--
    return true
  }

  /** The newest one that fits; looks at all of them. */
  find(fits: (value: T) => boolean): T | undefined {
    for (let entry = this.#last; entry; entry = entry.previous) if (fits(entry.value)) return entry.value
    return undefined
  }

  /** All of them as they are now, oldest first. */
  values(): T[] {
    const values: T[] = []
    for (let entry = this.#first; entry; entry = entry.next) values.push(entry.value)
    return values
  }
}

export interface InFlightEntry<T> {
  readonly value: T
  previous: InFlightEntry<T> | undefined
  next: InFlightEntry<T> | undefined
  isIn: boolean
}
