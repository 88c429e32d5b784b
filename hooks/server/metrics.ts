/**
 * The hooks server's counters and latencies, in Prometheus text format. All label values are registered kinds or fixed
 * words, so an unmanaged object cannot add series. Names come from the metrics table.
 */
import { engineFailures } from '../../schemas/cedar/index.ts'
import {
  hooksMetrics,
  type HistogramSample,
  histogramText,
  metricText,
  processText,
  type MetricSample,
} from '../../schemas/metrics/index.ts'

interface Series extends HistogramSample {
  readonly counts: number[]
  sum: number
  count: number
}

type Labels = Readonly<Record<string, string | number>>

export interface MetricsOptions {
  /** Version of this build. */
  readonly version?: string | undefined
  /** Returns the expiry of the serving certificate in milliseconds since the epoch; undefined without one. */
  readonly certificateEndsAt?: (() => number | undefined) | undefined
}

export class HookMetrics {
  readonly #options: MetricsOptions
  readonly #requests = new Map<string, [number, Labels]>()
  readonly #durations = new Map<string, Series>()
  readonly #denials = new Map<string, [number, Labels]>()
  #workerFailures = 0

  constructor(options: MetricsOptions = {}) {
    this.#options = options
  }

  /** Records a finished call. `hook` is sync, customize or validate. */
  recordCall(kind: string, hook: string, status: number, seconds: number): void {
    increment(this.#requests, { kind, hook, code: status })
    const { bounds } = hooksMetrics.hooksDuration
    const key = `${kind} ${hook}`
    const series = this.#durations.get(key) ?? {
      labels: { kind, hook },
      counts: bounds.map(() => 0),
      sum: 0,
      count: 0,
    }
    for (const [index, bound] of bounds.entries()) if (seconds <= bound) series.counts[index]! += 1
    series.sum += seconds
    series.count += 1
    this.#durations.set(key, series)
  }

  /** Records a call that was rejected before evaluation, without its duration. */
  recordRejected(kind: string, hook: string, status: number): void {
    increment(this.#requests, { kind, hook, code: status })
  }

  /** Adds the number of policy engine failures that a worker thread has reported. */
  addEngineFailures(count: number): void {
    this.#workerFailures += count
  }

  /** Records an object that admission rejected. */
  recordDenied(kind: string): void {
    increment(this.#denials, { kind })
  }

  text(): string {
    const { certificateEndsAt, version = 'dev' } = this.#options
    const endsAt = certificateEndsAt?.()
    const ends: MetricSample[] = endsAt === undefined ? [] : [[endsAt / 1_000, { certificate: 'serving' }]]
    return [
      metricText(hooksMetrics.hooksPolicyEngineFailures, [[engineFailures() + this.#workerFailures]]),
      metricText(hooksMetrics.hooksRequests, this.#requests.values()),
      metricText(hooksMetrics.hooksDenied, this.#denials.values()),
      histogramText(hooksMetrics.hooksDuration, this.#durations.values()),
      metricText(hooksMetrics.hooksCertificateExpiry, ends),
      processText(version),
    ].join('')
  }
}

function increment(map: Map<string, [number, Labels]>, labels: Labels): void {
  const key = JSON.stringify(labels)
  const known = map.get(key)
  if (known) known[0] += 1
  else map.set(key, [1, labels])
}
