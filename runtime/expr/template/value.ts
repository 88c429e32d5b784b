/**
 * Values that templates work with: JSON, with two kinds of numbers. `number` is a float, as JSON has them; `bigint` is an
 * integer: a literal, a count, an index, or a JSON integer that a float cannot hold exactly. `undefined` is no value.
 *
 * Source: Go text/template, "Arguments", as it sees values that came out of JSON.
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

/** Error of a template while it is worked out. The text tells types and names, never values. */
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

/** True for missing and null. */
export function isNil(value: TemplateValue): value is undefined | null {
  return value === undefined || value === null
}

/** False for false, 0, '', nothing, and what is empty. */
export function truth(value: TemplateValue): boolean {
  if (isList(value)) return value.length > 0
  if (!isObject(value)) return Boolean(value)
  for (const _ in value) return true
  return false
}

/** The type as Go names it. */
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

/** An integer, whichever kind it is stored as; undefined for everything else. */
export function integerOf(value: TemplateValue): bigint | undefined {
  if (typeof value === 'bigint') return value
  return typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : undefined
}

/** A field of an object; of nothing there is nothing. Throws EvaluationError for what has no fields. */
export function fieldOf(value: TemplateValue, name: string): TemplateValue {
  if (isNil(value)) return undefined
  if (isObject(value)) return Object.hasOwn(value, name) ? value[name] : undefined
  throw new EvaluationError(`can't evaluate field ${name} in type ${typeName(value)}`)
}

/** Names in the order of their bytes in UTF-8. */
export function sortedNames(object: ValueObject): string[] {
  return Object.keys(object).sort(compareText)
}

/** Compares by bytes in UTF-8, which is by code points and not by code units. */
export function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let at = 0; at < length; at++) {
    const x = a.charCodeAt(at)
    const y = b.charCodeAt(at)
    if (x !== y) return rank(x) - rank(y)
  }
  return a.length - b.length
}

/** Surrogates stand for code points above all others. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit
}
