/**
 * JSON in and out of templates. Integers that a float cannot hold stay exact: they become bigint, and numbers again.
 *
 * Written like Go does: no blanks, names sorted; but without HTML escapes.
 */
import { type TemplateMeter, MeteredOutput } from './meter.ts'
import { EvaluationError, type TemplateValue } from './value.ts'
import { type ValueStyle, writeValue } from './write-value.ts'

/** A number that may be too long for a float; inside of strings it does no harm, only the slower way is taken. */
const longNumber = /[0-9]{16}/
const integer = /^-?[0-9]+$/
/** More digits than any float has, and few enough to compute with. */
const maxDigits = 400
/**
 * Units of work for each value. More than the time that it takes: what one task may read has to fit into the heap of a
 * worker, because a worker whose heap ends inside of one native call (JSON.parse) can take the whole process with it. With
 * 10 million units that is 3.3 million values; 5 million empty objects end a heap of 256 MB, 10 million have ended the process.
 */
const valueUnits = 3
/** How much longer a text takes whose numbers are read one by one. */
const exactFactor = 2 * valueUnits

/** Throws SyntaxError; EvaluationError for a number that is too long; WorkLimitError. */
export function parseJson(text: string, meter: TemplateMeter): TemplateValue {
  const isExact = longNumber.test(text)
  meter.spend((1 + structureOf(text)) * (isExact ? exactFactor : valueUnits))
  meter.spendText(text.length)
  if (!isExact) return JSON.parse(text)
  return JSON.parse(text, (_name: string, value: unknown, context?: { source?: string }) => {
    const { source } = context ?? {}
    if (typeof value !== 'number' || Number.isSafeInteger(value) || source === undefined) return value
    if (!integer.test(source)) return value
    if (source.length > maxDigits) throw new EvaluationError(`a number has more than ${maxDigits} digits`)
    return BigInt(source)
  })
}

/** About how many values a JSON text has: what separates and opens them, in strings too. */
export function structureOf(text: string): number {
  let count = 0
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit === 0x2c || unit === 0x5b || unit === 0x7b) count++
  }
  return count
}

/** The value as compact JSON; null when there is none. Throws EvaluationError beyond the limits, WorkLimitError. */
export function jsonText(value: TemplateValue, meter: TemplateMeter): string {
  const out = new MeteredOutput(meter)
  writeValue(value, json, out)
  return out.text
}

const json: ValueStyle = {
  list: { open: '[', between: ',', close: ']' },
  object: { open: '{', between: ',', close: '}' },
  name: (name) => JSON.stringify(name),
  omitsUndefined: true,
  scalar(value) {
    if (typeof value === 'bigint') return value.toString()
    return value === undefined ? 'null' : JSON.stringify(value)
  },
}

/** JSON text as a value. Throws EvaluationError, WorkLimitError. */
export function fromJson(text: string, meter: TemplateMeter): TemplateValue {
  try {
    return parseJson(text, meter)
  } catch (error) {
    if (error instanceof SyntaxError) throw new EvaluationError('fromJson: the text is not JSON')
    throw error
  }
}
