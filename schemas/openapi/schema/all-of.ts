/** Merges the members of `allOf` into one schema, because clients and models handle a merged schema better. */
import { canonicalJson } from '../../canonical.ts'
import { type Fields, fieldsOf, isFields, listOf, own } from '../../validation/fields.ts'

/** Keywords that do not affect which values are valid. A merge keeps the value from the first schema. */
const annotations: ReadonlySet<string> = new Set(['title', 'description', 'default', 'deprecated', 'format'])

/** Keywords that apply to the properties of their own schema only, so a merge would change their meaning. */
const closing: ReadonlySet<string> = new Set([
  'additionalProperties',
  'patternProperties',
  'unevaluatedProperties',
])

/** Returns a schema that accepts the values that all `parts` accept; undefined if the parts cannot be merged. */
export function mergeSchemas(parts: readonly Fields[]): Fields | undefined {
  const isAlone = parts.filter((part) => Object.keys(part).length > 0).length < 2
  const isClosed = parts.some((part) => Object.keys(part).some((keyword) => closing.has(keyword)))
  if (isClosed && !isAlone) return undefined
  const merged = new Map<string, unknown>()
  for (const [keyword, value] of parts.flatMap((part) => Object.entries(part))) {
    const known = merged.get(keyword)
    if (known === undefined) merged.set(keyword, value)
    else if (keyword === 'required') merged.set(keyword, [...new Set([...listOf(known), ...listOf(value)])])
    else if (keyword === 'properties') {
      const properties = mergeProperties(fieldsOf(known), fieldsOf(value))
      if (properties === undefined) return undefined
      merged.set(keyword, properties)
    } else if (!annotations.has(keyword) && !isEqual(known, value)) return undefined
  }
  return Object.fromEntries(merged)
}

/** Returns undefined if the schemas define a property differently, apart from annotations. */
function mergeProperties(first: Fields, second: Fields): Fields | undefined {
  const merged = new Map(Object.entries(first))
  for (const [name, schema] of Object.entries(second)) {
    const known = own(first, name)
    if (known === undefined) merged.set(name, schema)
    else if (!isEqual(withoutAnnotations(known), withoutAnnotations(schema))) return undefined
  }
  return Object.fromEntries(merged)
}

function withoutAnnotations(schema: unknown): unknown {
  if (!isFields(schema)) return schema
  return Object.fromEntries(Object.entries(schema).filter(([keyword]) => !annotations.has(keyword)))
}

function isEqual(a: unknown, b: unknown): boolean {
  return a === b || canonicalJson(a) === canonicalJson(b)
}
