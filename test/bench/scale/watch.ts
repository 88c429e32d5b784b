/**
 * Reads the resource use and the counters of programs: CPU time and memory from /proc, and counters in the text format
 * of Prometheus.
 */
import { readFileSync } from 'node:fs'

export interface Usage {
  readonly cpuSeconds: number
  /** Maximum so far. */
  readonly peakRssMb: number
  readonly rssMb: number
}

/** Returns the usage of a process with all its threads. Linux only. */
export function usageOf(pid: number): Usage {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const kilobytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0)
  return {
    cpuSeconds: (Number(fields[11]) + Number(fields[12])) / 100,
    peakRssMb: kilobytes('VmHWM') / 1024,
    rssMb: kilobytes('VmRSS') / 1024,
  }
}

export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** Returns the samples of one metric. */
export function samplesOf(page: string, name: string): readonly Sample[] {
  return page
    .split('\n')
    .filter((line) => line.startsWith(`${name}{`))
    .map((line) => {
      const end = line.lastIndexOf('}')
      const pairs = line.slice(name.length + 1, end).matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)
      return {
        labels: Object.fromEntries([...pairs].map(([, key = '', value = '']) => [key, value])),
        value: Number(line.slice(end + 1)),
      }
    })
}

/** Returns sums of samples by the result of `keyOf`. A sample without a key does not count. */
export class Counts {
  readonly byKey = new Map<string, number>()

  add(samples: readonly Sample[], keyOf: (labels: Sample['labels']) => string | undefined): this {
    for (const { labels, value } of samples) {
      const key = keyOf(labels)
      if (key !== undefined) this.byKey.set(key, (this.byKey.get(key) ?? 0) + value)
    }
    return this
  }

  /** Returns the increase since an earlier state. */
  since(before: Counts): Counts {
    const more = new Counts()
    for (const [key, value] of this.byKey) {
      const grown = value - (before.byKey.get(key) ?? 0)
      if (grown !== 0) more.byKey.set(key, grown)
    }
    return more
  }

  get total(): number {
    return [...this.byKey.values()].reduce((sum, value) => sum + value, 0)
  }

  /** Formats counts, such as `24 × sync MCPGroup, …`, the largest first. */
  get text(): string {
    const sorted = [...this.byKey].toSorted(([, a], [, b]) => b - a)
    return sorted.map(([key, value]) => `${value} × ${key}`).join(', ')
  }
}

/** Returns the upper bound of the histogram bucket that contains the quantile `share`, such as `≤ 25 ms`. */
export function boundOf(buckets: Counts, share: number): string {
  const bounds = [...buckets.byKey]
    .map(([bound, count]) => ({ bound: bound === '+Inf' ? Infinity : Number(bound), count }))
    .toSorted((a, b) => a.bound - b.bound)
  const all = bounds.at(-1)?.count ?? 0
  const found = bounds.find(({ count }) => count >= all * share)?.bound
  if (found === undefined || all === 0) return '-'
  return found === Infinity ? '> 10 s' : `≤ ${found < 1 ? `${found * 1000} ms` : `${found} s`}`
}
