/**
 * Converts values to text: the output of actions, and the functions print, println, html, js and urlquery.
 *
 * Source: Go fmt, verb %v, and Go text/template, "Functions".
 */
import { type TemplateMeter, MeteredOutput } from './meter.ts'
import { floatText } from './numbers.ts'
import { isNil, type TemplateValue } from './value.ts'
import { type ValueStyle, writeValue } from './write-value.ts'

/** Output of an action that has no value. */
export const noValue = '<no value>'

export function writeAction(value: TemplateValue, out: MeteredOutput): void {
  if (isNil(value)) out.write(noValue)
  else writeValue(value, printed, out)
}

/**
 * Returns the text that an action prints for a value. Throws WorkLimitError, and EvaluationError if the text is too
 * long or the value is nested too deeply.
 */
export function valueText(value: TemplateValue, meter: TemplateMeter): string {
  const out = new MeteredOutput(meter)
  writeAction(value, out)
  return out.text
}

/** Formats a value like `map[a:1 b:x]` or `[a b]`. Strings stay unchanged, and nil becomes `<nil>`. */
const printed: ValueStyle = {
  list: { open: '[', between: ' ', close: ']' },
  object: { open: 'map[', between: ' ', close: ']' },
  name: (name) => name,
  omitsUndefined: false,
  scalar(value) {
    if (isNil(value)) return '<nil>'
    return typeof value === 'number' ? floatText(value) : value.toString()
  },
}

/** Inserts a space between two values when neither is a string. */
export function print(values: readonly TemplateValue[], meter: TemplateMeter): string {
  const out = new MeteredOutput(meter)
  let wasString = true
  for (const value of values) {
    const isString = typeof value === 'string'
    if (!isString && !wasString) out.write(' ')
    writeValue(value, printed, out)
    wasString = isString
  }
  return out.text
}

/** Inserts a space between all values and ends with a newline. */
export function printLine(values: readonly TemplateValue[], meter: TemplateMeter): string {
  const out = new MeteredOutput(meter)
  for (const [index, value] of values.entries()) {
    if (index > 0) out.write(' ')
    writeValue(value, printed, out)
  }
  out.write('\n')
  return out.text
}

const html: Readonly<Record<string, string>> = {
  '"': '&#34;',
  "'": '&#39;',
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '\0': '\uFFFD',
}

export function escapeHtml(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replaceAll(/["'&<>\0]/g, (char) => html[char] ?? char)
}

/**
 * Matches characters that Go does not consider printable: everything except letters, marks, numbers, punctuation,
 * symbols and the space.
 */
export const unprintable = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu

export function escapeScript(text: string): string {
  return text
    .replaceAll(/[\\'"]/g, '\\$&')
    .replaceAll(/[<>&=]/g, (char) => `\\u00${hex(char, 2)}`)
    .replaceAll(unprintable, (char) => `\\u${hex(char, 4)}`)
}

function hex(char: string, digits: number): string {
  return (char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(digits, '0')
}

export function escapeQuery(text: string): string {
  return encodeURIComponent(text.toWellFormed())
    .replaceAll(/[!'()*]/g, (char) => `%${hex(char, 2)}`)
    .replaceAll('%20', '+')
}
