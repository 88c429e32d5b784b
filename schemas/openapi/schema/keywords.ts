/**
 * The JSON Schema keywords that the conversion keeps, with the type that each value must have. All other keywords are
 * dropped, such as `example`, `xml`, `discriminator`, `externalDocs` and extensions. A keyword with an invalid value
 * would make clients reject the tool, so the conversion drops the keyword and reports that it did.
 * Source: JSON Schema 2020-12, validation.
 */
import { isRawJson } from '../../json/exact-json.ts'
import { isFields } from '../../validation/fields.ts'

const maxPatternLength = 1_000

const jsonTypes: ReadonlySet<unknown> = new Set([
  'string',
  'integer',
  'number',
  'boolean',
  'object',
  'array',
  'null',
])

/** Returns the value to keep; undefined if the keyword must be dropped. */
type Reader = (value: unknown) => unknown

/** Keywords without subschemas. */
export const plainKeywords: Readonly<Record<string, Reader>> = {
  type: typeNames,
  title: text,
  description: text,
  format: text,
  contentEncoding: text,
  contentMediaType: text,
  pattern: (value) => (typeof value === 'string' && isPattern(value) ? value : undefined),
  enum: (value) => (Array.isArray(value) && value.length > 0 ? exact([...new Set(value)]) : undefined),
  const: exact,
  default: exact,
  deprecated: (value) => (value === true ? true : undefined),
  uniqueItems: (value) => (typeof value === 'boolean' ? value : undefined),
  required: (value) => (isTextList(value) ? [...new Set(value)] : undefined),
  multipleOf: (value) => (typeof value === 'number' && value > 0 ? value : undefined),
  minimum: bound,
  maximum: bound,
  exclusiveMinimum: bound,
  exclusiveMaximum: bound,
  ...Object.fromEntries(
    ['Length', 'Items', 'Properties', 'Contains'].flatMap((what) => [
      [`min${what}`, size],
      [`max${what}`, size],
    ]),
  ),
  dependentRequired: (value) =>
    isFields(value) && Object.values(value).every(isTextList) ? value : undefined,
}

/** Keywords whose value is one schema. */
export const schemaKeywords: ReadonlySet<string> = new Set([
  'items',
  'additionalProperties',
  'unevaluatedProperties',
  'unevaluatedItems',
  'propertyNames',
  'contains',
  'not',
  'if',
  'then',
  'else',
])

/** Keywords whose value is a list of schemas. */
export const schemaLists: ReadonlySet<string> = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems'])

/** Keywords other than `properties` whose value is a map of schemas. */
export const schemaMaps: ReadonlySet<string> = new Set(['patternProperties', 'dependentSchemas'])

/** True for a regular expression that JSON Schema validators can compile. */
export function isPattern(source: string): boolean {
  if (source.length > maxPatternLength) return false
  try {
    return new RegExp(source, 'u') instanceof RegExp
  } catch {
    return false
  }
}

function text(value: unknown): unknown {
  return typeof value === 'string' ? value : undefined
}

function typeNames(value: unknown): unknown {
  if (jsonTypes.has(value)) return value
  if (!Array.isArray(value)) return undefined
  const known = [...new Set(value.filter((one) => jsonTypes.has(one)))]
  return known.length === 1 ? known[0] : known.length > 1 ? known : undefined
}

function isTextList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string')
}

/** Accepts the booleans of OpenAPI 3.0 for `exclusiveMinimum`, which the conversion rewrites. Rounds huge integers. */
function bound(value: unknown): unknown {
  if (isRawJson(value)) return Number(value.rawJSON)
  return typeof value === 'number' || typeof value === 'boolean' ? value : undefined
}

function size(value: unknown): unknown {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : undefined
}

/** Drops values with integers that a double would round, because the tool's schema would contain a wrong value. */
function exact(value: unknown): unknown {
  return hasRawJson(value) ? undefined : value
}

function hasRawJson(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return isRawJson(value) || Object.values(value).some(hasRawJson)
}
