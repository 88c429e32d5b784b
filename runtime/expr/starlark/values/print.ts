/** Converts values to text. `repr` quotes strings; `str` returns a string unchanged. A cycle is printed as `...`. */
import { Bytes, Float, Range, TextView } from './scalars.ts'
import { Dict, List, type StarlarkValue, Tuple } from './values.ts'
import { StarlarkError } from '../errors.ts'
import { sizeOf, type ScriptMeter } from '../vm/meter.ts'
import { formatFloat } from './numbers.ts'
import { inSlices, quote, repaired } from './text.ts'

const maxDepth = 200

export function str(value: StarlarkValue, meter: ScriptMeter): string {
  if (typeof value === 'string') return value
  if (value instanceof Bytes) return inSlices(value.data, repaired, meter)
  return repr(value, meter)
}

export function repr(value: StarlarkValue, meter: ScriptMeter): string {
  const text = write(value, meter, [])
  meter.text(text.length)
  return text
}

function write(value: StarlarkValue, meter: ScriptMeter, open: object[]): string {
  if (value === null) return 'None'
  switch (typeof value) {
    case 'boolean':
      return value ? 'True' : 'False'
    case 'number':
      return String(value)
    case 'bigint':
      return bigText(value, meter)
    case 'string':
      meter.text(value.length)
      return quote(value, meter)
    default:
      return writeObject(value, meter, open)
  }
}

/** Charges for large ints, because converting them to decimal takes more than linear time. */
function bigText(value: bigint, meter: ScriptMeter): string {
  const text = value.toString()
  meter.text(text.length)
  meter.step(Math.floor(text.length / 64))
  return text
}

function writeObject(
  value: Exclude<StarlarkValue, null | boolean | number | bigint | string>,
  meter: ScriptMeter,
  open: object[],
): string {
  if (value instanceof Float) return formatFloat(value.value)
  if (value instanceof Bytes) {
    meter.text(value.data.length)
    return quote(value.data, meter, { asBytes: true })
  }
  if (value instanceof Range) {
    const { start, stop, step } = value
    if (step !== 1) return `range(${start}, ${stop}, ${step})`
    return start === 0 ? `range(${stop})` : `range(${start}, ${stop})`
  }
  if (value instanceof TextView) {
    meter.text(value.text.length)
    return `${quote(value.text, meter, { asBytes: value.ofBytes })}.${value.method}()`
  }
  if (value instanceof Tuple || value instanceof List || value instanceof Dict)
    return writeStructure(value, meter, open)
  if (value.type === 'function') return `<function ${value.name}>`
  return value.receiver === undefined
    ? `<built-in function ${value.name}>`
    : `<built-in method ${value.name} of ${value.receiver} value>`
}

function writeStructure(value: Tuple | List | Dict, meter: ScriptMeter, open: object[]): string {
  if (open.includes(value)) return value instanceof Dict ? '{...}' : value instanceof List ? '[...]' : '(...)'
  if (open.length >= maxDepth) throw new StarlarkError('value is nested too deeply to print')
  open.push(value)
  const parts: string[] = []
  const add = (part: string): void => {
    meter.step(1)
    meter.allocate(sizeOf.element + part.length)
    parts.push(part)
  }
  if (value instanceof Dict) {
    for (const [key, item] of value.entries()) add(`${write(key, meter, open)}: ${write(item, meter, open)}`)
  } else for (const item of value.items) add(write(item, meter, open))
  open.pop()
  const inner = parts.join(', ')
  if (value instanceof Dict) return `{${inner}}`
  if (value instanceof List) return `[${inner}]`
  return parts.length === 1 ? `(${inner},)` : `(${inner})`
}
