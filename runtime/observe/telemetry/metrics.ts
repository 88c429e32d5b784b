/**
 * One function for each row of the metric table: `metrics.mcpRequests(1, { server, … })`. Counters add, gauges and
 * histograms record.
 *
 * Only the labels of the row get through, cut to 128 bytes; labels that are undefined are left out. Numbers of series
 * are bounded by the SDK (2000 for each metric, the rest is counted together).
 */
import type { Meter } from '@opentelemetry/api'
import { cutBytes } from '../text.ts'
import { type MetricName, type MetricRow, METRICS } from './metric-table.ts'

export type Labels<M extends MetricName> = {
  readonly [L in (typeof METRICS)[M]['labels'][number]]?: string | number | boolean | undefined
}

export type Metrics = {
  readonly [M in MetricName]: (value: number, labels: Labels<M>) => void
}

type Recorder = (value: number, labels: Readonly<Record<string, unknown>>) => void

const MAX_LABEL_BYTES = 128

export const noMetrics: Metrics = table(() => () => {})

/** `legacy` false leaves out labels that double others under older names. */
export function makeMetrics(meter: Meter, legacy: boolean): Metrics {
  return table((row) => {
    const record = instrument(meter, row)
    const names = legacy ? row.labels : row.labels.filter((name) => row.legacy?.includes(name) !== true)
    return (value, labels) => {
      const attributes: Record<string, string> = {}
      for (const name of names) {
        const label = labels[name]
        if (typeof label === 'string') attributes[name] = cutBytes(label, MAX_LABEL_BYTES)
        else if (typeof label === 'number' || typeof label === 'boolean') attributes[name] = String(label)
      }
      record(value, attributes)
    }
  })
}

function table(make: (row: MetricRow) => Recorder): Metrics {
  const entries = Object.entries(METRICS).map(([name, row]) => [name, make(row)] as const)
  return Object.fromEntries(entries) as Metrics
}

function instrument(
  meter: Meter,
  row: MetricRow,
): (value: number, attributes: Record<string, string>) => void {
  const options = {
    description: row.help,
    ...(row.unit === undefined ? {} : { unit: row.unit }),
    ...(row.bounds ? { advice: { explicitBucketBoundaries: [...row.bounds] } } : {}),
  }
  switch (row.kind) {
    case 'counter': {
      const counter = meter.createCounter(row.name, options)
      return (value, attributes) => counter.add(value, attributes)
    }
    case 'up_down_counter': {
      const counter = meter.createUpDownCounter(row.name, options)
      return (value, attributes) => counter.add(value, attributes)
    }
    case 'gauge': {
      const gauge = meter.createGauge(row.name, options)
      return (value, attributes) => gauge.record(value, attributes)
    }
    default: {
      const histogram = meter.createHistogram(row.name, options)
      return (value, attributes) => histogram.record(value, attributes)
    }
  }
}
