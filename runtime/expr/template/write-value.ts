/** Writes lists and objects as text, in JSON or Go style. */
import type { MeteredOutput } from './meter.ts'
import { isList, isObject, sortedNames, type TemplateValue } from './value.ts'

type Scalar = undefined | null | boolean | number | bigint | string

interface Brackets {
  readonly open: string
  readonly between: string
  readonly close: string
}

export interface ValueStyle {
  readonly list: Brackets
  readonly object: Brackets
  readonly name: (name: string) => string
  readonly scalar: (value: Scalar) => string
  /** True to omit members without a value, as JSON.stringify does. */
  readonly omitsUndefined: boolean
}

/**
 * Writes a value. Throws WorkLimitError, and EvaluationError if the text is too long or the value is nested too deeply.
 */
export function writeValue(value: TemplateValue, style: ValueStyle, out: MeteredOutput, depth = 0): void {
  out.depth(depth)
  if (isList(value)) {
    out.write(style.list.open)
    for (const [index, item] of value.entries()) {
      if (index > 0) out.write(style.list.between)
      writeValue(item, style, out, depth + 1)
    }
    out.write(style.list.close)
  } else if (isObject(value)) {
    out.write(style.object.open)
    let separator = ''
    for (const name of sortedNames(value)) {
      if (style.omitsUndefined && value[name] === undefined) continue
      out.write(`${separator}${style.name(name)}:`)
      writeValue(value[name], style, out, depth + 1)
      separator = style.object.between
    }
    out.write(style.object.close)
  } else out.write(style.scalar(value))
}
