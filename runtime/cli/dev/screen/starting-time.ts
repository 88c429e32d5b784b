/** How long a server has been starting, in seconds, for the screen and for lines of output. */

const firstStep = 5

export function secondsSince(since: number, now: number = Date.now()): number {
  return Math.max(0, Math.floor((now - since) / 1000))
}

/** Rounded down to 5, 10, 20, 40 and so on, so that a line is printed for each step only; 0 before the first one. */
export function roundSecondsSince(since: number, now: number = Date.now()): number {
  const seconds = secondsSince(since, now)
  if (seconds < firstStep) return 0
  return firstStep * 2 ** Math.floor(Math.log2(seconds / firstStep))
}
