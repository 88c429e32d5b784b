/**
 * Measurements in turns. The speed of a machine changes within a minute, so what is compared is measured in short slices, one of
 * each and then again from the start; a ratio is the median of the ratios within each round.
 *
 * A round is short: a server that was not busy yet clears up after five seconds of rest.
 */
import { progress, quantile, sorted } from '../vmcp/table.ts'

export interface Rounds {
  /** Odd, so that one of them is in the middle. */
  readonly rounds: number
  /** Go before and are not counted. */
  readonly warmUps?: number
}

/** The slices of each thing, by round. */
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

/** However busy the machine is. */
const mostWarmUpMs = 60_000

/**
 * Loads servers that were just started, in turns, until each has used so much processor time: what the engine has compiled by then
 * depends on what a server did, and on a busy machine that is little of a second.
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

/** How one stands against another, round by round: the median. */
export function ratioOf(own: readonly number[], base: readonly number[]): number {
  return median(own.map((value, round) => value / (base[round] ?? Number.NaN)))
}

/** What is added to another, round by round: the median. */
export function addedTo(base: readonly number[], own: readonly number[]): number {
  return median(own.map((value, round) => value - (base[round] ?? Number.NaN)))
}
