/**
 * JSON in and out of templates. Integers that a float cannot hold stay exact: they become bigint, and numbers again.
 *
 * Written like Go does: no blanks, names sorted; but without HTML escapes.
 */
import { Meter, Output, defaultLimits } from './meter.ts'
import { EvaluationError, isList, isObject, sortedNames, type TemplateValue } from './value.ts'

/** A number that may be too long for a float; inside of strings it does no harm, only the slower way is taken. */
const longNumber = /[0-9]{16}/
const integer = /^-?[0-9]+$/

/** Throws SyntaxError. */
export function parseJson(text: string): TemplateValue {
  if (!longNumber.test(text)) return JSON.parse(text)
  return JSON.parse(text, (_name: string, value: unknown, context?: { source?: string }) => {
    const { source } = context ?? {}
    if (typeof value !== 'number' || Number.isSafeInteger(value) || source === undefined) return value
    return integer.test(source) ? BigInt(source) : value
  })
}

/** The value as compact JSON; null when there is none. Throws EvaluationError beyond the limits. */
export function jsonText(value: TemplateValue, meter = new Meter(defaultLimits)): string {
  const out = new Output(meter)
  write(value, out, 0)
  return out.text
}

function write(value: TemplateValue, out: Output, depth: number): void {
  out.depth(depth)
  if (isList(value)) {
    out.write('[')
    for (const [index, item] of value.entries()) {
      if (index > 0) out.write(',')
      write(item, out, depth + 1)
    }
    out.write(']')
  } else if (isObject(value)) {
    out.write('{')
    let separator = ''
    for (const name of sortedNames(value)) {
      // A member without value is left out, like JSON.stringify does.
      if (value[name] === undefined) continue
      out.write(`${separator}${JSON.stringify(name)}:`)
      write(value[name], out, depth + 1)
      separator = ','
    }
    out.write('}')
  } else out.write(scalar(value))
}

function scalar(value: undefined | null | boolean | number | bigint | string): string {
  if (typeof value === 'bigint') return value.toString()
  return value === undefined ? 'null' : JSON.stringify(value)
}

/** JSON text as a value. Throws EvaluationError. */
export function fromJson(text: string, meter: Meter): TemplateValue {
  meter.spendText(text.length * 2)
  try {
    return parseJson(text)
  } catch {
    throw new EvaluationError('fromJson: the text is not JSON')
  }
}
