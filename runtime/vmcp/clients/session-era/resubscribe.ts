/**
 * Subscribes again to a backend's resources after the backend has lost a session, usually because of a restart. Retries
 * while the backend starts, and gives up after about two minutes.
 */
import { setTimeout } from 'node:timers/promises'
import { ChangePacer, type Pace } from '../../catalog/changes/change-pacer.ts'

const pausesMs: readonly number[] = [0, 1_000, 2_000, 4_000, 8_000, 15_000, 30_000, 60_000]
const attemptMs = 30_000
/** Retry interval when a backend keeps losing reopened sessions. */
const lossPace: Pace = {
  free: 2,
  burstMs: 0,
  firstPauseMs: 1_000,
  maxPauseMs: 60_000,
  quietMs: 60_000,
  reportFrom: Number.POSITIVE_INFINITY,
}

export interface Resubscription {
  /** Returns the resources to watch. Each attempt calls this function. */
  readonly uris: () => readonly string[]
  /**
   * Watches a resource again. Rejects if the backend cannot be reached. Resolves to false if the backend no longer
   * watches the resource.
   */
  readonly subscribe: (uri: string, signal: AbortSignal) => Promise<boolean>
  /** Called for each resource that is watched again. The resource may have changed without a notification. */
  readonly onResubscribed: (uri: string) => void
  readonly isOver: () => boolean
}

/**
 * Subscribes again after each lost session, with increasing pauses. Some backends may lose a session whenever a client
 * subscribes to a resource in the session.
 */
export class Resubscriber {
  readonly #pacer = new ChangePacer({ pace: lossPace, onChange: () => {} })

  /**
   * Schedules new subscriptions. `key` identifies the session and the backend. If the session is lost again, a new
   * attempt replaces the pending one.
   */
  schedule(key: string, resubscription: Resubscription): void {
    this.#pacer.announce(key, () => void resubscribe(resubscription))
  }
}

/** Subscribes again. Never rejects. */
async function resubscribe({ uris, subscribe, onResubscribed, isOver }: Resubscription): Promise<void> {
  for (const pauseMs of pausesMs) {
    await setTimeout(pauseMs, undefined, { ref: false })
    if (isOver()) return
    try {
      const signal = AbortSignal.timeout(attemptMs)
      for (const uri of uris()) if (await subscribe(uri, signal)) onResubscribed(uri)
      return
    } catch {
      // The backend is not available yet. The loop tries again after a pause.
    }
  }
}
