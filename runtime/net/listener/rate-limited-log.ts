/** Rate-limits log messages that untrusted clients can trigger arbitrarily often. */
const intervalMs = 60_000

export function limitToOncePerMinute<Args extends unknown[]>(
  report: (...args: Args) => void,
): (...args: Args) => void {
  let reportedAt = Number.NEGATIVE_INFINITY

  return function reportRarely(...args) {
    const now = performance.now()
    if (now - reportedAt < intervalMs) return
    reportedAt = now
    report(...args)
  }
}
