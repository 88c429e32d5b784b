/**
 * Visits the subschemas of a JSON Schema.
 * Source: JSON Schema 2020-12, core (applicators), and the older `definitions` and `dependencies`.
 */
import { isFields, type Fields } from '../validation/fields.ts'

const single: ReadonlySet<string> = new Set([
  'additionalProperties',
  'contains',
  'else',
  'if',
  'items',
  'not',
  'propertyNames',
  'then',
  'unevaluatedItems',
  'unevaluatedProperties',
])
const lists: ReadonlySet<string> = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems'])
/** Skips a list of names in `dependencies`, which contains no schema. */
const maps: ReadonlySet<string> = new Set([
  '$defs',
  'definitions',
  'dependencies',
  'dependentSchemas',
  'patternProperties',
  'properties',
])

/** Keywords whose schemas apply to the value itself, not to a part of it. */
const inPlace: ReadonlySet<string> = new Set([
  'allOf',
  'anyOf',
  'dependencies',
  'dependentSchemas',
  'else',
  'if',
  'not',
  'oneOf',
  'then',
])

/**
 * Returns a schema with `change` applied to each subschema, innermost first. `own` contains the members whose values
 * are not schemas.
 */
export function mapSchemas(schema: unknown, change: (schema: Fields, own: Fields) => Fields): unknown {
  if (!isFields(schema)) return schema
  const inner = (value: unknown) => mapSchemas(value, change)
  const made: [string, unknown][] = []
  const own: [string, unknown][] = []
  for (const [keyword, value] of Object.entries(schema)) {
    if (single.has(keyword)) made.push([keyword, inner(value)])
    else if (lists.has(keyword) && Array.isArray(value)) made.push([keyword, value.map(inner)])
    else if (maps.has(keyword) && isFields(value)) {
      const members = Object.entries(value).map(([name, one]) => [name, inner(one)] as const)
      made.push([keyword, Object.fromEntries(members)])
    } else own.push([keyword, value])
  }
  return change(Object.fromEntries([...own, ...made]), Object.fromEntries(own))
}

/** Yields a schema and all of its subschemas. */
export function* schemasIn(schema: unknown): Generator<Fields> {
  if (!isFields(schema)) return
  yield schema
  for (const [keyword, value] of Object.entries(schema)) {
    for (const inner of schemasOf(keyword, value)) yield* schemasIn(inner)
  }
}

/** Returns the subschemas that apply to the same value as the schema itself. */
export function schemasAppliedInPlace(schema: Fields): unknown[] {
  return Object.entries(schema).flatMap(([keyword, value]) =>
    inPlace.has(keyword) ? schemasOf(keyword, value) : [],
  )
}

function schemasOf(keyword: string, value: unknown): readonly unknown[] {
  if (single.has(keyword)) return [value]
  if (lists.has(keyword) && Array.isArray(value)) return value
  return maps.has(keyword) && isFields(value) ? Object.values(value) : []
}

/** Returns the number of subschemas, including the schema itself. */
export function countSchemas(schema: unknown): number {
  return [...schemasIn(schema)].length
}
