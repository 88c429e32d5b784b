/** Seconds since a server was started, for the screen and for output without a terminal. */

const firstStep = 5

export function secondsSince(since: number, now: number = Date.now()): number {
  return Math.max(0, Math.floor((now - since) / 1000))
}

/** Rounds down to 5, 10, 20, 40 and so on, so that each step prints only one line. Returns 0 before the first step. */
export function roundSecondsSince(since: number, now: number = Date.now()): number {
  const seconds = secondsSince(since, now)
  if (seconds < firstStep) return 0
  return firstStep * 2 ** Math.floor(Math.log2(seconds / firstStep))
}
