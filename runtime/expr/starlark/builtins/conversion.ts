/** Built-in functions that convert values between types. */
import { asInt, failure, positional, unpack } from './arguments.ts'
import { Bytes, Float, type Int, isInt } from '../values/scalars.ts'
import { truth } from '../values/size.ts'
import { type NativeCall, Dict, List, type StarlarkValue, Tuple, typeOf } from '../values/values.ts'
import { StarlarkError } from '../errors.ts'
import { elementsOf, isSequence } from '../values/iterate.ts'
import { sizeOf, type ScriptMeter } from '../vm/meter.ts'
import { normal, toFloat, truncate, unary } from '../values/numbers.ts'
import { repr, str } from '../values/print.ts'
import { decode, encodePoint, inSlices, points, repaired } from '../values/text.ts'

const maxDigits = 10_000
const floatText = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/

export const conversions: Readonly<Record<string, (call: NativeCall) => StarlarkValue>> = {
  abs,
  bool: (call) => truth(positional(call, 0, 1)[0] ?? false),
  bytes,
  chr(call) {
    const point = asInt(call, unpack(call, 'i')[0], 'i')
    if (point < 0) throw failure(call, `Unicode code point ${point} out of range (<0)`)
    if (point > 0x10ffff)
      throw failure(call, `Unicode code point U+${point.toString(16).toUpperCase()} out of range (>0x10FFFF)`)
    return encodePoint(point)
  },
  dict,
  float,
  int,
  list(call) {
    const [from] = positional(call, 0, 1)
    call.meter.allocate(sizeOf.object)
    return new List(from === undefined ? [] : elementsOf(from, call.meter, 'list: for parameter 1'))
  },
  ord,
  repr: (call) => repr(positional(call, 1, 1)[0] ?? null, call.meter),
  str: (call) => str(positional(call, 1, 1)[0] ?? null, call.meter),
  tuple(call) {
    const [from] = positional(call, 0, 1)
    if (from instanceof Tuple) return from
    return new Tuple(from === undefined ? [] : elementsOf(from, call.meter, 'tuple: for parameter 1'))
  },
}

function abs(call: NativeCall): StarlarkValue {
  const [value = null] = unpack(call, 'x')
  if (isInt(value)) return value < 0 ? (unary('-', value) ?? value) : value
  if (value instanceof Float) return new Float(Math.abs(value.value))
  throw new StarlarkError(`got ${typeOf(value)}, want int or float`)
}

function bytes(call: NativeCall): StarlarkValue {
  const [value = null] = positional(call, 1, 1)
  if (value instanceof Bytes) return value
  if (typeof value === 'string') {
    call.meter.text(value.length)
    return new Bytes(inSlices(value, repaired, call.meter))
  }
  if (!isSequence(value)) throw failure(call, `got ${typeOf(value)}, want string, bytes, or iterable of ints`)
  const data = elementsOf(value, call.meter, 'bytes').map((item, i) => {
    if (!isInt(item)) throw failure(call, `at index ${i}, got ${typeOf(item)}, want int`)
    if (item < 0 || item > 255)
      throw failure(call, `at index ${i}, ${item} out of range (want value in unsigned 8-bit range)`)
    return String.fromCharCode(Number(item))
  })
  return new Bytes(data.join(''))
}

function ord(call: NativeCall): StarlarkValue {
  const [value = null] = positional(call, 1, 1)
  if (value instanceof Bytes) {
    if (value.data.length !== 1) throw failure(call, `bytes has length ${value.data.length}, want 1`)
    return value.data.charCodeAt(0)
  }
  if (typeof value !== 'string') throw failure(call, `got ${typeOf(value)}, want string or bytes`)
  call.meter.step(Math.floor(value.length / 64))
  const found = [...points(value.slice(0, 4096))]
  if (found.length !== 1 || value.length > 4)
    throw failure(call, `string encodes ${found.length} Unicode code points, want 1`)
  return found[0]?.point ?? 0
}

function dict(call: NativeCall): StarlarkValue {
  if (call.args.length > 1) throw failure(call, `got ${call.args.length} arguments, want at most 1`)
  call.meter.allocate(sizeOf.dict)
  const made = new Dict()
  update(call, made, call.args[0])
  return made
}

/** Adds the entries from a dict or a sequence of pairs, then the named arguments. */
export function update(
  { name, named, meter }: NativeCall,
  into: Dict,
  from: StarlarkValue | undefined,
): void {
  if (from instanceof Dict) {
    meter.step(from.size)
    for (const [key, value] of [...from.entries()]) into.set(key, value, meter)
  } else if (from !== undefined) {
    elementsOf(from, meter, name).forEach((pair, i) => {
      const parts = pairOf(pair, meter, name, i)
      into.set(parts[0] ?? null, parts[1] ?? null, meter)
    })
  }
  const seen = new Set<string>()
  for (const [key, value] of named) {
    if (seen.has(key)) throw new StarlarkError(`${name}: duplicate keyword arg: ${JSON.stringify(key)}`)
    seen.add(key)
    into.set(key, value, meter)
  }
}

function pairOf(pair: StarlarkValue, meter: ScriptMeter, name: string, index: number): StarlarkValue[] {
  const place = `dictionary update sequence element #${index}`
  if (!(pair instanceof List || pair instanceof Tuple))
    throw new StarlarkError(`${name}: ${place} is not iterable (${typeOf(pair)})`)
  const parts = elementsOf(pair, meter, name)
  if (parts.length !== 2) throw new StarlarkError(`${name}: ${place} has length ${parts.length}, want 2`)
  return parts
}

function float(call: NativeCall): StarlarkValue {
  call.meter.allocate(sizeOf.float)
  const [value = new Float(0)] = positional(call, 0, 1)
  if (typeof value === 'boolean') return new Float(Number(value))
  if (isInt(value)) return new Float(toFloat(value))
  if (value instanceof Float) return value
  if (typeof value !== 'string') throw new StarlarkError(`float got ${typeOf(value)}, want number or string`)
  if (value === '') throw failure(call, 'empty string')
  const word = /^([+-]?)(inf|infinity|nan)$/i.exec(value)
  if (word)
    return new Float(
      word[2]?.toLowerCase() === 'nan'
        ? Number.NaN
        : word[1] === '-'
          ? Number.NEGATIVE_INFINITY
          : Number.POSITIVE_INFINITY,
    )
  if (value.length > maxDigits || !floatText.test(value))
    throw new StarlarkError(`invalid float literal: ${decode(value.slice(0, 100))}`)
  const number = Number(value)
  if (!Number.isFinite(number))
    throw new StarlarkError(`floating-point number too large: ${value.slice(0, 100)}`)
  return new Float(number)
}

function int(call: NativeCall): StarlarkValue {
  const [value = null, base] = unpack(call, 'x', 'base?')
  if (typeof value === 'string') {
    const radix = base === undefined || base === null ? 10 : asInt(call, base, 'base')
    return parseInteger(call, value, radix)
  }
  if (base !== undefined) throw failure(call, "can't convert non-string with explicit base")
  if (typeof value === 'boolean') return Number(value)
  if (isInt(value)) return value
  if (value instanceof Float) return truncate(value)
  throw failure(call, `cannot convert ${typeOf(value)} to int`)
}

const prefixes: Readonly<Record<string, number>> = { '0x': 16, '0o': 8, '0b': 2 }

function parseInteger(call: NativeCall, text: string, base: number): Int {
  if (base !== 0 && (base < 2 || base > 36)) throw failure(call, 'base must be an integer >= 2 && <= 36')
  const invalid = failure(call, `invalid literal with base ${base}: ${decode(text.slice(0, 100))}`)
  const sign = /^[+-]/.test(text) ? text.charAt(0) : ''
  let digits = text.slice(sign.length).toLowerCase()
  if (digits.length > maxDigits) throw invalid
  const prefixed = prefixes[digits.slice(0, 2)]
  let radix = base
  if (prefixed !== undefined && (base === 0 || base === prefixed)) {
    digits = digits.slice(2)
    radix = prefixed
  } else if (base === 0) {
    if (/^0+[1-9]/.test(digits)) throw invalid
    radix = 10
  }
  call.meter.step(1 + Math.floor((digits.length * digits.length) / 4096))
  let value = 0n
  if (digits === '') throw invalid
  for (const char of digits) {
    const digit = /[0-9a-z]/.test(char) ? Number.parseInt(char, 36) : 99
    if (digit >= radix) throw invalid
    value = value * BigInt(radix) + BigInt(digit)
  }
  return normal(sign === '-' ? -value : value)
}
