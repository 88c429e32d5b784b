/** Determines the pause between two health checks. */

/**
 * Pause after the first failed check of a backend that has never responded. Each further failure doubles the pause, up
 * to the maximum.
 */
const firstRetryMs = 500
const maxRetryMs = 5_000
/** Number of checks that follow a shortened pause. */
const earlyChecks = 36

/**
 * Returns the pause before the next check. A backend that has never responded is probably still starting, so the pauses
 * are short for about three minutes.
 */
export function pauseBeforeCheck(
  { hasResponded, checks }: { readonly hasResponded: boolean; readonly checks: number },
  intervalMs: number,
): number {
  return hasResponded || checks > earlyChecks
    ? intervalMs
    : Math.min(intervalMs, maxRetryMs, firstRetryMs * 2 ** Math.max(0, checks - 1))
}
