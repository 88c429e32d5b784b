/** Implements `text % values`. Source: Starlark specification, "String interpolation". */
import { Float, type Int, isInt } from '../values/scalars.ts'
import { Dict, type StarlarkValue, Tuple, typeOf } from '../values/values.ts'
import { StarlarkError } from '../errors.ts'
import type { ScriptMeter } from '../vm/meter.ts'
import { formatFloat, toFloat, truncate } from '../values/numbers.ts'
import { repr, str } from '../values/print.ts'
import { encodePoint, points } from '../values/text.ts'

export function interpolate(format: string, operand: StarlarkValue, meter: ScriptMeter): string {
  const values = operand instanceof Tuple ? operand.items : [operand]
  const parts: string[] = []
  let used = 0
  let at = 0
  for (;;) {
    const percent = format.indexOf('%', at)
    if (percent < 0) break
    parts.push(format.slice(at, percent))
    at = percent + 1
    if (format[at] === '%') {
      parts.push('%')
      at++
      continue
    }
    meter.step(1)
    let value: StarlarkValue
    if (format[at] === '(') {
      const end = format.indexOf(')', at)
      if (end < 0) throw new StarlarkError('incomplete format key')
      value = entryOf(operand, format.slice(at + 1, end), meter)
      at = end + 1
    } else {
      if (used >= values.length) throw new StarlarkError('not enough arguments for format string')
      value = values[used++] ?? null
    }
    const verb = format[at++]
    if (verb === undefined) throw new StarlarkError('incomplete format')
    const text = convert(verb, value, meter)
    meter.text(text.length)
    parts.push(text)
  }
  if (used < values.length && !(operand instanceof Dict))
    throw new StarlarkError('too many arguments for format string')
  parts.push(format.slice(at))
  const text = parts.join('')
  meter.text(text.length)
  return text
}

function entryOf(operand: StarlarkValue, key: string, meter: ScriptMeter): StarlarkValue {
  if (!(operand instanceof Dict)) throw new StarlarkError('format requires a mapping')
  const value = operand.get(key, meter)
  if (value === undefined) throw new StarlarkError(`key not found: ${key}`)
  return value
}

function convert(verb: string, value: StarlarkValue, meter: ScriptMeter): string {
  switch (verb) {
    case 's':
      return str(value, meter)
    case 'r':
      return repr(value, meter)
    case 'd':
    case 'i':
      return integer(verb, value).toString()
    case 'o':
      return integer(verb, value).toString(8)
    case 'x':
      return integer(verb, value).toString(16)
    case 'X':
      return integer(verb, value).toString(16).toUpperCase()
    case 'e':
    case 'f':
    case 'g':
    case 'E':
    case 'F':
    case 'G':
      return float(verb, value)
    case 'c':
      return character(value)
    default:
      throw new StarlarkError(`unknown conversion %${verb}`)
  }
}

function integer(verb: string, value: StarlarkValue): Int {
  if (isInt(value)) return value
  if (!(value instanceof Float))
    throw new StarlarkError(`%${verb} format requires integer: cannot convert ${typeOf(value)} to int`)
  return truncate(value)
}

function float(verb: string, value: StarlarkValue): string {
  if (!isInt(value) && !(value instanceof Float))
    throw new StarlarkError(`%${verb} format requires float, not ${typeOf(value)}`)
  const number = isInt(value) ? toFloat(value) : value.value
  const lower = verb.toLowerCase()
  const text = formatFloat(number, lower === 'e' || lower === 'f' ? lower : 'g')
  return verb === lower || !Number.isFinite(number) ? text : text.toUpperCase()
}

function character(value: StarlarkValue): string {
  if (typeof value === 'string') {
    if (value.length > 4 || [...points(value)].length !== 1)
      throw new StarlarkError('%c format requires a single-character string')
    return value
  }
  if (!isInt(value))
    throw new StarlarkError(`%c format requires int or single-character string, not ${typeOf(value)}`)
  if (value < 0 || value > 0x10ffff)
    throw new StarlarkError(`%c format requires a valid Unicode code point, got ${value}`)
  return encodePoint(Number(value))
}
