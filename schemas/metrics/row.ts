/** One metric: what it is called, what it counts, by which labels. */
export interface MetricRow {
  /** Name for OTLP; see prometheusName for the scraped one. */
  readonly name: string
  readonly kind: 'counter' | 'up_down_counter' | 'gauge' | 'histogram'
  /** `s` for seconds. */
  readonly unit?: string
  readonly help: string
  readonly labels: readonly string[]
  readonly legacy?: readonly string[]
  /** Upper bounds of the buckets. */
  readonly bounds?: readonly number[]
  /** Read at each scrape from whoever owns the value, and not told by events. */
  readonly observed?: boolean
}

/** The name of the scraped series: dots become underscores, seconds and counters get their suffix. */
export function prometheusName(row: MetricRow): string {
  const name = row.name.replaceAll('.', '_')
  const withUnit = row.unit === 's' ? `${name}_seconds` : name
  return row.kind === 'counter' ? `${withUnit}_total` : withUnit
}
