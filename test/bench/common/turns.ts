/**
 * Measures in turns. The speed of a machine changes within a minute, so compared things are measured in short slices,
 * one of each per round. A ratio is the median of the ratios within each round.
 *
 * Rounds are short, because a server that was idle for five seconds starts to clean up.
 */
import { progress, quantile, sorted } from '../vmcp/table.ts'

export interface Rounds {
  /** Odd, so that there is a middle one. */
  readonly rounds: number
  /** Rounds before the measurement. */
  readonly warmUps?: number
}

/** Returns the slices of each thing, by round. */
export async function inTurns<Thing extends { readonly name: string }, Slice>(
  things: readonly Thing[],
  { rounds, warmUps = 0 }: Rounds,
  measure: (thing: Thing) => Promise<Slice>,
): Promise<ReadonlyMap<Thing, readonly Slice[]>> {
  const slices = new Map<Thing, Slice[]>(things.map((thing) => [thing, []]))
  for (let round = 0; round < warmUps + rounds; round++) {
    progress(round < warmUps ? 'warming up' : `round ${round - warmUps + 1} of ${rounds}`)
    for (const thing of things) {
      const slice = await measure(thing)
      if (round >= warmUps) slices.get(thing)?.push(slice)
    }
  }
  return slices
}

/** Limit on a busy machine. */
const mostWarmUpMs = 60_000

/**
 * Loads new servers in turns until each has used this much CPU time. The compiled code of a server depends on its work
 * so far, and a busy machine does little work in a second.
 */
export async function warmUp<Thing>(
  servers: readonly Thing[],
  cpuSeconds: number,
  cpuMicros: (server: Thing) => number,
  load: (server: Thing) => Promise<unknown>,
): Promise<void> {
  const until = performance.now() + mostWarmUpMs
  const enough = servers.map((server) => cpuMicros(server) + cpuSeconds * 1e6)
  const isCold = (server: Thing, at: number): boolean => cpuMicros(server) < (enough[at] ?? 0)
  while (servers.some(isCold) && performance.now() < until) for (const server of servers) await load(server)
}

export function median(values: readonly number[]): number {
  return quantile(sorted(values), 0.5)
}

/** Returns the median of the ratios by round. */
export function ratioOf(own: readonly number[], base: readonly number[]): number {
  return median(own.map((value, round) => value / (base[round] ?? Number.NaN)))
}

/** Returns the median of the differences by round. */
export function addedTo(base: readonly number[], own: readonly number[]): number {
  return median(own.map((value, round) => value - (base[round] ?? Number.NaN)))
}
