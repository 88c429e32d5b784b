/**
 * Converts text to values of a JSON type. Templates produce text, but tools and outputs often require other types.
 * Source: docs/reference/specification/virtual-server.md#compositeTools, compositeTools (output property types).
 */
import { isOfType, type SchemaType } from '../../../../../schemas/index.ts'
import { booleanIn, integerIn, numberIn } from '../../../../../schemas/workflow/index.ts'
import {
  EvaluationError,
  type TemplateMeter,
  parseJson,
  type TemplateValue,
} from '../../../../expr/template/index.ts'

/**
 * Returns the value of the given type that the text represents. Returns undefined if the text does not represent a
 * value of this type. Throws WorkLimitError.
 */
export function fromText(text: string, type: SchemaType, meter: TemplateMeter): TemplateValue {
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
    case 'null':
      return text === 'null' ? null : undefined
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
