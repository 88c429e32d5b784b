/**
 * Implements `x[i]`, `x[i:j:k]` and assignments to elements. Source: Starlark specification, "Index expressions",
 * "Slices".
 */
import { Bytes, isInt, Range, TextView } from './scalars.ts'
import { lengthOf } from './size.ts'
import { Dict, List, type StarlarkValue, Tuple, typeOf } from './values.ts'
import { StarlarkError } from '../errors.ts'
import { type ScriptMeter, sizeOf } from '../vm/meter.ts'
import { toIndex } from './numbers.ts'
import { repr } from './print.ts'

export function getIndex(of: StarlarkValue, index: StarlarkValue, meter: ScriptMeter): StarlarkValue {
  if (of instanceof Dict) {
    const found = of.get(index, meter)
    if (found === undefined) throw new StarlarkError(`key ${shortened(repr(index, meter))} not in dict`)
    return found
  }
  const length = lengthOf(of)
  if (length === undefined)
    throw new StarlarkError(`unhandled index operation ${typeOf(of)}[${typeOf(index)}]`)
  const at = checkedIndex(of, index, length)
  if (typeof of === 'string') return of.charAt(at)
  if (of instanceof List || of instanceof Tuple) return of.items[at] ?? null
  if (of instanceof Bytes) return new Bytes(of.data.charAt(at))
  if (of instanceof Range) return of.at(at)
  if (of instanceof TextView)
    return of.ofBytes || of.method === 'elem_ords' ? of.text.charCodeAt(at) : of.text.charAt(at)
  throw new StarlarkError(`unhandled index operation ${typeOf(of)}[${typeOf(index)}]`)
}

function shortened(text: string): string {
  return text.length > 100 ? `${text.slice(0, 100)}...` : text
}

function checkedIndex(of: StarlarkValue, index: StarlarkValue, length: number): number {
  if (isInt(index) && typeof index === 'bigint')
    throw new StarlarkError(`${typeOf(of)} index: ${index} out of range`)
  const given = toIndex(index, `${typeOf(of)} index`)
  return checkRange(typeOf(of), given, length)
}

/** Resolves negative indices from the end. Throws when the index is out of range. */
export function checkRange(type: string, given: number, length: number, caller = ''): number {
  const at = given < 0 ? given + length : given
  if (at >= 0 && at < length) return at
  throw new StarlarkError(
    length === 0
      ? `${caller}index ${given} out of range: empty ${type}`
      : `${caller}${type} index ${given} out of range [${-length}:${length - 1}]`,
  )
}

export function setIndex(
  of: StarlarkValue,
  index: StarlarkValue,
  value: StarlarkValue,
  meter: ScriptMeter,
): void {
  if (of instanceof Dict) {
    of.set(index, value, meter)
    return
  }
  if (!(of instanceof List)) throw new StarlarkError(`${typeOf(of)} value does not support item assignment`)
  const at = checkedIndex(of, index, of.items.length)
  of.writable('assign to element of')[at] = value
}

export function slice(
  of: StarlarkValue,
  from: StarlarkValue,
  to: StarlarkValue,
  by: StarlarkValue,
  meter: ScriptMeter,
): StarlarkValue {
  const length = lengthOf(of)
  if (length === undefined || of instanceof Dict || of instanceof TextView)
    throw new StarlarkError(`invalid slice operand ${typeOf(of)}`)
  const step = by === null ? 1 : toIndex(by, 'invalid slice step')
  if (step === 0) throw new StarlarkError('zero is not a valid slice step')
  const [first, last] = bounds(from, to, step, length)
  if (of instanceof Range) {
    meter.allocate(sizeOf.function)
    return new Range(of.at(first), of.at(last), of.step * step)
  }
  if (typeof of === 'string') return slicedText(of, first, last, step, meter)
  if (of instanceof Bytes) return new Bytes(slicedText(of.data, first, last, step, meter))
  if (!(of instanceof List || of instanceof Tuple))
    throw new StarlarkError(`invalid slice operand ${typeOf(of)}`)
  meter.elements(Math.max(0, Math.ceil((last - first) / step)))
  const items: StarlarkValue[] = []
  for (let i = first; step > 0 ? i < last : i > last; i += step) items.push(of.items[i] ?? null)
  return of instanceof List ? new List(items) : new Tuple(items)
}

function slicedText(text: string, first: number, last: number, step: number, meter: ScriptMeter): string {
  if (step === 1) {
    const part = first < last ? text.slice(first, last) : ''
    meter.text(part.length)
    return part
  }
  meter.elements(Math.max(0, Math.ceil((last - first) / step)))
  const parts: string[] = []
  for (let i = first; step > 0 ? i < last : i > last; i += step) parts.push(text.charAt(i))
  return parts.join('')
}

/** Returns the start and end of a slice within the sequence. */
export function bounds(
  from: StarlarkValue,
  to: StarlarkValue,
  step: number,
  length: number,
): [number, number] {
  const low = step > 0 ? 0 : -1
  const high = step > 0 ? length : length - 1
  const place = (value: StarlarkValue, absent: number, name: string): number => {
    if (value === null) return absent
    if (typeof value === 'bigint') return value < 0n ? low : high
    const given = toIndex(value, `invalid ${name} index`)
    return Math.min(Math.max(given < 0 ? given + length : given, low), high)
  }
  const first = place(from, step > 0 ? low : high, 'start')
  const last = place(to, step > 0 ? high : low, 'end')
  return [first, last]
}
