/**
 * Closes a schema. An object then accepts only the members that its schema names, unless the schema mentions additional
 * members. A schema that only describes an object as a whole (`type: object` without members) stays open, because it
 * was approved in that form.
 *
 * Schemas that apply to the same object (branches of anyOf and oneOf) are closed together by the enclosing schema.
 * Returns undefined for schemas that cannot be closed correctly. These are schemas with allOf, with more than 32
 * levels, or with certain references. A reference cannot be closed if it is combined with other rules or points to a
 * part that is not closed here.
 * Source: JSON Schema 2020-12, core, "unevaluatedProperties".
 */
import { fieldsOf, type Fields, isFields } from '../../../../schemas/index.ts'

const maxDepth = 32
const maps = ['properties', 'patternProperties', '$defs', 'definitions'] as const
const single = ['items', 'additionalProperties', 'unevaluatedProperties', 'unevaluatedItems'] as const
/** Keywords with schemas that apply to the value itself. */
const branchLists = ['anyOf', 'oneOf'] as const
const branchSingle = ['then', 'else'] as const
/**
 * Keywords that map member names to schemas. In draft-07, `dependencies` may contain lists of names instead of schemas.
 */
const dependent = ['dependentSchemas', 'dependencies'] as const

/** Keywords that are allowed next to a reference, because they do not concern members. */
const allowedWithReference: ReadonlySet<string> = new Set(
  '$comment $defs $ref $schema default definitions deprecated description examples readOnly title type writeOnly'.split(
    ' ',
  ),
)
/** Locations of closed definitions. Definitions at other locations might not be closed. */
const closedLocation = /^#(?:\/(?:\$defs|definitions|properties)\/[^/]+)?$/
const unsupported = ['allOf', '$dynamicRef', '$recursiveRef', '$id'] as const

export function closeSchema(schema: Fields): Fields | undefined {
  try {
    return fieldsOf(closePart(schema, { depth: 0, isBranch: false }))
  } catch (error) {
    if (error === cannotClose) return undefined
    throw error
  }
}

const cannotClose = new Error('the schema cannot be closed')

interface SchemaPosition {
  readonly depth: number
  /** True if the enclosing schema closes this schema. */
  readonly isBranch: boolean
}

function closePart(schema: unknown, { depth, isBranch }: SchemaPosition): unknown {
  if (!isFields(schema)) return schema
  if (depth > maxDepth || unsupported.some((keyword) => schema[keyword] !== undefined)) throw cannotClose
  requireClosedTarget(schema)
  const part = (value: unknown): unknown => closePart(value, { depth: depth + 1, isBranch: false })
  const branch = (value: unknown): unknown => closePart(value, { depth: depth + 1, isBranch: true })
  const made: Fields = {
    ...mapKeywords(schema, single, part),
    ...mapKeywords(schema, ['prefixItems'], (list) => (Array.isArray(list) ? list.map(part) : list)),
    ...mapKeywords(schema, maps, (value) => eachMember(value, part)),
    ...mapKeywords(schema, branchSingle, branch),
    ...mapKeywords(schema, branchLists, (list) => (Array.isArray(list) ? list.map(branch) : list)),
    ...mapKeywords(schema, dependent, (value) => eachMember(value, branch)),
  }
  const isOpen = schema['additionalProperties'] === undefined && schema['unevaluatedProperties'] === undefined
  const closes = isOpen && !isBranch && (depth === 0 || namesMembers(schema))
  return { ...schema, ...made, ...(closes && { unevaluatedProperties: false }) }
}

function requireClosedTarget(schema: Fields): void {
  const { $ref } = schema
  if ($ref === undefined) return
  if (typeof $ref !== 'string' || !closedLocation.test($ref)) throw cannotClose
  if (Object.keys(schema).some((keyword) => !allowedWithReference.has(keyword))) throw cannotClose
}

function mapKeywords(
  schema: Fields,
  keywords: readonly string[],
  change: (value: unknown) => unknown,
): Record<string, unknown> {
  const present = keywords.filter((keyword) => schema[keyword] !== undefined)
  return Object.fromEntries(present.map((keyword) => [keyword, change(schema[keyword])]))
}

function eachMember(value: unknown, change: (value: unknown) => unknown): unknown {
  if (!isFields(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, change(one)]))
}

/** True if the schema contains member names, or if another schema for the same object does. */
function namesMembers(schema: unknown): boolean {
  if (!isFields(schema)) return false
  if (isFields(schema['properties']) || isFields(schema['patternProperties'])) return true
  const branches = [
    ...branchLists.flatMap((keyword) => {
      const list = schema[keyword]
      return Array.isArray(list) ? list : []
    }),
    ...branchSingle.map((keyword) => schema[keyword]),
    ...dependent.flatMap((keyword) => Object.values(fieldsOf(schema[keyword]))),
  ]
  return branches.some(namesMembers)
}
