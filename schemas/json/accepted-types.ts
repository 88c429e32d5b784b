/**
 * Finds the JSON types that a JSON Schema accepts for a value or for a part of it. Follows `$ref`, `allOf`, `anyOf` and
 * `oneOf`, because generators such as Pydantic often do not write a `type` directly below an argument's name.
 * Source: JSON Schema 2020-12, core, "Applying Subschemas".
 */
import { type Fields, fieldsOf, isFields, listOf, own } from '../validation/fields.ts'

const schemaTypes = ['string', 'integer', 'number', 'boolean', 'object', 'array', 'null'] as const
export type SchemaType = (typeof schemaTypes)[number]

/** Path of member names and list indexes. */
export type ValuePath = readonly (string | number)[]

/** Maximum number of schemas that one search visits. The schema comes from a server and may refer to itself. */
const maxVisited = 1_000
/**
 * The maximum number of list items and reference characters that one search reads. A cycle may visit the same long list
 * repeatedly.
 */
const maxRead = 100_000

/**
 * Returns the types that `root` accepts at `path`. Returns an empty list when the schema does not restrict the type at
 * `path`. Also returns an empty list when the search visits more than 1,000 schemas, or reads more than 100,000 list
 * items and reference characters.
 */
export function acceptedTypes(root: unknown, path: ValuePath = []): readonly SchemaType[] {
  const search = new TypeSearch(root)
  const found = search.types(root, path)
  return search.isExhausted ? [] : (found ?? [])
}

/** True when a value has the type. An integer can be a bigint. */
export function isOfType(value: unknown, type: SchemaType): boolean {
  switch (type) {
    case 'integer':
      return typeof value === 'bigint' || Number.isInteger(value)
    case 'number':
      return typeof value === 'bigint' || typeof value === 'number'
    case 'object':
      return isFields(value)
    case 'array':
      return Array.isArray(value)
    case 'null':
      return value === null
    default:
      return typeof value === type
  }
}

/** Returns the subschema that a reference such as `#/$defs/Name` points to, or undefined. */
export function pointedSchema(root: unknown, reference: string): unknown {
  if (reference === '#') return root
  if (!reference.startsWith('#/')) return undefined
  let part: unknown = root
  for (const escaped of reference.slice(2).split('/')) {
    const key = decoded(escaped).replaceAll('~1', '/').replaceAll('~0', '~')
    part = Array.isArray(part) ? part[Number(key)] : own(fieldsOf(part), key)
    if (part === undefined) return undefined
  }
  return part
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const listingKeywords = ['$ref', 'type', 'enum', 'allOf', 'anyOf', 'oneOf'] as const

/** Accepted types; undefined when the schema accepts every type. */
type Types = readonly SchemaType[] | undefined

class TypeSearch {
  readonly #root: unknown
  #visited = 0
  #read = 0

  constructor(root: unknown) {
    this.#root = root
  }

  get isExhausted(): boolean {
    return this.#visited > maxVisited || this.#read > maxRead
  }

  types(schema: unknown, path: ValuePath): Types {
    this.#visited += 1
    if (this.isExhausted || !isFields(schema)) return undefined
    this.#read += readLength(schema)
    if (this.isExhausted) return undefined
    const reference = schema['$ref']
    const referenced =
      typeof reference === 'string' ? this.types(pointedSchema(this.#root, reference), path) : undefined
    const parts = [
      this.#own(schema, path),
      referenced,
      ...listOf(schema['allOf']).map((inner) => this.types(inner, path)),
      this.#alternatives(schema['anyOf'], path),
      this.#alternatives(schema['oneOf'], path),
    ]
    return parts.reduce(intersection, undefined)
  }

  /** Returns the types that the schema's own keywords accept. Empty when no accepted value can contain the path. */
  #own(schema: Fields, path: ValuePath): Types {
    const named = namedTypes(schema)
    const [step, ...rest] = path
    if (step === undefined) return named
    if (named && !named.includes(typeof step === 'string' ? 'object' : 'array')) return []
    const inner = typeof step === 'string' ? memberSchema(schema, step) : itemSchema(schema, step)
    return inner === undefined ? undefined : this.types(inner, rest)
  }

  /** Ignores alternatives that do not describe the part at `path`, if another alternative describes it. */
  #alternatives(list: unknown, path: ValuePath): Types {
    const all = listOf(list).map((inner) => this.types(inner, path))
    const known = all.filter((types) => types !== undefined)
    if (known.length === 0 || (path.length === 0 && known.length < all.length)) return undefined
    return [...new Set(known.flat())]
  }
}

/** Counts the list items and reference characters that a visit to `schema` reads, without its subschemas. */
function readLength(schema: Fields): number {
  return listingKeywords.reduce((sum, keyword) => {
    const value = schema[keyword]
    return typeof value === 'string' || Array.isArray(value) ? sum + value.length : sum
  }, 0)
}

function namedTypes(schema: Fields): Types {
  const { type } = schema
  const listed = (Array.isArray(type) ? type : [type]).filter(isSchemaType)
  if (listed.length > 0) return listed
  if (Object.hasOwn(schema, 'const')) return [typeOf(schema['const'])]
  const values = schema['enum']
  return Array.isArray(values) && values.length > 0 ? [...new Set(values.map(typeOf))] : undefined
}

function isSchemaType(type: unknown): type is SchemaType {
  return (schemaTypes as readonly unknown[]).includes(type)
}

function typeOf(value: unknown): SchemaType {
  return schemaTypes.find((type) => isOfType(value, type)) ?? 'null'
}

function memberSchema(schema: Fields, name: string): unknown {
  return own(fieldsOf(schema['properties']), name) ?? schema['additionalProperties']
}

/** Before JSON Schema 2020-12, `items` could be a list of schemas by position. */
function itemSchema({ prefixItems, items, additionalItems }: Fields, index: number): unknown {
  const byPosition = Array.isArray(items) ? items : listOf(prefixItems)
  return byPosition[index] ?? (Array.isArray(items) ? additionalItems : items)
}

/** The type `number` includes integers. */
function intersection(a: Types, b: Types): Types {
  if (!a || !b) return a ?? b
  const accepts = (types: readonly SchemaType[], type: SchemaType): boolean =>
    types.includes(type) || (type === 'integer' && types.includes('number'))
  return [...new Set([...a, ...b])].filter((type) => accepts(a, type) && accepts(b, type))
}
