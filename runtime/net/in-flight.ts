/**
 * A list of the calls in flight, with insertion and removal in constant time.
 *
 * The list avoids Map and Set, because their tables chain removed entries. V8 constantly replaces tables under churn.
 * The old table then points to the new table and retains its entries. Once an old table has reached the old space,
 * every scavenge treats the table's successors as live. The scavenger promotes each call, with everything that the call
 * references, until the next full collection. Removing an entry from this list releases the entry's neighbors.
 * Source: V8, src/objects/ordered-hash-table (NextTable).
 */
export class InFlight<T> {
  #first: InFlightEntry<T> | undefined
  #last: InFlightEntry<T> | undefined
  size = 0

  /** Appends a value. Returns the entry to pass to `remove`. */
  add(value: T): InFlightEntry<T> {
    const entry: InFlightEntry<T> = { value, previous: this.#last, next: undefined, isIn: true }
    if (this.#last) this.#last.next = entry
    else this.#first = entry
    this.#last = entry
    this.size++
    return entry
  }

  /** Returns false if the entry has already been removed. */
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

  /** Returns the newest matching value. Scans the whole list. */
  find(fits: (value: T) => boolean): T | undefined {
    for (let entry = this.#last; entry; entry = entry.previous) if (fits(entry.value)) return entry.value
    return undefined
  }

  /** Returns a snapshot of all values, oldest first. */
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
