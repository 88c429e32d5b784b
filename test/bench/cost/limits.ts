/** The limits of `make bench-check`: how much CPU time a call may take, as a multiple of another call in the same run. */
import type { Measured } from './compare.ts'

interface Limit {
  /** Name of the call that a call is compared with. */
  readonly base: string
  readonly ratio: number
}

const limits: Readonly<Record<string, Limit>> = {
  proxy: { base: 'floor', ratio: 1.7 },
  'proxy, one known RS256 token': { base: 'proxy', ratio: 1.4 },
  vMCP: { base: 'floor', ratio: 2.6 },
  'vMCP, stateless': { base: 'vMCP', ratio: 1.6 },
  '50 policies': { base: 'vMCP', ratio: 1.4 },
  'audit to a file': { base: 'vMCP', ratio: 1.7 },
  'Redis sessions': { base: 'vMCP', ratio: 1.6 },
  'Redis sessions, shared rate limit': { base: 'vMCP', ratio: 1.8 },
  all: { base: 'vMCP', ratio: 2.4 },
}

export interface Checked {
  readonly name: string
  readonly micros: number
  readonly base: string
  readonly ratio: number
  readonly limit: number
  readonly isOver: boolean
}

export function limitOf(name: string): Limit | undefined {
  return limits[name]
}

/** Compares measured calls with their limits. Omits calls without a limit or without a measured base. */
export function overLimit(measured: readonly Measured[]): readonly Checked[] {
  const microsOf = new Map(measured.map(({ name, micros }) => [name, micros]))
  return measured.flatMap(({ name, micros }) => {
    const limit = limits[name]
    if (!limit) return []
    const base = microsOf.get(limit.base)
    if (base === undefined) return []
    const ratio = micros / base
    // NaN counts as over the limit.
    return [{ name, micros, base: limit.base, ratio, limit: limit.ratio, isOver: !(ratio <= limit.ratio) }]
  })
}
