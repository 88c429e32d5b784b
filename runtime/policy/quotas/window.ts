/** The hours, days and months of UTC in which quotas count. */
import type { Quota } from '../../../schemas/index.ts'

export interface Period {
  /** Names it in keys; the same for all who share the counters. */
  readonly label: string
  /** The first millisecond after it. */
  readonly endMs: number
}

/** The one that `nowMs` is in. */
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
