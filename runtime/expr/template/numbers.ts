/**
 * Formats numbers as Go does: with the shortest digits, or with a given precision. Rounds the exact value half to even.
 *
 * Source: Go strconv.FormatFloat, formats e, f and g.
 */

/**
 * Limit below which whole numbers have no exponent, which keeps ids readable. Go uses an exponent for numbers from one
 * million upwards.
 */
const largestWhole = 2 ** 53

/** Formats a float as it appears in template output. */
export function floatText(value: number): string {
  if (Number.isInteger(value) && Math.abs(value) < largestWhole)
    return Object.is(value, -0) ? '-0' : value.toString()
  return shortest(value)
}

/** Formats in style g with the shortest digits. */
export function shortest(value: number): string {
  const { sign, digits, exponent } = shortestDigits(value)
  return sign + (exponent < -4 || exponent > 5 ? e(digits, exponent) : f(digits, exponent))
}

interface Digits {
  readonly sign: '-' | ''
  /** Digits without trailing zeros; `0` for zero. */
  readonly digits: string
  /** Exponent of the first digit. */
  readonly exponent: number
}

function shortestDigits(value: number): Digits {
  const [mantissa = '', exponent = '0'] = Math.abs(value).toExponential().split('e')
  return { sign: signOf(value), digits: mantissa.replace('.', ''), exponent: Number(exponent) }
}

function signOf(value: number): '-' | '' {
  return value < 0 || Object.is(value, -0) ? '-' : ''
}

function e(digits: string, exponent: number): string {
  const fraction = digits.length > 1 ? `.${digits.slice(1)}` : ''
  const size = Math.abs(exponent).toString().padStart(2, '0')
  return `${digits.charAt(0)}${fraction}e${exponent < 0 ? '-' : '+'}${size}`
}

function f(digits: string, exponent: number): string {
  if (exponent < 0) return `0.${'0'.repeat(-exponent - 1)}${digits}`
  if (exponent + 1 >= digits.length) return digits.padEnd(exponent + 1, '0')
  return `${digits.slice(0, exponent + 1)}.${digits.slice(exponent + 1)}`
}

/** Formats in style e with `precision` digits after the point. */
export function exponential(value: number, precision: number): string {
  const { sign, digits, exponent } = rounded(value, precision + 1)
  return sign + e(digits.padEnd(precision + 1, '0'), exponent)
}

/** Formats in style g with `precision` digits in total. */
export function general(value: number, precision: number): string {
  const wanted = Math.max(precision, 1)
  const { sign, digits, exponent } = rounded(value, wanted)
  const limit = wanted > digits.length && digits.length > exponent ? digits.length : wanted
  return sign + (exponent < -4 || exponent >= limit ? e(digits, exponent) : f(digits, exponent))
}

/** Formats in style f with `precision` digits after the point. */
export function fixed(value: number, precision: number): string {
  const text = scaled(Math.abs(value), precision)
    .toString()
    .padStart(precision + 1, '0')
  const whole = text.slice(0, text.length - precision)
  return signOf(value) + whole + (precision === 0 ? '' : `.${text.slice(-precision)}`)
}

/** Rounds the value to a number of digits. */
function rounded(value: number, count: number): Digits {
  const { sign, exponent } = shortestDigits(value)
  if (value === 0) return { sign, digits: '0', exponent: 0 }
  // Handles a carry: determining the shortest digits, and rounding here, may both round up to the next power of ten.
  let power = count - 1 - exponent
  let text = scaled(Math.abs(value), power).toString()
  if (text.length < count) text = scaled(Math.abs(value), ++power).toString()
  return { sign, digits: text.replace(/0+$/, ''), exponent: text.length - 1 - power }
}

/** Returns value * 10^power as a whole number, computed exactly and rounded half to even. */
function scaled(value: number, power: number): bigint {
  const view = new DataView(new ArrayBuffer(8))
  view.setFloat64(0, value)
  const bits = view.getBigUint64(0)
  const stored = Number((bits >> 52n) & 0x7ffn)
  const fraction = bits & 0xfffffffffffffn
  const mantissa = stored === 0 ? fraction : fraction | 0x10000000000000n
  const exponent = (stored === 0 ? 1 : stored) - 1075
  let top = mantissa
  let bottom = 1n
  if (exponent >= 0) top <<= BigInt(exponent)
  else bottom <<= BigInt(-exponent)
  if (power >= 0) top *= 10n ** BigInt(power)
  else bottom *= 10n ** BigInt(-power)
  const whole = top / bottom
  const rest = (top % bottom) * 2n
  return rest > bottom || (rest === bottom && whole % 2n === 1n) ? whole + 1n : whole
}
