/**
 * The interface between a tunnel and its provider. A provider makes a local port reachable from outside, and reports
 * its URL. A provider restarts its program with growing delays until the tunnel is closed.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../../net/index.ts'

export interface TunnelEvents {
  /** Called when the tunnel is available at this URL, and again after a restart, possibly with a different URL. */
  readonly onUp: (url: string) => void
  /** Called when an attempt has failed; more attempts follow. */
  readonly onDown: (error: unknown) => void
  readonly log: Log
}

export interface Tunnel {
  /** Ends the tunnel and everything that was started for it. */
  close(): Promise<void>
}

export interface TunnelProvider {
  /** Starts exposing `127.0.0.1:port`. Returns immediately. */
  open(port: number, events: TunnelEvents): Tunnel
}

const firstWaitMs = 1_000
const longestWaitMs = 60_000
/** A run that lasts at least this long resets the delay. */
const goodRunMs = 30_000

/** Repeats `attempt` until `signal` fires: immediately after it resolves, and with growing delays while it throws. */
export async function keepRunning(
  attempt: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
  onFailure: (error: unknown) => void,
): Promise<void> {
  let failures = 0
  while (!signal.aborted) {
    const startedAt = performance.now()
    try {
      await attempt(signal)
      failures = 0
    } catch (error) {
      if (signal.aborted) return
      onFailure(error)
      failures = performance.now() - startedAt > goodRunMs ? 1 : failures + 1
      const wait = Math.min(firstWaitMs * 2 ** (failures - 1), longestWaitMs)
      await sleep(wait, undefined, { signal }).catch(() => undefined)
    }
  }
}
