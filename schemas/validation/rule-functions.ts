/**
 * What the compiled CEL rules (`schemas/generated/rules.ts`) are made of: CEL's operators and functions, as far as rules use
 * them, on plain values.
 *
 * A number is a CEL double, a bigint an int, a Map a map, an array a list. What CEL calls an error is thrown; `&&`, `||`,
 * `all` and `exists` give a result beside an error where CEL does.
 * Source: cel-spec, "Evaluation"; test/property/compiled-rules holds them against the CEL library.
 */
import { parseDuration } from '../duration.ts'

class Duration {
  readonly ms: number

  constructor(ms: number) {
    this.ms = ms
  }
}

type Operand = () => unknown

export function and(...operands: readonly Operand[]): boolean {
  return !or(...operands.map((operand) => () => not(operand())))
}

/** Throws when no operand is true, and one is no bool or throws itself. */
export function or(...operands: readonly Operand[]): boolean {
  let failure: unknown
  let failed = false
  for (const operand of operands) {
    try {
      const value = operand()
      if (value === true) return true
      if (value === false) continue
      failure = new TypeError('a condition is a bool')
    } catch (error) {
      failure = error
    }
    failed = true
  }
  if (failed) throw failure
  return false
}

export function not(value: unknown): boolean {
  if (typeof value !== 'boolean') throw new TypeError('! takes a bool')
  return !value
}

export function exists(range: unknown, predicate: (item: unknown) => unknown): boolean {
  return or(...itemsOf(range).map((item) => () => predicate(item)))
}

export function all(range: unknown, predicate: (item: unknown) => unknown): boolean {
  return and(...itemsOf(range).map((item) => () => predicate(item)))
}

/** `map.field`; throws when there is none. */
export function select(map: unknown, field: string): unknown {
  if (!(map instanceof Map) || !map.has(field)) throw new TypeError(`no such field: ${field}`)
  return map.get(field)
}

/** `has(map.field)` */
export function has(map: unknown, field: string): boolean {
  return map instanceof Map && map.has(field)
}

/** Numbers are compared across types; values of different types are not equal. */
export function equal(a: unknown, b: unknown): boolean {
  if (isNumber(a) && isNumber(b)) return compareNumbers(a, b) === 0
  if (a instanceof Duration && b instanceof Duration) return a.ms === b.ms
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((item, i) => equal(item, b[i]))
  if (a instanceof Map && b instanceof Map) {
    return a.size === b.size && [...a].every(([key, item]) => b.has(key) && equal(item, b.get(key)))
  }
  return a === b
}

export function notEqual(a: unknown, b: unknown): boolean {
  return !equal(a, b)
}

export function less(a: unknown, b: unknown): boolean {
  return order(a, b) < 0
}

export function lessOrEqual(a: unknown, b: unknown): boolean {
  return order(a, b) <= 0
}

export function greater(a: unknown, b: unknown): boolean {
  return order(a, b) > 0
}

export function greaterOrEqual(a: unknown, b: unknown): boolean {
  return order(a, b) >= 0
}

/** `item in range` */
export function isIn(item: unknown, range: unknown): boolean {
  if (range instanceof Map) {
    if (typeof item === 'object') throw new TypeError('a key is a scalar')
    return range.has(item)
  }
  if (!Array.isArray(range)) throw new TypeError('in takes a list or a map')
  return range.some((one) => equal(one, item))
}

export function size(value: unknown): bigint {
  if (typeof value === 'string') return BigInt(Array.from(value).length)
  if (Array.isArray(value)) return BigInt(value.length)
  if (value instanceof Map) return BigInt(value.size)
  throw new TypeError('size takes a string, a list or a map')
}

export function startsWith(text: unknown, start: unknown): boolean {
  return string(text).startsWith(string(start))
}

export function matches(text: unknown, pattern: RegExp): boolean {
  return pattern.test(string(text))
}

/** A text such as `1h30m`, or whole seconds. */
export function duration(value: unknown): Duration {
  if (typeof value === 'bigint') return new Duration(Number(value) * 1_000)
  const [, sign, text = ''] = /^([+-]?)([^]*)$/.exec(string(value)) ?? []
  const ms = text === '' || text === '0' ? 0 : parseDuration(text)
  return new Duration(sign === '-' ? -ms : ms)
}

export function double(value: unknown): number {
  if (!isNumber(value) && typeof value !== 'string') throw new TypeError('double takes a number or a text')
  return Number(value)
}

function itemsOf(range: unknown): readonly unknown[] {
  if (Array.isArray(range)) return range
  if (range instanceof Map) return [...range.keys()]
  throw new TypeError('a loop takes a list or a map')
}

function isNumber(value: unknown): value is number | bigint {
  return typeof value === 'number' || typeof value === 'bigint'
}

/** Below zero, zero, above zero; NaN for NaN. */
function order(a: unknown, b: unknown): number {
  if (isNumber(a) && isNumber(b)) return compareNumbers(a, b)
  if (a instanceof Duration && b instanceof Duration) return a.ms - b.ms
  if (typeof a === 'string' && typeof b === 'string') return a < b ? -1 : Number(a > b)
  if (typeof a === 'boolean' && typeof b === 'boolean') return Number(a) - Number(b)
  throw new TypeError('only numbers, texts, bools and durations are ordered')
}

function compareNumbers(a: number | bigint, b: number | bigint): number {
  if (a < b) return -1
  if (a > b) return 1
  return Number.isNaN(Number(a)) || Number.isNaN(Number(b)) ? Number.NaN : 0
}

function string(value: unknown): string {
  if (typeof value !== 'string') throw new TypeError('not a string')
  return value
}
