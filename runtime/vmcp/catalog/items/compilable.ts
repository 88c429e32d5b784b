/**
 * Tells whether clients can compile the schema of a tool's results.
 *
 * Clients of the first SDK generation compile all of these schemas while they read a list (as JSON Schema draft-07, with
 * Ajv), and one that cannot be compiled fails the list. Compiling here would cost too much, so the form is checked:
 * values of keywords, patterns, references. What is doubtful is taken for no.
 * Source: JSON Schema draft-07, validation; Ajv, "Strict mode" and "Managing schemas".
 */
import { isFields } from '../../../../schemas/index.ts'

type Json = Readonly<Record<string, unknown>>
type Check = (value: unknown, walk: Walk) => boolean

/** Members that give a part of a schema a name of its own, which must be the only one. */
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

/** What the value of each keyword must be; keywords that are not here are not looked at by clients. */
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
    // What needs other members beside it, or is no keyword of this draft but of an older one.
    [() => false, 'formatExclusiveMaximum formatExclusiveMinimum formatMaximum formatMinimum id nullable'],
  ]),
)

function keywords(rows: readonly (readonly [Check, string])[]): (readonly [string, Check])[] {
  return rows.flatMap(([check, names]) => names.split(' ').map((name) => [name, check] as const))
}

/** Beyond these a compiler may run out of stack. */
const maxReferences = 100
const maxDepth = 64
/** Beyond these, patterns take long to compile; a class of Unicode characters takes a third of a millisecond. */
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
  /** Schemas that were reached, in order; references lead on to others. */
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

  /** Notes a schema; its members are looked at later. */
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

  /** A reference must lead to a schema within the same document, and not in a circle of nothing but references. */
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

/** Not too deep, and no part of it has a name of its own. */
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
