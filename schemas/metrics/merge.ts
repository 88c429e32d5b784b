/**
 * Merges the metrics from several processes of one server into one page. Counters and histograms are summed, including
 * the last values of exited processes, because a counter must not decrease. Gauges that measure an amount are summed.
 * For other gauges, the page shows the maximum value; for times, it shows the minimum.
 * Source: Prometheus exposition format 0.0.4.
 */
import { processMetrics } from './programs.ts'
import { type MetricRow, prometheusName } from './row.ts'
import { serverMetrics } from './server.ts'

type Rule = 'sum' | 'greatest' | 'least'

interface Family {
  readonly rule: Rule
  readonly isCounted: boolean
  /** The lines that precede the first value. */
  readonly head: string
  /** Values, keyed by name and labels, in the order of the page. */
  readonly series: Map<string, number>
}

type Page = Map<string, Family>

const summed: readonly MetricRow[] = [
  ...Object.values(serverMetrics).filter(({ kind }) => kind === 'up_down_counter'),
  serverMetrics.sessions,
  processMetrics.processMemory,
  processMetrics.processFiles,
]
const gaugeRules: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ...summed.map((row): [string, Rule] => [prometheusName(row), 'sum']),
  [prometheusName(processMetrics.processStart), 'least'],
  [prometheusName(serverMetrics.certificateExpiry), 'least'],
])

export class MergedPages {
  #last: ReadonlyMap<string, Page> = new Map()
  /** Counts from exited processes. */
  readonly #gone: Page = new Map()

  /**
   * Returns the merged page. `texts` contains the pages, keyed by process. A process keeps its key across calls.
   * Callers never reuse keys.
   */
  render(texts: ReadonlyMap<string, string>): string {
    const pages = new Map([...texts].map(([id, text]) => [id, read(text)]))
    for (const [id, page] of this.#last)
      if (!pages.has(id)) add(this.#gone, page, ({ isCounted }) => isCounted)
    this.#last = pages
    const merged: Page = new Map()
    add(merged, this.#gone)
    for (const page of pages.values()) add(merged, page)
    return [...merged.values()]
      .map(
        ({ head, series }) => head + [...series].map(([name, value]) => `${name} ${text(value)}\n`).join(''),
      )
      .join('')
  }
}

function add(to: Page, page: Page, takes: (family: Family) => boolean = () => true): void {
  for (const [name, family] of page) {
    if (!takes(family)) continue
    const known = to.get(name) ?? { ...family, series: new Map<string, number>() }
    to.set(name, known)
    for (const [of, value] of family.series) {
      const before = known.series.get(of)
      known.series.set(of, before === undefined ? value : combined(family.rule, before, value))
    }
  }
}

function combined(rule: Rule, a: number, b: number): number {
  if (rule === 'sum') return a + b
  return rule === 'greatest' ? Math.max(a, b) : Math.min(a, b)
}

/** Parses a page. Skips lines that are neither a value nor a comment about a metric family. */
function read(page: string): Page {
  const families: Page = new Map()
  let head = ''
  let current: Family | undefined
  for (const line of page.split('\n')) {
    const [, name, kind] = /^# TYPE (\S+) (\S+)/.exec(line) ?? []
    if (name !== undefined) {
      const isCounted = kind === 'counter' || kind === 'histogram'
      const rule = isCounted ? 'sum' : (gaugeRules.get(name) ?? 'greatest')
      current = { rule, isCounted, head: `${head}${line}\n`, series: new Map() }
      families.set(name, current)
      head = ''
    } else if (line.startsWith('#')) head += `${line}\n`
    else {
      const at = line.lastIndexOf(' ')
      if (at > 0) current?.series.set(line.slice(0, at), number(line.slice(at + 1)))
    }
  }
  return families
}

function number(value: string): number {
  return value.endsWith('Inf') ? (value.startsWith('-') ? -1 : 1) * Number.POSITIVE_INFINITY : Number(value)
}

function text(value: number): string {
  return Math.abs(value) === Number.POSITIVE_INFINITY ? (value < 0 ? '-Inf' : '+Inf') : String(value)
}
