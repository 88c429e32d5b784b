/**
 * The schemas inside a JSON Schema: which members of a schema are schemas themselves.
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
/** A list of names in `dependencies` holds no schema. */
const maps: ReadonlySet<string> = new Set([
  '$defs',
  'definitions',
  'dependencies',
  'dependentSchemas',
  'patternProperties',
  'properties',
])

/** Those whose schemas are applied to the value itself, not to a part of it. */
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

/** A schema with `change` made to each schema in it, the innermost first; `own` are the members that hold no schema. */
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

/** A schema and all schemas in it. */
export function* schemasIn(schema: unknown): Generator<Fields> {
  if (!isFields(schema)) return
  yield schema
  for (const [keyword, value] of Object.entries(schema)) {
    for (const inner of schemasOf(keyword, value)) yield* schemasIn(inner)
  }
}

/** The schemas in a schema that are applied to the same value as it is itself. */
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

/** How many schemas a schema is made of, itself included. */
export function countSchemas(schema: unknown): number {
  return [...schemasIn(schema)].length
}
