/**
 * Writes metrics in the text format that Prometheus scrapes, for programs that keep their own counters.
 * Source: Prometheus exposition format 0.0.4.
 */
import { type MetricRow, prometheusName } from './row.ts'

export const metricsType = 'text/plain; version=0.0.4; charset=utf-8'

export type LabelValues = Readonly<Record<string, string | number>>

export interface HistogramSample {
  readonly labels: LabelValues
  /** For each bound of the metric's row, the number of values up to that bound. */
  readonly counts: readonly number[]
  readonly sum: number
  readonly count: number
}

export type MetricSample = readonly [value: number, labels?: LabelValues]

/** Returns a counter or gauge with all its series. */
export function metricText(row: MetricRow, samples: Iterable<MetricSample>): string {
  const name = prometheusName(row)
  const lines = [...samples].map(([value, labels = {}]) => `${name}${labelText(labels)} ${value}`)
  return family(row, name, lines)
}

export function histogramText(row: MetricRow, samples: Iterable<HistogramSample>): string {
  const name = prometheusName(row)
  const lines = [...samples].flatMap(({ labels, counts, sum, count }) => [
    ...(row.bounds ?? []).map(
      (bound, i) => `${name}_bucket${labelText({ ...labels, le: bound })} ${counts[i] ?? 0}`,
    ),
    `${name}_bucket${labelText({ ...labels, le: '+Inf' })} ${count}`,
    `${name}_sum${labelText(labels)} ${sum}`,
    `${name}_count${labelText(labels)} ${count}`,
  ])
  return family(row, name, lines)
}

function family({ help, kind }: MetricRow, name: string, lines: readonly string[]): string {
  const type = kind === 'up_down_counter' ? 'gauge' : kind
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines, ''].join('\n')
}

function labelText(labels: LabelValues): string {
  const pairs = Object.entries(labels).map(
    ([name, value]) => `${name.replaceAll('.', '_')}="${escaped(value)}"`,
  )
  return pairs.length > 0 ? `{${pairs.join(',')}}` : ''
}

function escaped(value: string | number): string {
  return String(value).replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
