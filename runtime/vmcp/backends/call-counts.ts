/**
 * Counts all client requests to a backend, counts the failed requests, and records recent latencies. Counting allocates
 * no memory, because times are stored in buckets of whole milliseconds.
 */
/** Upper bounds of the buckets in milliseconds. Longer times are counted in the last bucket. */
const boundsMs = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000] as const
/** Length of a period in milliseconds. Percentiles cover the last one to two periods. */
const periodMs = 5 * 60_000

export interface CallCounts {
  readonly calls: number
  readonly failed: number
  /** Percentiles, each rounded up to the upper bound of its bucket. Undefined if there were no recent calls. */
  readonly latencyMs: { readonly p50: number; readonly p95: number } | undefined
}

export class CallCounter {
  #calls = 0
  #failed = 0
  #currentPeriod = new Uint32Array(boundsMs.length)
  #previousPeriod = new Uint32Array(boundsMs.length)
  #rotatedAt = millis()

  /** Counts a call that began at `startedAt` (`performance.now()`). */
  record(startedAt: number, failed: boolean): void {
    const now = millis()
    this.#rotate(now)
    this.#calls++
    if (failed) this.#failed++
    const tookMs = (now - startedAt) | 0
    let i = 0
    while (i < boundsMs.length - 1 && tookMs > boundsMs[i]!) i++
    this.#currentPeriod[i]!++
  }

  #rotate(now: number): void {
    const age = (now - this.#rotatedAt) | 0
    if (age < periodMs) return
    const emptied = this.#previousPeriod
    this.#previousPeriod = age < 2 * periodMs ? this.#currentPeriod : emptied.fill(0)
    this.#currentPeriod = this.#previousPeriod === emptied ? this.#currentPeriod.fill(0) : emptied.fill(0)
    this.#rotatedAt = now
  }

  get counts(): CallCounts {
    this.#rotate(millis())
    const all = this.#currentPeriod.map((count, i) => count + this.#previousPeriod[i]!)
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

/**
 * Returns the time of a monotonic clock in whole milliseconds, as a 32-bit integer. The value wraps after 24 days, but
 * differences stay correct.
 */
function millis(): number {
  return performance.now() | 0
}
