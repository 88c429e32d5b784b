/** The UTC hours, days and months in which quotas are counted. */
import type { Quota } from '../../../schemas/index.ts'

export interface Period {
  /** Name of the period in keys, identical for all processes that share the counters. */
  readonly label: string
  /** First millisecond after the period. */
  readonly endMs: number
}

/** Returns the period that contains `nowMs`. */
export function periodOf(window: Quota['window'], nowMs: number): Period {
  const at = new Date(nowMs)
  const [year, month, day] = [at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate()]
  const iso = at.toISOString()
  switch (window) {
    case 'hour':
      return { label: iso.slice(0, 13), endMs: Date.UTC(year, month, day, at.getUTCHours() + 1) }
    case 'day':
      return { label: iso.slice(0, 10), endMs: Date.UTC(year, month, day + 1) }
    default:
      return { label: iso.slice(0, 7), endMs: Date.UTC(year, month + 1) }
  }
}
