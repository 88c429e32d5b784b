/**
 * From texts to values of a JSON type: what templates give is text, what tools and outputs want often is not.
 * Source: docs/specification/virtual-server.md#compositeTools, compositeTools (output property types).
 */
import { booleanIn, integerIn, type JsonType, numberIn } from '../../../../schemas/workflow/index.ts'
import {
  EvaluationError,
  isList,
  isObject,
  type TemplateMeter,
  parseJson,
  type TemplateValue,
} from '../../../expr/template/index.ts'

/** The value that a text stands for; undefined when it is none of that type. Throws WorkLimitError. */
export function fromText(text: string, type: JsonType, meter: TemplateMeter): TemplateValue {
  switch (type) {
    case 'integer':
      return integerIn(text)
    case 'number':
      return numberIn(text)
    case 'boolean':
      return booleanIn(text)
    case 'object':
    case 'array':
      return structureIn(text, type, meter)
    default:
      return text
  }
}

function structureIn(text: string, type: 'object' | 'array', meter: TemplateMeter): TemplateValue {
  try {
    const value = parseJson(text, meter)
    return isOfType(value, type) ? value : undefined
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof EvaluationError) return undefined
    throw error
  }
}

export function isOfType(value: TemplateValue, type: JsonType): boolean {
  switch (type) {
    case 'integer':
      return typeof value === 'bigint' || Number.isInteger(value)
    case 'number':
      return typeof value === 'bigint' || typeof value === 'number'
    case 'object':
      return isObject(value)
    case 'array':
      return isList(value)
    default:
      return typeof value === type
  }
}
