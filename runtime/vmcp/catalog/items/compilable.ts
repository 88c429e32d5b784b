/**
 * Checks whether clients can compile a tool's output schema.
 *
 * First-generation SDK clients use Ajv to compile all output schemas as JSON Schema draft-07 when they read a list. A
 * client rejects the whole list if one schema fails. Compiling the schemas in Gatehouse would be too expensive. This
 * module checks only the form of keyword values, patterns and references. Doubtful schemas are rejected.
 * Source: JSON Schema draft-07, validation; Ajv, "Strict mode" and "Managing schemas".
 */
import { isFields } from '../../../../schemas/index.ts'

type Json = Readonly<Record<string, unknown>>
type Check = (value: unknown, walk: Walk) => boolean

/**
 * Members that name a part of a schema or make the schema asynchronous. A schema that contains one of these members is
 * rejected, except for `$id` at the root.
 */
const nameKeywords: ReadonlySet<string> = new Set(['$id', '$anchor', '$dynamicAnchor', '$async'])
const types: ReadonlySet<unknown> = new Set([
  'string',
  'number',
  'integer',
  'boolean',
  'null',
  'object',
  'array',
])
const rootId = /^[a-z][a-z0-9+.-]*:\/\/[\w./~-]+$/i
const pointerText = /^#(?:\/[\w.$~-]+)*$/

const isNumber: Check = (value) => typeof value === 'number'
const isText: Check = (value) => typeof value === 'string'
const isBoolean: Check = (value) => typeof value === 'boolean'
const isTexts: Check = (value) => isList(value, (item) => typeof item === 'string')
const isSchema: Check = (value, walk) => walk.schema(value)
const isSchemas: Check = (value, walk) =>
  Array.isArray(value) && value.length > 0 && isList(value, (item) => walk.schema(item))
const isMap: Check = (value, walk) =>
  isFields(value) && Object.values(value).every((item) => walk.schema(item))
const isPattern: Check = (value, walk) => typeof value === 'string' && walk.pattern(value)

/** The check for each keyword. Clients ignore all keywords that are not in this table. */
const keywordTable: ReadonlyMap<string, Check> = new Map(
  keywords([
    [isSchema, 'additionalItems additionalProperties contains else if not propertyNames then'],
    [isSchemas, 'allOf anyOf oneOf'],
    [isMap, 'properties'],
    [
      (value, walk) => isMap(value, walk) && Object.keys(value as Json).every((name) => walk.pattern(name)),
      'patternProperties',
    ],
    [(value, walk) => walk.schema(value) || isList(value, (item) => walk.schema(item)), 'items'],
    [(value, walk) => isDependencies(value, walk), 'dependencies'],
    [isTexts, 'required'],
    [isText, '$schema format'],
    [isPattern, 'pattern'],
    [isBoolean, 'uniqueItems'],
    [isNumber, 'exclusiveMaximum exclusiveMinimum maximum minimum multipleOf'],
    [isNumber, 'maxItems maxLength maxProperties minItems minLength minProperties'],
    [(value) => Array.isArray(value) && value.length > 0, 'enum'],
    [(value) => types.has(value) || isList(value, (item) => types.has(item)), 'type'],
    [(value, walk) => typeof value === 'string' && walk.reference(value), '$ref'],
    // Keywords that require other members or belong to an older draft.
    [() => false, 'formatExclusiveMaximum formatExclusiveMinimum formatMaximum formatMinimum id nullable'],
  ]),
)

function keywords(rows: readonly (readonly [Check, string])[]): (readonly [string, Check])[] {
  return rows.flatMap(([check, names]) => names.split(' ').map((name) => [name, check] as const))
}

/** With more references or deeper nesting, a compiler may overflow the stack. */
const maxReferences = 100
const maxDepth = 64
/** Larger patterns take a long time to compile. Compiling a Unicode class takes a third of a millisecond. */
const maxPatternLength = 16 * 1024
const maxUnicodeClasses = 32

export function isCompilable(schema: unknown): boolean {
  if (!isFields(schema)) return false
  const { $id, ...rest } = schema
  if ($id !== undefined && !(typeof $id === 'string' && rootId.test($id))) return false
  return isPlain(rest, 0) && new Walk(rest).all()
}

class Walk {
  readonly #root: Json
  /** The schemas found so far, in order. A reference may add another schema. */
  readonly #reached = new Set<Json>()
  #references = 0
  #patterns = 0
  #unicodeClasses = 0

  constructor(root: Json) {
    this.#root = root
    this.#reached.add(root)
  }

  all(): boolean {
    for (const schema of this.#reached) {
      const fits = Object.entries(schema).every(
        ([name, value]) => keywordTable.get(name)?.(value, this) ?? true,
      )
      if (!fits) return false
    }
    return true
  }

  /** Adds a schema. Its members are checked later. */
  schema(value: unknown): boolean {
    if (typeof value === 'boolean') return true
    if (!isFields(value)) return false
    this.#reached.add(value)
    return true
  }

  pattern(text: string): boolean {
    this.#patterns += text.length
    this.#unicodeClasses += text.split(/\\p/i).length - 1
    return this.#patterns <= maxPatternLength && this.#unicodeClasses <= maxUnicodeClasses && compiles(text)
  }

  /**
   * Checks a reference. The reference must point to a schema within the document, and must not be part of a cycle that
   * consists only of references.
   */
  reference(pointer: string): boolean {
    if (++this.#references > maxReferences) return false
    let target = this.#target(pointer)
    for (let hops = 0; isFields(target) && target['$ref'] !== undefined; hops++) {
      if (hops === maxReferences) return false
      target = this.#target(target['$ref'])
    }
    return this.schema(target)
  }

  #target(pointer: unknown): unknown {
    if (typeof pointer !== 'string' || !pointerText.test(pointer)) return undefined
    let target: unknown = this.#root
    for (const step of pointer.split('/').slice(1)) {
      const name = step.replaceAll('~1', '/').replaceAll('~0', '~')
      if (!isFields(target) || !Object.hasOwn(target, name)) return undefined
      target = target[name]
    }
    return target
  }
}

function isList(value: unknown, each: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(each)
}

function isDependencies(value: unknown, walk: Walk): boolean {
  return isFields(value) && Object.values(value).every((item) => isTexts(item, walk) || walk.schema(item))
}

/** True for a schema that is not too deep and contains no named parts. */
function isPlain(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  if (depth > maxDepth) return false
  return Object.entries(value).every(
    ([name, member]) => !nameKeywords.has(name) && isPlain(member, depth + 1),
  )
}

function compiles(pattern: string): boolean {
  try {
    return Boolean(new RegExp(pattern, 'u'))
  } catch {
    return false
  }
}
