/**
 * Subscribes again to resources of a backend that has forgotten the session in which they were watched: it was
 * restarted, mostly, and is often only just starting. Gives up in the end; the client's next request finds the backend
 * in any case.
 */
import { setTimeout } from 'node:timers/promises'

const pausesMs: readonly number[] = [0, 1_000, 2_000, 4_000, 8_000, 15_000, 30_000, 60_000]
const attemptMs = 30_000

export interface Resubscription {
  /** What is to be watched, at each attempt. */
  readonly uris: () => readonly string[]
  /** Rejects when the backend cannot be reached; false when it does not watch the resource any more. */
  readonly subscribe: (uri: string, signal: AbortSignal) => Promise<boolean>
  /** Called with each resource that is watched again: what happened to it meanwhile was heard by nobody. */
  readonly watched: (uri: string) => void
  readonly over: () => boolean
}

/** Never rejects. */
export async function resubscribe({ uris, subscribe, watched, over }: Resubscription): Promise<void> {
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
