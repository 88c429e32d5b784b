/**
 * One function for each row of the metric table: `metrics.mcpRequests(1, { server, … })`. Functions for counters add a
 * value, and functions for gauges and histograms record a value. An observed row has a function that each scrape calls.
 *
 * A metric has only the labels of its row, truncated to 128 bytes and without undefined labels. The SDK limits the
 * number of series to 2000 per metric; any further series are combined into one.
 */
import type { Meter, MetricOptions } from '@opentelemetry/api'
import { logMetrics, type MetricRow, processMetrics, serverMetrics } from '../../../schemas/metrics/index.ts'
import { cutBytes } from '../redact.ts'

const allMetrics = { ...serverMetrics, ...logMetrics, ...processMetrics }
type Table = typeof allMetrics
export type MetricName = keyof Table

type ObservedName = { [M in MetricName]: Table[M] extends { observed: true } ? M : never }[MetricName]
type RecordedName = Exclude<MetricName, ObservedName>

export type MetricLabels<M extends MetricName> = {
  readonly [L in Table[M]['labels'][number]]?: string | number | boolean | undefined
}

/** Returns the value. Each scrape calls this function. */
export type Read<M extends MetricName> = () => Iterable<readonly [value: number, labels?: MetricLabels<M>]>

export type Metrics = {
  readonly [M in RecordedName]: (value: number, labels: MetricLabels<M>) => void
} & {
  readonly [M in ObservedName]: (read: Read<M>) => void
}

type Values = Readonly<Record<string, unknown>>
type AnyRead = () => Iterable<readonly [number, Values?]>

const maxLabelBytes = 128

export const noMetrics: Metrics = table(() => () => {})

/** If `legacy` is false, omits labels with older names. */
export function makeMetrics(meter: Meter, legacy: boolean): Metrics {
  return table((row) => {
    const names = legacy ? row.labels : row.labels.filter((name) => row.legacy?.includes(name) !== true)
    const attributesOf = (labels: Values): Record<string, string> => attributes(names, labels)
    if (row.observed) return observer(meter, row, attributesOf)
    const record = instrument(meter, row)
    return (value: number, labels: Values) => record(value, attributesOf(labels))
  })
}

function attributes(names: readonly string[], labels: Values): Record<string, string> {
  const result: Record<string, string> = {}
  for (const name of names) {
    const label = labels[name]
    if (typeof label === 'string') result[name] = cutBytes(label, maxLabelBytes)
    else if (typeof label === 'number' || typeof label === 'boolean') result[name] = String(label)
  }
  return result
}

type Recorder = ((value: number, labels: Values) => void) | ((read: AnyRead) => void)

function table(make: (row: MetricRow) => Recorder): Metrics {
  const entries = Object.entries(allMetrics).map(([name, row]) => [name, make(row)] as const)
  return Object.fromEntries(entries) as unknown as Metrics
}

function optionsOf(row: MetricRow): MetricOptions {
  return {
    description: row.help,
    ...(row.unit === undefined ? {} : { unit: row.unit }),
    ...(row.bounds ? { advice: { explicitBucketBoundaries: [...row.bounds] } } : {}),
  }
}

function observer(
  meter: Meter,
  row: MetricRow,
  attributesOf: (labels: Values) => Record<string, string>,
): (read: AnyRead) => void {
  return (read) => {
    const options = optionsOf(row)
    const made =
      row.kind === 'counter'
        ? meter.createObservableCounter(row.name, options)
        : meter.createObservableGauge(row.name, options)
    made.addCallback((result) => {
      for (const [value, labels = {}] of read()) result.observe(value, attributesOf(labels))
    })
  }
}

function instrument(
  meter: Meter,
  row: MetricRow,
): (value: number, attributes: Record<string, string>) => void {
  const options = optionsOf(row)
  switch (row.kind) {
    case 'counter': {
      const counter = meter.createCounter(row.name, options)
      return (value, labels) => counter.add(value, labels)
    }
    case 'up_down_counter': {
      const counter = meter.createUpDownCounter(row.name, options)
      return (value, labels) => counter.add(value, labels)
    }
    case 'gauge': {
      const gauge = meter.createGauge(row.name, options)
      return (value, labels) => gauge.record(value, labels)
    }
    default: {
      const histogram = meter.createHistogram(row.name, options)
      return (value, labels) => histogram.record(value, labels)
    }
  }
}
