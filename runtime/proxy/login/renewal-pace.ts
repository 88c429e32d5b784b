/**
 * How often a renewal that failed is tried again in the background: soon and with growing waits at first, then at long
 * intervals, then not any more. Pure arithmetic.
 * Source: reference behaviour of token refresh; the numbers are settings of the environment.
 */
import type { RenewalPace } from '../../config/index.ts'

/** Milliseconds until the next try after `failures` in a row, the first `sinceMs` ago; undefined: give up. */
export function waitAfterFailure(pace: RenewalPace, failures: number, sinceMs: number): number | undefined {
  if (failures < pace.maxTries && sinceMs < pace.maxElapsedMs) {
    return Math.min(pace.initialMs * 2 ** Math.max(failures - 1, 0), pace.maxIntervalMs)
  }
  return sinceMs < pace.giveUpMs ? pace.tickMs : undefined
}
