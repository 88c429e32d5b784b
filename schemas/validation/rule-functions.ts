/**
 * Runtime functions of the compiled CEL rules (`schemas/generated/rules.ts`): the CEL operators and functions that the
 * rules use, on plain values.
 *
 * A number is a CEL double, a bigint is an int, a Map is a map, and an array is a list. The functions throw CEL errors.
 * As in CEL, `&&`, `||`, `all` and `exists` can return a result despite an error in an operand.
 * Source: cel-spec, "Evaluation"; test/property/compiled-rules compares them with the CEL library.
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

/** Returns true if any operand is true. Otherwise, throws if an operand throws or is not a bool. */
export function or(...operands: readonly Operand[]): boolean {
  let failure: unknown
  let failed = false
  for (const operand of operands) {
    try {
      const value = operand()
      if (value === true) return true
      if (value === false) continue
      failure = new TypeError('expected a bool as the condition')
    } catch (error) {
      failure = error
    }
    failed = true
  }
  if (failed) throw failure
  return false
}

export function not(value: unknown): boolean {
  if (typeof value !== 'boolean') throw new TypeError('! expects a bool')
  return !value
}

export function exists(range: unknown, predicate: (item: unknown) => unknown): boolean {
  return or(...itemsOf(range).map((item) => () => predicate(item)))
}

export function all(range: unknown, predicate: (item: unknown) => unknown): boolean {
  return and(...itemsOf(range).map((item) => () => predicate(item)))
}

/** Implements `map.field`. Throws when the field is missing. */
export function select(map: unknown, field: string): unknown {
  if (!(map instanceof Map) || !map.has(field)) throw new TypeError(`no such field: ${field}`)
  return map.get(field)
}

/** Implements `has(map.field)`. */
export function has(map: unknown, field: string): boolean {
  return map instanceof Map && map.has(field)
}

/** Compares numbers across types. Other values of different types are not equal. */
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

/** Implements `item in range`. */
export function isIn(item: unknown, range: unknown): boolean {
  if (range instanceof Map) {
    if (typeof item === 'object') throw new TypeError('expected a scalar as key')
    return range.has(item)
  }
  if (!Array.isArray(range)) throw new TypeError('in expects a list or a map')
  return range.some((one) => equal(one, item))
}

export function size(value: unknown): bigint {
  if (typeof value === 'string') return BigInt(Array.from(value).length)
  if (Array.isArray(value)) return BigInt(value.length)
  if (value instanceof Map) return BigInt(value.size)
  throw new TypeError('size expects a string, a list or a map')
}

export function startsWith(text: unknown, start: unknown): boolean {
  return string(text).startsWith(string(start))
}

export function matches(text: unknown, pattern: RegExp): boolean {
  return pattern.test(string(text))
}

/** Converts a string such as `1h30m` or a number of whole seconds. */
export function duration(value: unknown): Duration {
  if (typeof value === 'bigint') return new Duration(Number(value) * 1_000)
  const [, sign, text = ''] = /^([+-]?)([^]*)$/.exec(string(value)) ?? []
  const ms = text === '' || text === '0' ? 0 : parseDuration(text)
  return new Duration(sign === '-' ? -ms : ms)
}

export function double(value: unknown): number {
  if (!isNumber(value) && typeof value !== 'string')
    throw new TypeError('double expects a number or a string')
  return Number(value)
}

function itemsOf(range: unknown): readonly unknown[] {
  if (Array.isArray(range)) return range
  if (range instanceof Map) return [...range.keys()]
  throw new TypeError('expected a list or a map to loop over')
}

function isNumber(value: unknown): value is number | bigint {
  return typeof value === 'number' || typeof value === 'bigint'
}

/** Returns a number below, equal to or above zero; NaN when an operand is NaN. */
function order(a: unknown, b: unknown): number {
  if (isNumber(a) && isNumber(b)) return compareNumbers(a, b)
  if (a instanceof Duration && b instanceof Duration) return a.ms - b.ms
  if (typeof a === 'string' && typeof b === 'string') return a < b ? -1 : Number(a > b)
  if (typeof a === 'boolean' && typeof b === 'boolean') return Number(a) - Number(b)
  throw new TypeError('only numbers, strings, bools and durations can be compared')
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
