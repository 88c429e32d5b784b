/**
 * Reads and writes JSON in templates. Integers that a float cannot represent stay exact: the reader converts them to
 * bigint, and the writer writes them as numbers.
 *
 * Writes JSON as Go does, without spaces and with sorted names, except that it does not escape HTML characters.
 */
import { type TemplateMeter, MeteredOutput } from './meter.ts'
import { EvaluationError, type TemplateValue } from './value.ts'
import { type ValueStyle, writeValue } from './write-value.ts'

/**
 * Matches a number that may be too long for a float. A match inside a string is harmless and only selects the slower
 * path.
 */
const longNumber = /[0-9]{16}/
const integer = /^-?[0-9]+$/
/** Maximum number of digits. No float has more digits, and numbers of this length are still fast to compute. */
const maxDigits = 400
/**
 * Units of work per value. The cost is higher than the time would justify, because a task's input must fit into a
 * worker's heap. A heap overflow inside a native call (JSON.parse) can crash the whole process. 10 million units allow
 * 3.3 million values; 5 million empty objects exceed a 256 MB heap, and 10 million crashed the process.
 */
const valueUnits = 3
/** Cost factor for text in which each number is read individually. */
const exactFactor = 2 * valueUnits

/** Parses JSON. Throws SyntaxError, EvaluationError for a number that is too long, and WorkLimitError. */
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

/**
 * Estimates the number of values in JSON text by counting separators and opening brackets, including those in strings.
 */
export function structureOf(text: string): number {
  let count = 0
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit === 0x2c || unit === 0x5b || unit === 0x7b) count++
  }
  return count
}

/**
 * Returns the value as compact JSON, or null when the value is missing. Throws WorkLimitError, and EvaluationError if
 * the text is too long or the value is nested too deeply.
 */
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

/** Parses JSON text. Throws EvaluationError and WorkLimitError. */
export function fromJson(text: string, meter: TemplateMeter): TemplateValue {
  try {
    return parseJson(text, meter)
  } catch (error) {
    if (error instanceof SyntaxError) throw new EvaluationError('fromJson: the text is not valid JSON')
    throw error
  }
}
