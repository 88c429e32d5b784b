/**
 * Compares values for equality and order. Charges for each compared element. Cyclic or very deeply nested structures
 * cause an error.
 * Source: Starlark specification, "Comparisons".
 */
import { Bytes, Float, isInt, Range } from './scalars.ts'
import { Dict, List, type StarlarkValue, Tuple, typeOf } from './values.ts'
import { StarlarkError } from '../errors.ts'
import type { ScriptMeter } from '../vm/meter.ts'
import { compareNumbers } from './numbers.ts'

const maxDepth = 100

export function equal(x: StarlarkValue, y: StarlarkValue, meter: ScriptMeter, depth = 0): boolean {
  if (x === y && (x === null || (typeof x !== 'object' && typeof x !== 'string'))) return true
  if (typeof x === 'string' && typeof y === 'string') {
    if (x.length !== y.length) return false
    meter.search(x.length, 1)
    return x === y
  }
  if (isNumber(x)) return isNumber(y) && compareNumbers(x, y) === 0
  if (typeof x !== 'object' || typeof y !== 'object' || x === null || y === null) return false
  if (depth > maxDepth) throw tooDeep()
  if (x instanceof Tuple) return y instanceof Tuple && equalItems(x.items, y.items, meter, depth)
  if (x instanceof List) return y instanceof List && equalItems(x.items, y.items, meter, depth)
  if (x instanceof Dict) return y instanceof Dict && equalDicts(x, y, meter, depth)
  if (x instanceof Bytes) return y instanceof Bytes && x.data === y.data
  if (x instanceof Range) return y instanceof Range && equalRanges(x, y)
  return x === y
}

function isNumber(value: StarlarkValue): value is number | bigint | Float {
  return isInt(value) || value instanceof Float
}

function equalItems(
  x: readonly StarlarkValue[],
  y: readonly StarlarkValue[],
  meter: ScriptMeter,
  depth: number,
): boolean {
  if (x.length !== y.length) return false
  return x.every((item, i) => {
    meter.step(1)
    return equal(item, y[i] ?? null, meter, depth + 1)
  })
}

function equalDicts(x: Dict, y: Dict, meter: ScriptMeter, depth: number): boolean {
  if (x.size !== y.size) return false
  for (const [key, value] of x.entries()) {
    meter.step(1)
    const other = y.get(key, meter)
    if (other === undefined || !equal(value, other, meter, depth + 1)) return false
  }
  return true
}

function equalRanges(x: Range, y: Range): boolean {
  if (x.length !== y.length) return false
  return x.length === 0 || (x.start === y.start && (x.length === 1 || x.step === y.step))
}

export type Ordering = '<' | '<=' | '>' | '>='

/** Evaluates an order comparison. Throws when the values cannot be ordered. */
export function ordered(op: Ordering, x: StarlarkValue, y: StarlarkValue, meter: ScriptMeter): boolean {
  const order = compare(op, x, y, meter, 0)
  switch (op) {
    case '<':
      return order < 0
    case '<=':
      return order <= 0
    case '>':
      return order > 0
    default:
      return order >= 0
  }
}

/** Returns a negative number, zero or a positive number. Throws when the values cannot be ordered. */
function compare(
  op: Ordering,
  x: StarlarkValue,
  y: StarlarkValue,
  meter: ScriptMeter,
  depth: number,
): number {
  if (isNumber(x) && isNumber(y)) return compareNumbers(x, y)
  if (typeof x === 'string' && typeof y === 'string') {
    meter.search(Math.min(x.length, y.length), 1)
    return byOrder(x, y)
  }
  if (typeof x === 'boolean' && typeof y === 'boolean') return Number(x) - Number(y)
  if (x instanceof Bytes && y instanceof Bytes) return byOrder(x.data, y.data)
  const both = (x instanceof List && y instanceof List) || (x instanceof Tuple && y instanceof Tuple)
  if (!both) throw new StarlarkError(`${typeOf(x)} ${op} ${typeOf(y)} not implemented`)
  if (depth > maxDepth) throw tooDeep()
  for (const [i, item] of x.items.entries()) {
    const other = y.items[i]
    if (other === undefined) return 1
    meter.step(1)
    if (!equal(item, other, meter, depth + 1)) return compare(op, item, other, meter, depth + 1)
  }
  return x.items.length - y.items.length
}

function byOrder(x: string, y: string): number {
  return x < y ? -1 : x > y ? 1 : 0
}

function tooDeep(): StarlarkError {
  return new StarlarkError('comparison exceeded maximum recursion depth')
}
