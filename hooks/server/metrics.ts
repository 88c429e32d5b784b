/**
 * Counters and latencies of the hook server, in Prometheus text format. Labels come from the registry and from fixed
 * words only, so an unmanaged object cannot make the table grow.
 */
import { engineFailures } from '../../schemas/cedar/index.ts'

const bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const

interface Series {
  readonly buckets: number[]
  sum: number
  count: number
}

export class Metrics {
  readonly #requests = new Map<string, number>()
  readonly #durations = new Map<string, Series>()
  readonly #denials = new Map<string, number>()
  #workerFailures = 0

  /** One finished call; `hook` is sync, customize or validate. */
  record(kind: string, hook: string, status: number, seconds: number): void {
    increment(this.#requests, `kind="${kind}",hook="${hook}",code="${status}"`)
    const key = `kind="${kind}",hook="${hook}"`
    const series = this.#durations.get(key) ?? { buckets: bounds.map(() => 0), sum: 0, count: 0 }
    for (const [index, bound] of bounds.entries()) if (seconds <= bound) series.buckets[index]! += 1
    series.sum += seconds
    series.count += 1
    this.#durations.set(key, series)
  }

  /** Failures of the policy engine in a worker thread, which has one of its own. */
  engineFailed(count: number): void {
    this.#workerFailures += count
  }

  /** One object that admission refused. */
  denied(kind: string): void {
    increment(this.#denials, `kind="${kind}"`)
  }

  text(): string {
    return [
      ...header(
        'gatehouse_hooks_policy_engine_failures_total',
        'counter',
        'Failures of the policy engine; it is replaced each time',
      ),
      `gatehouse_hooks_policy_engine_failures_total ${engineFailures() + this.#workerFailures}`,
      ...header('gatehouse_hooks_requests_total', 'counter', 'Hook calls answered'),
      ...[...this.#requests].map(([labels, value]) => `gatehouse_hooks_requests_total{${labels}} ${value}`),
      ...header('gatehouse_hooks_admission_denied_total', 'counter', 'Objects refused by admission'),
      ...[...this.#denials].map(
        ([labels, value]) => `gatehouse_hooks_admission_denied_total{${labels}} ${value}`,
      ),
      ...header('gatehouse_hooks_request_duration_seconds', 'histogram', 'Time to answer a hook call'),
      ...[...this.#durations].flatMap(([labels, series]) => histogram(labels, series)),
      '',
    ].join('\n')
  }
}

function increment(map: Map<string, number>, key: string): void {
  map.set(key, (map.get(key) ?? 0) + 1)
}

function header(name: string, type: string, help: string): string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`]
}

function histogram(labels: string, series: Series): string[] {
  const name = 'gatehouse_hooks_request_duration_seconds'
  return [
    ...bounds.map((bound, index) => `${name}_bucket{${labels},le="${bound}"} ${series.buckets[index]}`),
    `${name}_bucket{${labels},le="+Inf"} ${series.count}`,
    `${name}_sum{${labels}} ${series.sum}`,
    `${name}_count{${labels}} ${series.count}`,
  ]
}
