/**
 * From texts to values of a JSON type: what templates give is text, what tools and outputs want often is not.
 * Source: spec document 3, compositeTools (output property types).
 */
import {
  EvaluationError,
  isList,
  isObject,
  parseJson,
  type TemplateValue,
} from '../../expr/template/index.ts'

export type JsonType = 'string' | 'integer' | 'number' | 'boolean' | 'object' | 'array'

const integerForm = /^[+-]?[0-9]+$/
const numberForm = /^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/
const truths: ReadonlyMap<string, boolean> = new Map([
  ...['1', 't', 'T', 'TRUE', 'true', 'True'].map((text) => [text, true] as const),
  ...['0', 'f', 'F', 'FALSE', 'false', 'False'].map((text) => [text, false] as const),
])
const largest = 2n ** 63n

/** The value that a text stands for; undefined when it is none of that type. */
export function fromText(text: string, type: JsonType): TemplateValue {
  switch (type) {
    case 'integer':
      return integerForm.test(text) ? integerOf(text) : undefined
    case 'number':
      return numberForm.test(text) ? numberOf(text) : undefined
    case 'boolean':
      return truths.get(text)
    case 'object':
    case 'array':
      return structureOf(text, type)
    default:
      return text
  }
}

/** Whole numbers of 64 bits; exact, even where a float is not. */
function integerOf(text: string): TemplateValue {
  const value = BigInt(text.replace(/^\+/, ''))
  if (value >= largest || value < -largest) return undefined
  const plain = Number(value)
  return Number.isSafeInteger(plain) ? plain : value
}

function numberOf(text: string): TemplateValue {
  const plain = Number(text)
  if (!Number.isFinite(plain)) return undefined
  return integerForm.test(text) && !Number.isSafeInteger(plain) ? BigInt(text.replace(/^\+/, '')) : plain
}

function structureOf(text: string, type: 'object' | 'array'): TemplateValue {
  try {
    const value = parseJson(text)
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

export function isJsonType(type: unknown): type is JsonType {
  return (
    typeof type === 'string' && ['string', 'integer', 'number', 'boolean', 'object', 'array'].includes(type)
  )
}
