/**
 * Decides whether memory was flat, from straight lines through the second half of the run (least squares).
 *
 * A leak shows in the memory that remains after a collection, in the heap and outside it. RSS covers all other memory.
 * It grows in steps, because the engine and malloc return little memory after a peak, and has a larger limit.
 */
import type { Sample } from './sampler.ts'

/** MB per hour. */
export interface Limits {
  readonly rss: number
  /** Memory after a full collection: in the heap, and outside it. */
  readonly live: number
}

export interface Slope {
  readonly perHour: number
  /** Standard error of the slope, assuming independent samples. */
  readonly error: number
  readonly mean: number
  readonly points: readonly (readonly [x: number, y: number])[]
}

/** Returns the slope of `value` over time in units per hour. Skips samples without a value. */
export function slopeOf(samples: readonly Sample[], value: (sample: Sample) => number | undefined): Slope {
  const points = samples.flatMap((sample): [number, number][] => {
    const y = value(sample)
    return y === undefined ? [] : [[sample.seconds / 3_600, y]]
  })
  const n = points.length
  const meanX = points.reduce((sum, [x]) => sum + x, 0) / n
  const mean = points.reduce((sum, [, y]) => sum + y, 0) / n
  const xx = points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0)
  const perHour = points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - mean), 0) / xx
  const residual = points.reduce((sum, [x, y]) => sum + (y - mean - perHour * (x - meanX)) ** 2, 0)
  return { perHour, error: Math.sqrt(residual / Math.max(1, n - 2) / xx), mean, points }
}

/** The second half of the run, when all caches are full. */
export function secondHalf(samples: readonly Sample[]): readonly Sample[] {
  const middle = (samples.at(-1)?.seconds ?? 0) / 2
  return samples.filter(({ seconds }) => seconds >= middle)
}

export interface Judgment {
  readonly text: string
  readonly flat: boolean
}

/** True when the slope exceeds the limit by more than chance explains. */
function grows({ perHour, error }: Slope, limit: number): boolean {
  return perHour - 2 * error > limit
}

export function check(samples: readonly Sample[], limits: Limits): Judgment {
  const half = secondHalf(samples)
  const rss = slopeOf(half, ({ rssMb }) => rssMb)
  const heap = slopeOf(half, ({ liveHeapMb }) => liveHeapMb)
  const external = slopeOf(half, ({ liveExternalMb }) => liveExternalMb)
  const sockets = slopeOf(half, (sample) => sample.sockets)
  const sessions = slopeOf(half, (sample) => sample.sessions)
  const files = slopeOf(half, (sample) => sample.files)
  const p99 = slopeOf(half, ({ p99Ms }) => p99Ms)
  const line = (name: string, { mean, perHour, error }: Slope, limit?: number): string =>
    `| ${name} | ${mean.toFixed(1)} | ${perHour.toFixed(2)} ± ${error.toFixed(2)} | ${limit ?? ''} |`
  return {
    flat: !grows(rss, limits.rss) && !grows(heap, limits.live) && !grows(external, limits.live),
    text: [
      '| second half | mean | slope per hour | limit |',
      '|---|---|---|---|',
      line('RSS, MB', rss, limits.rss),
      line('heap after a full collection, MB', heap, limits.live),
      line('outside the heap after it, MB', external, limits.live),
      line('sessions', sessions),
      line('sockets', sockets),
      line('open files', files),
      ...(p99.points.length > 1 ? [line('p99 of the plain calls of a minute, ms', p99)] : []),
    ].join('\n'),
  }
}
