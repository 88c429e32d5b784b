/** The clock of the virtual server. Tests provide a different one. */
export interface Clock {
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Runs `work` once after `ms`; the returned function cancels it. Never keeps the process alive. */
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
