/**
 * How many requests of clients a backend got, how many failed, and how long they took of late. Counting allocates
 * nothing: times are whole milliseconds, in buckets.
 */
/** Upper bounds in milliseconds; what took longer counts under the last. */
const boundsMs = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000] as const
/** Percentiles cover between one and two of these. */
const periodMs = 5 * 60_000

export interface CallCounts {
  readonly calls: number
  readonly failed: number
  /** Upper bounds of the buckets that hold the percentiles; undefined without a call of late. */
  readonly latencyMs: { readonly p50: number; readonly p95: number } | undefined
}

export class CallCounter {
  #calls = 0
  #failed = 0
  #present = new Uint32Array(boundsMs.length)
  #before = new Uint32Array(boundsMs.length)
  #rotatedAt = millis()

  /** Counts a call that began at `startedAt` (`performance.now()`). */
  ended(startedAt: number, failed: boolean): void {
    const now = millis()
    this.#rotate(now)
    this.#calls++
    if (failed) this.#failed++
    const tookMs = (now - startedAt) | 0
    let i = 0
    while (i < boundsMs.length - 1 && tookMs > boundsMs[i]!) i++
    this.#present[i]!++
  }

  #rotate(now: number): void {
    const age = (now - this.#rotatedAt) | 0
    if (age < periodMs) return
    const emptied = this.#before
    this.#before = age < 2 * periodMs ? this.#present : emptied.fill(0)
    this.#present = this.#before === emptied ? this.#present.fill(0) : emptied.fill(0)
    this.#rotatedAt = now
  }

  get counts(): CallCounts {
    this.#rotate(millis())
    const all = this.#present.map((count, i) => count + this.#before[i]!)
    const total = all.reduce((sum, count) => sum + count, 0)
    return {
      calls: this.#calls,
      failed: this.#failed,
      latencyMs:
        total === 0 ? undefined : { p50: percentile(all, total / 2), p95: percentile(all, total * 0.95) },
    }
  }
}

function percentile(counts: Uint32Array, rank: number): number {
  let seen = 0
  const i = counts.findIndex((count) => (seen += count) >= rank)
  return boundsMs[i] ?? 60_000
}

/** Whole milliseconds of a steady clock, as a small integer; wraps after 24 days, which differences survive. */
function millis(): number {
  return performance.now() | 0
}
