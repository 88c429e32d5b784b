/**
 * The seam between a tunnel and what carries it: a provider makes a local port reachable from outside and says under
 * which URL. Providers restart what they run, with growing waits, until they are closed.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../../net/index.ts'

export interface TunnelEvents {
  /** The tunnel is up under this URL; called again after a restart, perhaps with another one. */
  readonly onUp: (url: string) => void
  /** An attempt failed; others follow. */
  readonly onDown: (error: unknown) => void
  readonly log: Log
}

export interface Tunnel {
  /** Ends the tunnel and everything that was started for it. */
  close(): Promise<void>
}

export interface TunnelProvider {
  /** Starts to make `127.0.0.1:port` reachable. Returns at once. */
  open(port: number, events: TunnelEvents): Tunnel
}

const firstWaitMs = 1_000
const longestWaitMs = 60_000
/** A run that lasted this long was a good one: the next wait begins small again. */
const goodRunMs = 30_000

/**
 * Runs `attempt` again and again until `signal` fires: at once after it resolved, after growing waits while it throws.
 */
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
