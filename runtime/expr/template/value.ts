/**
 * Template values: JSON with two kinds of numbers. `number` is a JSON float. `bigint` is an integer: a literal, a
 * count, an index, or a JSON integer that a float cannot represent exactly. `undefined` represents a missing value.
 *
 * Source: Go text/template, "Arguments", for values that come from JSON.
 */
export type TemplateValue =
  | undefined
  | null
  | boolean
  | number
  | bigint
  | string
  | readonly TemplateValue[]
  | ValueObject

export interface ValueObject {
  readonly [name: string]: TemplateValue
}

/** Thrown when a template fails during evaluation. The message contains types and names, never values. */
export class EvaluationError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'EvaluationError'
  }
}

export function isList(value: TemplateValue): value is readonly TemplateValue[] {
  return Array.isArray(value)
}

export function isObject(value: TemplateValue): value is ValueObject {
  return typeof value === 'object' && value !== null && !isList(value)
}

/** True for a missing value and for null. */
export function isNil(value: TemplateValue): value is undefined | null {
  return value === undefined || value === null
}

/** False for false, 0, '', missing, null and empty values. */
export function truth(value: TemplateValue): boolean {
  if (isList(value)) return value.length > 0
  if (!isObject(value)) return Boolean(value)
  for (const _ in value) return true
  return false
}

/** Returns Go's name for the type. */
export function typeName(value: TemplateValue): string {
  if (isNil(value)) return '<nil>'
  if (isList(value)) return '[]interface {}'
  const names: Readonly<Record<string, string>> = {
    boolean: 'bool',
    number: 'float64',
    bigint: 'int',
    string: 'string',
  }
  return names[typeof value] ?? 'map[string]interface {}'
}

/** Returns an integer of either kind, or undefined for other values. */
export function integerOf(value: TemplateValue): bigint | undefined {
  if (typeof value === 'bigint') return value
  return typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : undefined
}

/**
 * Returns a field of an object. A field of a missing value is missing. Throws EvaluationError for values without
 * fields.
 */
export function fieldOf(value: TemplateValue, name: string): TemplateValue {
  if (isNil(value)) return undefined
  if (isObject(value)) return Object.hasOwn(value, name) ? value[name] : undefined
  throw new EvaluationError(`can't evaluate field ${name} in type ${typeName(value)}`)
}

/** Returns the names sorted by their UTF-8 bytes. */
export function sortedNames(object: ValueObject): string[] {
  return Object.keys(object).sort(compareText)
}

/** Compares by UTF-8 bytes, which yields the order of code points instead of code units. */
export function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let at = 0; at < length; at++) {
    const x = a.charCodeAt(at)
    const y = b.charCodeAt(at)
    if (x !== y) return rank(x) - rank(y)
  }
  return a.length - b.length
}

/** Sorts surrogates last, because they represent the highest code points. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit
}
