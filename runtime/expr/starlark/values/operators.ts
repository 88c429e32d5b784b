/** Binary and unary operators. Source: Starlark specification, "Binary operators", "Unary operators". */
import { type Operator, unaryOperators } from '../compiler/code.ts'
import { equal, ordered } from './compare.ts'
import { Bytes, Float, isInt, Range, TextView } from './scalars.ts'
import { Dict, List, type StarlarkValue, Tuple, typeOf } from './values.ts'
import { StarlarkError } from '../errors.ts'
import { interpolate } from '../builtins/interpolate.ts'
import { elementsOf, isSequence } from './iterate.ts'
import { type ScriptMeter, sizeOf } from '../vm/meter.ts'
import { arithmetic, bits, unary as negate } from './numbers.ts'

const maxRepeated = 2 ** 30

/** Evaluates a binary operator. Throws when the operands do not support the operator. */
export function binary(op: Operator, x: StarlarkValue, y: StarlarkValue, meter: ScriptMeter): StarlarkValue {
  switch (op) {
    case '==':
      return equal(x, y, meter)
    case '!=':
      return !equal(x, y, meter)
    case '<':
    case '<=':
    case '>':
    case '>=':
      return ordered(op, x, y, meter)
    case 'in':
      return contains(x, y, meter)
    case 'not in':
      return !contains(x, y, meter)
    default: {
      const result = combine(op, x, y, meter)
      if (result instanceof Float) meter.allocate(sizeOf.float)
      if (result !== undefined) return result
      throw new StarlarkError(`unknown binary op: ${typeOf(x)} ${op} ${typeOf(y)}`)
    }
  }
}

type Combining = Exclude<Operator, '==' | '!=' | '<' | '<=' | '>' | '>=' | 'in' | 'not in'>

function combine(
  op: Combining,
  x: StarlarkValue,
  y: StarlarkValue,
  meter: ScriptMeter,
): StarlarkValue | undefined {
  chargeInts(x, y, meter)
  switch (op) {
    case '+':
      return arithmetic(op, x, y) ?? concatenate(x, y, meter)
    case '*':
      return arithmetic(op, x, y) ?? repeat(x, y, meter)
    case '%':
      return typeof x === 'string' ? interpolate(x, y, meter) : arithmetic(op, x, y)
    case '-':
    case '/':
    case '//':
      return arithmetic(op, x, y)
    default:
      if (op === '|' && x instanceof Dict && y instanceof Dict) return union(x, y, meter)
      return bits(op, x, y)
  }
}

/** Charges for operations on large ints, which take time and space. */
function chargeInts(x: StarlarkValue, y: StarlarkValue, meter: ScriptMeter): void {
  if (typeof x !== 'bigint' && typeof y !== 'bigint') return
  const digits = (value: StarlarkValue): number => (typeof value === 'bigint' ? value.toString(16).length : 1)
  const [a, b] = [digits(x), digits(y)]
  meter.allocate((a + b) / 2)
  meter.step(Math.floor((a * b) / 10_000))
}

function union(x: Dict, y: Dict, meter: ScriptMeter): Dict {
  const made = x.copy(meter)
  merge(made, y, meter)
  return made
}

function merge(into: Dict, from: Dict, meter: ScriptMeter): void {
  meter.step(from.size)
  for (const [key, value] of from.entries()) into.set(key, value, meter)
}

/** Evaluates `+` for sequences. */
function concatenate(x: StarlarkValue, y: StarlarkValue, meter: ScriptMeter): StarlarkValue | undefined {
  if (typeof x === 'string' && typeof y === 'string') {
    meter.joined(x.length, y.length)
    return x + y
  }
  if (x instanceof Bytes && y instanceof Bytes) {
    meter.joined(x.data.length, y.data.length)
    return new Bytes(x.data + y.data)
  }
  const isList = x instanceof List && y instanceof List
  if (!isList && !(x instanceof Tuple && y instanceof Tuple)) return undefined
  meter.elements(x.items.length + y.items.length)
  const items = [...x.items, ...y.items]
  return isList ? new List(items) : new Tuple(items)
}

/** Evaluates `*` for a sequence and an int, in either order. */
function repeat(x: StarlarkValue, y: StarlarkValue, meter: ScriptMeter): StarlarkValue | undefined {
  const [sequence, count] = isInt(x) ? [y, x] : [x, y]
  if (!isInt(count)) return undefined
  if (typeof sequence === 'string') return repeatText(sequence, count, meter)
  if (sequence instanceof Bytes) return new Bytes(repeatText(sequence.data, count, meter))
  if (!(sequence instanceof List || sequence instanceof Tuple)) return undefined
  const times = timesOf(sequence.items.length, count)
  meter.elements(sequence.items.length * times)
  const items: StarlarkValue[] = []
  for (let i = 0; i < times; i++) for (const item of sequence.items) items.push(item)
  return sequence instanceof List ? new List(items) : new Tuple(items)
}

function repeatText(text: string, count: number | bigint, meter: ScriptMeter): string {
  const times = timesOf(text.length, count)
  meter.text(text.length * times)
  return text.repeat(times)
}

function timesOf(length: number, count: number | bigint): number {
  if (count <= 0 || length === 0) return 0
  if (count > maxRepeated) throw new StarlarkError(`repeat count ${count} too large`)
  const times = Number(count)
  if (length * times > maxRepeated)
    throw new StarlarkError(`excessive repeat (${length} * ${times} elements)`)
  return times
}

/** Evaluates `x in y`. */
function contains(x: StarlarkValue, y: StarlarkValue, meter: ScriptMeter): boolean {
  if (typeof y === 'string') {
    if (typeof x !== 'string')
      throw new StarlarkError(`'in <string>' requires string as left operand, not ${typeOf(x)}`)
    meter.search(y.length, x.length)
    return y.includes(x)
  }
  if (y instanceof List || y instanceof Tuple)
    return y.items.some((item) => counted(meter) && equal(item, x, meter))
  if (y instanceof Dict) return inDict(x, y, meter)
  if (y instanceof Range) return inRange(x, y)
  if (y instanceof Bytes) return inBytes(x, y, meter)
  if (y instanceof TextView) return elementsOf(y, meter, 'in').some((item) => equal(item, x, meter))
  throw new StarlarkError(`unknown binary op: ${typeOf(x)} in ${typeOf(y)}`)
}

function counted(meter: ScriptMeter): true {
  meter.step(1)
  return true
}

/** Returns false, because a dict cannot contain an unhashable value. */
function inDict(x: StarlarkValue, dict: Dict, meter: ScriptMeter): boolean {
  if (x instanceof List || x instanceof Dict || x instanceof Range) return false
  return dict.get(x, meter) !== undefined
}

function inRange(x: StarlarkValue, { start, step, length }: Range): boolean {
  if (!isInt(x) && !(x instanceof Float))
    throw new StarlarkError(`'in <range>' requires integer as left operand, not ${typeOf(x)}`)
  const value = x instanceof Float ? x.value : x
  if (typeof value === 'bigint' || !Number.isSafeInteger(value)) return false
  const index = (value - start) / step
  return Number.isInteger(index) && index >= 0 && index < length
}

function inBytes(x: StarlarkValue, { data }: Bytes, meter: ScriptMeter): boolean {
  if (x instanceof Bytes) {
    meter.search(data.length, x.data.length)
    return data.includes(x.data)
  }
  if (!isInt(x)) throw new StarlarkError(`'in bytes' requires bytes or int as left operand, not ${typeOf(x)}`)
  if (x < 0 || x > 255)
    throw new StarlarkError(`int in bytes: ${x} out of range (want value in unsigned 8-bit range)`)
  meter.search(data.length, 1)
  return data.includes(String.fromCharCode(Number(x)))
}

/** Evaluates `x op= y`. Modifies the list or dict on the left in place. */
export function inPlace(op: Operator, x: StarlarkValue, y: StarlarkValue, meter: ScriptMeter): StarlarkValue {
  if (op === '+' && x instanceof List && isSequence(y)) {
    const items = elementsOf(y, meter, '+=')
    const own = x.writable('apply += to')
    for (const item of items) own.push(item)
    return x
  }
  if (op === '|' && x instanceof Dict && y instanceof Dict) {
    merge(x, y, meter)
    return x
  }
  return binary(op, x, y, meter)
}

export function unary(
  op: (typeof unaryOperators)[number],
  x: StarlarkValue,
  meter: ScriptMeter,
): StarlarkValue {
  chargeInts(x, 0, meter)
  const result = negate(op, x)
  if (result === undefined) throw new StarlarkError(`unknown unary op: ${op} ${typeOf(x)}`)
  return result
}
