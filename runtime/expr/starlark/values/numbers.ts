/**
 * Arithmetic. Ints are exact up to a bound that keeps single operations short. `/` returns a float; `//` and `%` round
 * toward negative infinity. Floats are totally ordered: nan equals itself and is greater than all other floats.
 * Source: Starlark specification, "Integers", "Floating-point numbers".
 */
import { StarlarkError } from '../errors.ts'
import { Float, type Int, isInt } from './scalars.ts'
import { type StarlarkValue, typeOf } from './values.ts'

/** Maximum number of bits in an int. */
const maxBits = 65_536
const maxShift = 512
const largest = 1n << BigInt(maxBits)

/**
 * Returns the canonical form of an int: a number within the safe range, otherwise a bigint. Throws for an int that is
 * too large.
 */
export function normal(value: bigint): Int {
  if (value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER))
    return Number(value)
  if (value >= largest || value <= -largest) throw new StarlarkError('int is too large')
  return value
}

export function toFloat(value: Int): number {
  const number = Number(value)
  if (!Number.isFinite(number)) throw new StarlarkError('int too large to convert to float')
  return number
}

/** Returns a float or int operand as a number, or undefined for other values. */
function floatOperand(value: StarlarkValue): number | undefined {
  if (value instanceof Float) return value.value
  return isInt(value) ? toFloat(value) : undefined
}

type Arithmetic = '+' | '-' | '*' | '/' | '//' | '%'

/** Returns undefined when the operands are not both numbers. */
export function arithmetic(
  op: Arithmetic,
  left: StarlarkValue,
  right: StarlarkValue,
): StarlarkValue | undefined {
  if (isInt(left) && isInt(right) && op !== '/') return ofInts(op, left, right)
  const x = floatOperand(left)
  if (x === undefined) return undefined
  const y = floatOperand(right)
  return y === undefined ? undefined : new Float(ofFloats(op, x, y))
}

function ofInts(op: Exclude<Arithmetic, '/'>, x: Int, y: Int): Int {
  if (typeof x === 'number' && typeof y === 'number') {
    const quick = ofSmallInts(op, x, y)
    if (Number.isSafeInteger(quick)) return quick === 0 ? 0 : quick
  }
  return ofBigInts(op, BigInt(x), BigInt(y))
}

function ofSmallInts(op: Exclude<Arithmetic, '/'>, x: number, y: number): number {
  switch (op) {
    case '+':
      return x + y
    case '-':
      return x - y
    case '*':
      return x * y
    default: {
      if (y === 0) throw new StarlarkError(op === '%' ? 'integer modulo by zero' : 'floored division by zero')
      const rest = ((x % y) + y) % y
      return op === '%' ? rest : (x - rest) / y
    }
  }
}

function ofBigInts(op: Exclude<Arithmetic, '/'>, x: bigint, y: bigint): Int {
  switch (op) {
    case '+':
      return normal(x + y)
    case '-':
      return normal(x - y)
    case '*':
      return normal(x * y)
    default: {
      if (y === 0n)
        throw new StarlarkError(op === '%' ? 'integer modulo by zero' : 'floored division by zero')
      const rest = ((x % y) + y) % y
      return normal(op === '%' ? rest : (x - rest) / y)
    }
  }
}

function ofFloats(op: Arithmetic, x: number, y: number): number {
  switch (op) {
    case '+':
      return x + y
    case '-':
      return x - y
    case '*':
      return x * y
    case '/':
      if (y === 0) throw new StarlarkError('floating-point division by zero')
      return x / y
    case '//':
      if (y === 0) throw new StarlarkError('floored division by zero')
      return Math.floor(x / y)
    default: {
      if (y === 0) throw new StarlarkError('floating-point modulo by zero')
      const rest = x % y
      return rest !== 0 && rest < 0 !== y < 0 ? rest + y : rest
    }
  }
}

type Bits = '&' | '|' | '^' | '<<' | '>>'

/** Returns undefined when the operands are not both ints. */
export function bits(op: Bits, left: StarlarkValue, right: StarlarkValue): Int | undefined {
  if (!isInt(left) || !isInt(right)) return undefined
  const x = BigInt(left)
  const y = BigInt(right)
  switch (op) {
    case '&':
      return normal(x & y)
    case '|':
      return normal(x | y)
    case '^':
      return normal(x ^ y)
    default:
      if (y < 0n) throw new StarlarkError(`negative shift count: ${y}`)
      if (op === '>>') return normal(y > BigInt(maxBits) ? (x < 0n ? -1n : 0n) : x >> y)
      if (y >= BigInt(maxShift)) throw new StarlarkError(`shift count too large: ${y}`)
      return normal(x << y)
  }
}

/** Evaluates `-x`, `+x` and `~x`. Returns undefined when the operand does not support the operator. */
export function unary(op: '-' | '+' | '~', value: StarlarkValue): StarlarkValue | undefined {
  if (isInt(value)) {
    if (op === '+') return value
    return normal(op === '-' ? -BigInt(value) : ~BigInt(value))
  }
  if (!(value instanceof Float) || op === '~') return undefined
  return op === '+' ? value : new Float(-value.value)
}

/** Returns a negative number, zero or a positive number. The comparison between int and float is exact. */
export function compareNumbers(x: Int | Float, y: Int | Float): number {
  const a = x instanceof Float ? x.value : x
  const b = y instanceof Float ? y.value : y
  const isNaN = Number.isNaN(a)
  if (isNaN || Number.isNaN(b)) return Number(isNaN) - Number(Number.isNaN(b))
  return a < b ? -1 : a > b ? 1 : 0
}

/** Removes the fraction. Throws for infinities and nan. */
export function truncate({ value }: Float): Int {
  if (!Number.isFinite(value))
    throw new StarlarkError(`cannot convert float ${Number.isNaN(value) ? 'NaN' : 'infinity'} to integer`)
  const whole = Math.trunc(value)
  return Number.isSafeInteger(whole) ? whole + 0 : normal(BigInt(whole))
}

/**
 * Formats a float with `%g`, `%e` or `%f`. `g` uses the shortest unambiguous digits and always includes a point or an
 * exponent.
 */
export function formatFloat(value: number, verb: 'g' | 'e' | 'f' = 'g'): string {
  if (Number.isNaN(value)) return 'nan'
  if (!Number.isFinite(value)) return value > 0 ? '+inf' : '-inf'
  const sign = value < 0 || Object.is(value, -0) ? '-' : ''
  const size = Math.abs(value)
  if (verb === 'e') return sign + goExponent(size.toExponential(6))
  if (verb === 'f') return sign + fixed(size)
  if (size === 0) return `${sign}0.0`
  const exponential = size.toExponential()
  const exponent = Number(exponential.slice(exponential.indexOf('e') + 1))
  if (exponent < -4 || exponent >= 6) return sign + goExponent(exponential)
  const plain = String(size)
  return sign + (plain.includes('.') ? plain : `${plain}.0`)
}

/** Pads the exponent to at least two digits. */
function goExponent(text: string): string {
  return text.replace(/e([+-])(\d)$/, 'e$10$2')
}

function fixed(size: number): string {
  if (size < 1e21) return size.toFixed(6)
  return `${BigInt(size)}.000000`
}

/** Returns an index or count, which is a machine-sized int. Throws `<name>: got <type>, want int`. */
export function toIndex(value: StarlarkValue, what: string): number {
  if (!isInt(value)) throw new StarlarkError(`${what}: got ${typeOf(value)}, want int`)
  if (typeof value === 'bigint')
    throw new StarlarkError(`${what}: ${value} out of range (want value in signed 64-bit range)`)
  return value
}
