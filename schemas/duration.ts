/**
 * Durations in resources: one or more pairs of a decimal number and a unit, such as `30s` or `1h30m`. Signs, bare
 * numbers and days are invalid.
 * Source: docs/reference/specification/external-auth.md, "Resources and their fields".
 */
import { GatehouseError } from './errors.ts'

const group = /([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|s|m|h)/gy

/** Milliseconds per unit. For small units, units per millisecond, because dividing is exact. */
const units: Readonly<Record<string, { readonly ms: number } | { readonly perMs: number }>> = {
  ns: { perMs: 1e6 },
  us: { perMs: 1e3 },
  µs: { perMs: 1e3 },
  ms: { ms: 1 },
  s: { ms: 1000 },
  m: { ms: 60_000 },
  h: { ms: 3_600_000 },
}

/** The longest accepted duration, in milliseconds: a signed 64-bit count of nanoseconds (about 292 years). */
const longestMs = 9_223_372_036_854

/**
 * Parses a duration to milliseconds (fractional below 1 ms). Throws GatehouseError INVALID_CONFIG when the text is not
 * a duration.
 */
export function parseDuration(text: string): number {
  let milliseconds = 0
  let end = 0
  group.lastIndex = 0
  for (let match = group.exec(text); match !== null; match = group.exec(text)) {
    milliseconds += inMs(Number(match[1]), match[2] ?? '')
    end = group.lastIndex
  }
  if (end === 0 || end !== text.length || milliseconds > longestMs) {
    throw new GatehouseError('INVALID_CONFIG', {
      detail: `expected a duration such as 30s or 1h30m (units ns, us, µs, ms, s, m, h), found ${lengthOf(text)}`,
    })
  }
  return milliseconds
}

/** Longest delay that a timer supports. With a longer delay, Node fires the timer after 1 ms. */
const longestTimerMs = 2 ** 31 - 1

/**
 * Returns a duration for a timer, in whole milliseconds. The result is at least 1 and at most about 24 days, because a
 * timer with a value outside this range fires immediately. Zero stays zero. Throws like parseDuration.
 */
export function timerMs(text: string): number {
  const milliseconds = parseDuration(text)
  return milliseconds === 0 ? 0 : Math.min(Math.ceil(milliseconds), longestTimerMs)
}

function inMs(count: number, name: string): number {
  const unit = units[name] ?? { ms: 0 }
  return 'ms' in unit ? count * unit.ms : count / unit.perMs
}

function lengthOf(text: string): string {
  return text === '' ? 'an empty string' : `a string of ${text.length} characters`
}

/**
 * Formats milliseconds in the shortest common notation, to the nanosecond. parseDuration returns the original number.
 */
export function formatDuration(milliseconds: number): string {
  if (!Number.isFinite(milliseconds) || milliseconds < 0 || milliseconds > longestMs) {
    throw new RangeError('expected a duration in milliseconds, from 0 to about 292 years')
  }
  let whole = Math.floor(milliseconds)
  let nanoseconds = Math.round((milliseconds - whole) * 1e6)
  if (nanoseconds === 1e6) {
    whole += 1
    nanoseconds = 0
  }
  const text =
    split(whole, [
      ['h', 3_600_000],
      ['m', 60_000],
      ['s', 1000],
      ['ms', 1],
    ]) +
    split(nanoseconds, [
      ['us', 1000],
      ['ns', 1],
    ])
  return text === '' ? '0s' : text
}

function split(amount: number, sizes: readonly (readonly [string, number])[]): string {
  let rest = amount
  let text = ''
  for (const [unit, size] of sizes) {
    const count = Math.floor(rest / size)
    if (count > 0) text += `${count}${unit}`
    rest -= count * size
  }
  return text
}
