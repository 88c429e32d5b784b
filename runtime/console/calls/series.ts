/**
 * Call counts, outcomes and durations per minute over the last hour, for the server and each backend.
 *
 * Memory use is fixed: 60 minutes of counters for at most 256 backends. Additional backends share one set of counters.
 * Durations are counted in bins, which makes it possible to compute percentiles for any range of minutes.
 */
import type { Health, Minute } from '../api.ts'
import { given, iso } from '../data/pages.ts'

const minuteMs = 60_000
const minutes = 60
const maxBackends = 256
const maxTransitions = 240
const others = ''

/** Upper bounds of the duration bins in milliseconds; longer durations fall into the last bin. */
const boundsMs = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 600_000,
] as const
const callsAt = boundsMs.length
const failedAt = callsAt + 1
const deniedAt = callsAt + 2
const width = callsAt + 3

/** Health states, ordered from best to worst. */
const severity: readonly Health[] = ['healthy', 'unknown', 'degraded', 'unauthenticated', 'unhealthy']

export interface CallSample {
  /** Backend of the call; empty when the call reached no backend. */
  readonly backend: string
  readonly ms: number
  readonly result: 'ok' | 'failed' | 'denied'
}

export interface Totals {
  readonly calls: number
  readonly failed: number
  readonly denied: number
  readonly p50?: number
  readonly p95?: number
}

/** Counters for one hour. A row is cleared when it is reused for another minute. */
class Hour {
  readonly #counts = new Uint32Array(minutes * width)
  /** Minute of each row. */
  readonly #minuteOf = new Float64Array(minutes)

  add(minute: number, { ms, result }: CallSample): void {
    const row = this.#row(minute)
    let bin = 0
    while (bin < callsAt - 1 && ms > boundsMs[bin]!) bin++
    this.#counts[row + bin]!++
    this.#counts[row + callsAt]!++
    if (result === 'failed') this.#counts[row + failedAt]!++
    else if (result === 'denied') this.#counts[row + deniedAt]!++
  }

  #row(minute: number): number {
    const i = minute % minutes
    if (this.#minuteOf[i] !== minute) {
      this.#minuteOf[i] = minute
      this.#counts.fill(0, i * width, (i + 1) * width)
    }
    return i * width
  }

  /** Returns the counters of a minute, or undefined when there were no calls. */
  at(minute: number): Uint32Array | undefined {
    const i = minute % minutes
    return this.#minuteOf[i] === minute ? this.#counts.subarray(i * width, (i + 1) * width) : undefined
  }
}

export class Series {
  readonly #now: () => number
  readonly #all = new Hour()
  readonly #backends = new Map<string, Hour>()
  readonly #transitions = new Map<string, { at: number; health: Health }[]>()

  constructor(now: () => number) {
    this.#now = now
  }

  /**
   * Counts a call. `at` is the end of the call, in milliseconds since the epoch. Ignores calls that ended more than an
   * hour ago.
   */
  add(sample: CallSample, at: number): void {
    const minute = Math.floor(at / minuteMs)
    const present = Math.floor(this.#now() / minuteMs)
    if (!(minute > present - minutes && minute <= present)) return
    this.#all.add(minute, sample)
    if (sample.backend !== '') this.#hourOf(sample.backend).add(minute, sample)
  }

  #hourOf(backend: string): Hour {
    const known = this.#backends.get(backend)
    if (known) return known
    const name = this.#backends.size < maxBackends ? backend : others
    const hour = this.#backends.get(name) ?? new Hour()
    this.#backends.set(name, hour)
    return hour
  }

  /** Sets the current health of a backend. */
  noteHealth(backend: string, health: Health): void {
    if (!this.#transitions.has(backend) && this.#transitions.size >= maxBackends) return
    const list = this.#transitions.get(backend) ?? []
    list.push({ at: this.#now(), health })
    if (list.length > maxTransitions) list.shift()
    this.#transitions.set(backend, list)
  }

  /** Removes backends that no longer exist. */
  forget(backends: readonly string[]): void {
    for (const backend of backends) {
      this.#backends.delete(backend)
      this.#transitions.delete(backend)
    }
  }

  /** Returns the counters of the last hour, oldest minute first, for one backend or the whole server. */
  minutes(backend?: string): readonly Minute[] {
    const hour = backend === undefined ? this.#all : this.#backends.get(backend)
    const last = Math.floor(this.#now() / minuteMs)
    return Array.from({ length: minutes }, (_, i) => {
      const minute = last - minutes + 1 + i
      const counts = hour?.at(minute)
      return {
        at: iso(minute * minuteMs),
        calls: counts?.[callsAt] ?? 0,
        failed: counts?.[failedAt] ?? 0,
        denied: counts?.[deniedAt] ?? 0,
        ...given('p95', counts && percentile(counts, 0.95)),
        ...given('health', backend === undefined ? undefined : this.#healthIn(backend, minute)),
      }
    })
  }

  /** Returns the totals for the last hour. */
  totals(): Totals {
    const sum = new Uint32Array(width)
    const last = Math.floor(this.#now() / minuteMs)
    for (let minute = last - minutes + 1; minute <= last; minute++)
      for (const [i, count] of this.#all.at(minute)?.entries() ?? []) sum[i]! += count
    return {
      calls: sum[callsAt] ?? 0,
      failed: sum[failedAt] ?? 0,
      denied: sum[deniedAt] ?? 0,
      ...given('p50', percentile(sum, 0.5)),
      ...given('p95', percentile(sum, 0.95)),
    }
  }

  /** Returns the worst health within a minute, or undefined before the first report. */
  #healthIn(backend: string, minute: number): Health | undefined {
    const list = this.#transitions.get(backend) ?? []
    const start = minute * minuteMs
    const before = list.findLast(({ at }) => at < start)
    const within = list.filter(({ at }) => at >= start && at < start + minuteMs)
    return [...(before ? [before] : []), ...within]
      .map(({ health }) => health)
      .reduce<Health | undefined>(
        (a, b) => (a !== undefined && severity.indexOf(a) > severity.indexOf(b) ? a : b),
        undefined,
      )
  }
}

/** Returns the upper bound of the bin that contains the percentile, or undefined when there were no calls. */
function percentile(counts: Uint32Array, share: number): number | undefined {
  const total = counts[callsAt] ?? 0
  if (total === 0) return undefined
  let seen = 0
  const bin = boundsMs.findIndex((_, i) => (seen += counts[i] ?? 0) >= total * share)
  return boundsMs[bin] ?? boundsMs.at(-1)
}
