/** The virtual server's clock. Tests provide a different clock. */
export interface Clock {
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /**
   * Runs `work` once after `ms`. The returned function cancels the work. A pending timer does not keep the process
   * alive.
   */
  readonly after: (ms: number, work: () => void) => () => void
}

export const systemClock: Clock = {
  now: Date.now,
  after(ms, work) {
    const timer = setTimeout(work, ms)
    timer.unref()
    return () => clearTimeout(timer)
  },
}
