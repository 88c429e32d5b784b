/** A metric: its name, meaning and labels. */
export interface MetricRow {
  /** Name for OTLP. See prometheusName for the name in a scrape. */
  readonly name: string
  readonly kind: 'counter' | 'up_down_counter' | 'gauge' | 'histogram'
  /** Unit of the value; `s` for seconds. */
  readonly unit?: string
  readonly help: string
  readonly labels: readonly string[]
  readonly legacy?: readonly string[]
  /** The buckets' upper bounds. */
  readonly bounds?: readonly number[]
  /**
   * True when each scrape reads the current value from the component that owns it. Otherwise, events update the value.
   */
  readonly observed?: boolean
}

/** Returns the name of the scraped series: dots become underscores, and names for seconds and counters get a suffix. */
export function prometheusName(row: MetricRow): string {
  const name = row.name.replaceAll('.', '_')
  const withUnit = row.unit === 's' ? `${name}_seconds` : name
  return row.kind === 'counter' ? `${withUnit}_total` : withUnit
}

/** Upper bounds, in seconds. */
export const durationBounds: readonly number[] = [
  0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300,
]

export const seconds = { kind: 'histogram', unit: 's', bounds: durationBounds } as const
