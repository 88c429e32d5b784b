/**
 * Converts text to JSON types, because templates produce text, but tools and outputs often need another type.
 * Source: docs/reference/specification/virtual-server.md#compositeTools, compositeTools (output property types).
 */

/** The types of output properties. */
export const jsonTypes = ['string', 'integer', 'number', 'boolean', 'object', 'array'] as const
export type JsonType = (typeof jsonTypes)[number]

const integerForm = /^[+-]?[0-9]{1,400}$/
const numberForm = /^[+-]?(?:[0-9]{1,400}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/
const words: ReadonlyMap<string, boolean> = new Map([
  ...['1', 't', 'T', 'TRUE', 'true', 'True'].map((text) => [text, true] as const),
  ...['0', 'f', 'F', 'FALSE', 'false', 'False'].map((text) => [text, false] as const),
])
const largest = 2n ** 63n

export function isJsonType(type: unknown): type is JsonType {
  return (jsonTypes as readonly unknown[]).includes(type)
}

/** Returns an exact 64-bit integer, or undefined for any other text. */
export function integerIn(text: string): number | bigint | undefined {
  if (!integerForm.test(text)) return undefined
  const value = BigInt(text.replace(/^\+/, ''))
  if (value >= largest || value < -largest) return undefined
  const plain = Number(value)
  return Number.isSafeInteger(plain) ? plain : value
}

/** Returns a number, or undefined for any other text. Integers are exact. */
export function numberIn(text: string): number | bigint | undefined {
  if (!numberForm.test(text)) return undefined
  const plain = Number(text)
  if (!Number.isFinite(plain)) return undefined
  return integerForm.test(text) && !Number.isSafeInteger(plain) ? BigInt(text.replace(/^\+/, '')) : plain
}

export function booleanIn(text: string): boolean | undefined {
  return words.get(text)
}

/**
 * Returns the boolean that a condition's text contains, ignoring surrounding whitespace, or undefined for any other
 * text.
 * Source: docs/reference/specification/virtual-server.md#steps, steps, condition.
 */
export function conditionIn(text: string): boolean | undefined {
  const word = text.trim()
  return word.length > 1 ? booleanIn(word) : undefined
}
