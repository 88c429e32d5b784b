/**
 * Stores the latest entries, up to a total size in bytes, and drops the oldest entries first. Entries have ascending
 * sequence numbers.
 */
export interface RingEntry {
  readonly seq: number
  /** Approximate size in memory. */
  readonly bytes: number
}

/** Number of empty slots at the start after which the array is compacted. */
const compactAfter = 1_024

export class Ring<E extends RingEntry> {
  readonly #maxBytes: number
  #entries: (E | undefined)[] = []
  /** Index of the oldest entry. */
  #head = 0
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get bytes(): number {
    return this.#bytes
  }

  get size(): number {
    return this.#entries.length - this.#head
  }

  get oldest(): E | undefined {
    return this.#entries[this.#head]
  }

  /**
   * Adds an entry, whose number must exceed all previous numbers. Does not store an entry that is larger than the whole
   * ring.
   */
  push(entry: E): void {
    if (entry.bytes > this.#maxBytes) return
    this.#entries.push(entry)
    this.#bytes += entry.bytes
    while (this.#bytes > this.#maxBytes) this.#drop()
  }

  #drop(): void {
    const { oldest } = this
    if (!oldest) return
    this.#bytes -= oldest.bytes
    this.#entries[this.#head++] = undefined
    if (this.#head < compactAfter || this.#head * 2 < this.#entries.length) return
    this.#entries = this.#entries.slice(this.#head)
    this.#head = 0
  }

  /** Yields the entries below `seq`, newest first. */
  *before(seq: number): Generator<E> {
    for (let i = this.#firstAt(seq) - 1; i >= this.#head; i--) {
      const entry = this.#entries[i]
      if (entry) yield entry
    }
  }

  find(seq: number): E | undefined {
    const entry = this.#entries[this.#firstAt(seq)]
    return entry?.seq === seq ? entry : undefined
  }

  /** Returns the index of the first entry whose number is at least the given number. */
  #firstAt(seq: number): number {
    let low = this.#head
    let high = this.#entries.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#entries[middle]?.seq ?? 0) < seq) low = middle + 1
      else high = middle
    }
    return low
  }
}
