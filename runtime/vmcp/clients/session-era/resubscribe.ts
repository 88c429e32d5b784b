/**
 * Subscribes again to resources of a backend that has forgotten the session in which they were watched: it was
 * restarted, mostly, and is often only just starting. Gives up in the end; the client's next request finds the backend
 * in any case.
 */
import { setTimeout } from 'node:timers/promises'
import { ChangePacer, type Pace } from '../../catalog/changes/change-pacer.ts'

const pausesMs: readonly number[] = [0, 1_000, 2_000, 4_000, 8_000, 15_000, 30_000, 60_000]
const attemptMs = 30_000
/** Pace for repeated losses of a session that was reopened each time. */
const pace: Pace = {
  free: 2,
  burstMs: 0,
  firstPauseMs: 1_000,
  maxPauseMs: 60_000,
  quietMs: 60_000,
  reportFrom: Number.POSITIVE_INFINITY,
}

export interface Resubscription {
  /** What is to be watched, at each attempt. */
  readonly uris: () => readonly string[]
  /** Rejects when the backend cannot be reached; false when it does not watch the resource any more. */
  readonly subscribe: (uri: string, signal: AbortSignal) => Promise<boolean>
  /** Called with each resource that is watched again: what happened to it meanwhile was heard by nobody. */
  readonly watched: (uri: string) => void
  readonly over: () => boolean
}

/**
 * Subscribes again after each lost session, with growing pauses: a backend may lose every session as soon as a
 * resource is subscribed to in it.
 */
export class Resubscriber {
  readonly #pacer = new ChangePacer({ pace, onChange: () => {} })

  /** `key` names the session and the backend. A new loss replaces a pending one. */
  lost(key: string, resubscription: Resubscription): void {
    this.#pacer.announce(key, () => void resubscribe(resubscription))
  }
}

/** Never rejects. */
async function resubscribe({ uris, subscribe, watched, over }: Resubscription): Promise<void> {
  for (const pauseMs of pausesMs) {
    await setTimeout(pauseMs, undefined, { ref: false })
    if (over()) return
    try {
      const signal = AbortSignal.timeout(attemptMs)
      for (const uri of uris()) if (await subscribe(uri, signal)) watched(uri)
      return
    } catch {
      // Not there yet: the next attempt comes later.
    }
  }
}
