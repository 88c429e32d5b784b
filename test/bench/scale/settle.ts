/** Waits until the effects of a change have ended. */
import { setTimeout as pause } from 'node:timers/promises'
import { progress } from '../vmcp/table.ts'
import { behind, type Cluster, isWrite, sum } from './cluster.ts'

const lookMs = 1_000
const quietMs = 6_000
const tellMs = 20_000

/**
 * Waits until writes have stopped and every object was processed. Resolves with the seconds from `start` (as of
 * performance.now) to the last write.
 */
export async function settled(cluster: Cluster, start: number): Promise<number> {
  for (;;) {
    const seconds = await unchanged(start, async () => sum(await cluster.apiRequests(), isWrite), 'writes')
    const left = await behind(cluster.api)
    if (left === 0) return seconds
    progress(`${left} objects are behind`)
  }
}

/**
 * Waits until hook calls and writes have stopped, and at least `least` of them have happened, because a new
 * Metacontroller reads for a while before its first call. Resolves like `settled`.
 */
export function quiet(cluster: Cluster, start: number, least = 0): Promise<number> {
  return unchanged(
    start,
    async () => (await cluster.hookCalls()).total + sum(await cluster.apiRequests(), isWrite),
    'calls and writes',
    least,
  )
}

async function unchanged(
  start: number,
  count: () => Promise<number>,
  what: string,
  least = 0,
): Promise<number> {
  const first = least === 0 ? 0 : await count()
  let last = start
  let told = performance.now()
  let seen = -1
  while (performance.now() - last < quietMs || seen < first + least) {
    const now = await count()
    if (now !== seen) last = performance.now()
    seen = now
    if (performance.now() - told > tellMs) {
      told = performance.now()
      progress(`${now} ${what} so far`)
    }
    await pause(lookMs)
  }
  return (last - start) / 1000
}
