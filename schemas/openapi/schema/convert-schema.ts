/**
 * Converts a schema of OpenAPI 3.0 or 3.1 to a self-contained JSON Schema 2020-12.
 *
 * References are inlined, because several clients reject `$ref`. A schema that contains itself is inlined up to a depth
 * of eight references, below which it becomes `{}`. A schema that is still too large is inlined again to a depth of
 * four, two and one. The work for each schema and for all schemas is bounded, so nested references cannot exhaust
 * memory.
 * Source: OpenAPI 3.0.4 and 3.1.1, "Schema Object".
 */
import { type Fields, fieldsOf, isFields, listOf, own } from '../../validation/fields.ts'
import { mergeSchemas } from './all-of.ts'
import { documentRejected, OperationSkipped } from '../failures.ts'
import { isPattern, plainKeywords, schemaKeywords, schemaLists, schemaMaps } from './keywords.ts'
import type { References } from '../document/references.ts'
import type { CredentialParameter } from '../model.ts'

/** Maximum depth of references in each attempt to convert a schema. The first attempt cuts only cycles. */
const attempts = [8, 4, 2, 1] as const
/** Maximum cost of one schema, in units: one unit per value, and one per 64 characters of text. */
const maxUnits = 3_000
/** Maximum cost of all schemas of a document: about a hundred times the cost of a large real document. */
const maxTotalUnits = 4_000_000
/** Maximum length of the text in a document's schemas, several times as long as in a large real document. */
const maxTotalCharacters = 32_000_000
const maxDescriptionLength = 1_000
/** Maximum depth of a converted schema, so that no schema exhausts the stack. */
const maxDepth = 200

/** States whether a schema describes requests or responses. */
export type SchemaDirection = 'request' | 'response'

/** Receives a code and a message about a part that the conversion left out. */
export type ReportNotice = (code: string, message: string) => void

/** References, schema converter and notice receiver for the conversion of one operation. */
export interface OperationConversion {
  readonly references: References
  readonly schemas: SchemaConverter
  readonly note: ReportNotice
  readonly credential?: CredentialParameter | undefined
  /** Lowercase names of the headers that the gateway sets. */
  readonly configuredHeaders: ReadonlySet<string>
}

/** Thrown when one attempt exceeds `maxUnits`, and by `convert` when all attempts do. */
const tooLarge = new OperationSkipped('schema_too_large', `the schema has more than ${maxUnits} parts`)

export class SchemaConverter {
  readonly #references: References
  readonly #is30: boolean
  #total = 0
  #characters = 0

  constructor(references: References, { is30 }: { readonly is30: boolean }) {
    this.#references = references
    this.#is30 = is30
  }

  /** Returns the converted schema. Throws OperationSkipped, or INVALID_CONFIG when the document expands too much. */
  convert(schema: unknown, direction: SchemaDirection, note: ReportNotice): Fields {
    for (const levels of attempts) {
      if (this.#total > maxTotalUnits)
        throw documentRejected('expansion', 'the schemas expand to too many parts; select fewer operations')
      const attempt = new Attempt(this.#references, direction, { levels, is30: this.#is30 })
      try {
        const converted = attempt.schema(schema)
        attempt.report(note)
        this.#characters += attempt.characters
        if (this.#characters > maxTotalCharacters)
          throw documentRejected(
            'expansion',
            `the schemas contain more than ${maxTotalCharacters} characters of text; select fewer operations`,
          )
        return converted
      } catch (error) {
        if (error !== tooLarge) throw error
      } finally {
        this.#total += attempt.units
      }
    }
    throw tooLarge
  }
}

interface AttemptOptions {
  readonly levels: number
  readonly is30: boolean
}

class Attempt {
  units = 0
  characters = 0
  #depth = 0
  readonly #references: References
  readonly #direction: SchemaDirection
  readonly #options: AttemptOptions
  /** References that contain the current schema. */
  readonly #open: string[] = []
  readonly #cut = new Set<string>()
  readonly #invalid = new Set<string>()

  constructor(references: References, direction: SchemaDirection, options: AttemptOptions) {
    this.#references = references
    this.#direction = direction
    this.#options = options
  }

  report(note: ReportNotice): void {
    if (this.#cut.size > 0)
      note(
        'reference_cut',
        `the ${this.#direction} schema accepts any value for nested references to ${listed(this.#cut)}`,
      )
    if (this.#invalid.size > 0)
      note(
        'schema_keyword',
        `the ${this.#direction} schema omits keywords with invalid values: ${listed(this.#invalid)}`,
      )
  }

  /** Adds to `hidden` the properties of the object that this direction omits. */
  schema(value: unknown, hidden?: Set<string>): Fields {
    this.#spend(1)
    if (value === true) return {}
    if (value === false) return { not: {} }
    if (!isFields(value)) {
      this.#invalid.add('a schema')
      return {}
    }
    this.#enter(value)
    if (this.#depth >= maxDepth) throw tooLarge
    this.#depth += 1
    const omitted = hidden ?? new Set<string>()
    const converted =
      typeof value['$ref'] === 'string'
        ? this.#reference(value['$ref'], value, omitted)
        : this.#own(value, omitted)
    this.#depth -= 1
    return hidden === undefined ? withoutRequired(converted, omitted) : converted
  }

  #reference(reference: string, { $ref: _, ...siblings }: Fields, hidden: Set<string>): Fields {
    const { levels, is30 } = this.#options
    const isCycle = this.#open.includes(reference)
    let target: Fields = {}
    if (this.#open.length >= levels && (isCycle || levels < attempts[0])) this.#cut.add(reference)
    else {
      this.#open.push(reference)
      target = this.schema(this.#references.target(reference), hidden)
      this.#open.pop()
    }
    if (is30 || Object.keys(siblings).length === 0) return target
    const local = this.#own(siblings, hidden)
    return mergeSchemas([local, target]) ?? { ...local, allOf: [...listOf(local['allOf']), target] }
  }

  #own(value: Fields, hidden: Set<string>): Fields {
    const made: Record<string, unknown> = {}
    for (const [keyword, part] of Object.entries(value)) {
      const converted = this.#keyword(keyword, part, hidden)
      if (converted !== undefined) made[keyword] = converted
    }
    if (Array.isArray(value['items'])) {
      delete made['items']
      made['prefixItems'] = value['items'].map((item) => this.schema(item))
    }
    return withNull(value['nullable'] === true, withMergedParts(withNumericBounds(made)))
  }

  /** Returns undefined to drop the keyword. */
  #keyword(keyword: string, part: unknown, hidden: Set<string>): unknown {
    const read = own(plainKeywords, keyword)
    if (read) {
      if (typeof part !== 'string') this.#data(part)
      return this.#plain(keyword, read(part), part)
    }
    if (typeof part === 'object' && part !== null) this.#enter(part)
    if (keyword === '$dynamicRef' || keyword === '$recursiveRef') return this.#drop(keyword)
    if (keyword === 'properties') return isFields(part) ? this.#properties(part, hidden) : this.#drop(keyword)
    if (schemaKeywords.has(keyword)) {
      if (typeof part === 'boolean' && keyword !== 'items') return part
      return Array.isArray(part) ? undefined : this.schema(part)
    }
    if (schemaLists.has(keyword)) {
      if (!Array.isArray(part) || part.length === 0) return this.#drop(keyword)
      return part.map((one) => this.schema(one, keyword === 'allOf' ? hidden : undefined))
    }
    if (!schemaMaps.has(keyword)) return undefined
    if (!isFields(part)) return this.#drop(keyword)
    const names = Object.entries(part).filter(([name]) => keyword !== 'patternProperties' || isPattern(name))
    return Object.fromEntries(names.map(([name, one]) => [name, this.schema(one)]))
  }

  #plain(keyword: string, kept: unknown, part: unknown): unknown {
    if (kept === undefined) {
      // `required: true` next to a property is a common mistake that other tools ignore.
      const isHarmless = part === false || (keyword === 'required' && part === true)
      return isHarmless ? undefined : this.#drop(keyword)
    }
    if (keyword === 'description' && typeof kept === 'string')
      return this.#text(clipped(kept, maxDescriptionLength))
    return typeof kept === 'string' ? this.#text(kept) : kept
  }

  #text(text: string): string {
    this.characters += text.length
    this.#spend(Math.floor(text.length / 64))
    return text
  }

  #drop(keyword: string): undefined {
    this.#invalid.add(keyword.slice(0, 40))
  }

  #properties(properties: Fields, hidden: Set<string>): Fields {
    const kept: [string, Fields][] = []
    for (const [name, schema] of Object.entries(properties)) {
      if (this.#isOmitted(schema)) hidden.add(name)
      else kept.push([name, this.schema(schema)])
      this.#text(name)
    }
    return Object.fromEntries(kept)
  }

  /** True for readOnly members of a request and writeOnly members of a response. */
  #isOmitted(schema: unknown): boolean {
    const flag = this.#direction === 'request' ? 'readOnly' : 'writeOnly'
    const { $ref: reference, [flag]: isFlagged } = fieldsOf(schema)
    if (typeof reference !== 'string') return isFlagged === true
    if (isFlagged === true && !this.#options.is30) return true
    return fieldsOf(this.#references.target(reference))[flag] === true
  }

  /** Spends units for every value in JSON data, such as a default or an enum's list. */
  #data(value: unknown): void {
    if (typeof value === 'string') this.#text(value)
    if (typeof value !== 'object' || value === null) return
    this.#enter(value)
    for (const [name, member] of Object.entries(value)) {
      this.#spend(1)
      this.#text(name)
      this.#data(member)
    }
  }

  /** Spends units for the members of an object or list before the members are read. */
  #enter(container: object): void {
    this.#spend(Math.floor(this.#references.limitMembers(container) / 16))
  }

  #spend(units: number): void {
    this.units += units
    if (this.units > maxUnits) throw tooLarge
  }
}

/** Rewrites the boolean `exclusiveMinimum` of OpenAPI 3.0 as the number that JSON Schema 2020-12 requires. */
function withNumericBounds(schema: Fields): Fields {
  const made: Record<string, unknown> = { ...schema }
  for (const [flag, limit] of [
    ['exclusiveMinimum', 'minimum'],
    ['exclusiveMaximum', 'maximum'],
  ] as const) {
    if (typeof made[flag] !== 'boolean') continue
    const isExclusive = made[flag]
    delete made[flag]
    if (!isExclusive || typeof made[limit] !== 'number') continue
    made[flag] = made[limit]
    delete made[limit]
  }
  for (const limit of ['minimum', 'maximum']) if (typeof made[limit] === 'boolean') delete made[limit]
  return made
}

function withMergedParts(schema: Fields): Fields {
  const { allOf, ...rest } = schema
  if (!Array.isArray(allOf)) return schema
  return mergeSchemas([rest, ...allOf.filter(isFields)]) ?? schema
}

/** Adds null to the accepted values of a nullable schema. */
function withNull(isNullable: boolean, schema: Fields): Fields {
  if (!isNullable) return schema
  const { type, enum: values, ...rest } = schema
  if (type !== undefined) {
    const types = [...new Set([...(Array.isArray(type) ? type : [type]), 'null'])]
    const alternatives = Array.isArray(values) ? { enum: [...new Set([...values, null])] } : {}
    return { type: types, ...alternatives, ...rest }
  }
  for (const keyword of ['anyOf', 'oneOf'] as const) {
    const list = rest[keyword]
    if (Array.isArray(list)) return { ...schema, [keyword]: [...list, { type: 'null' }] }
  }
  return Object.keys(schema).length === 0 ? schema : { anyOf: [schema, { type: 'null' }] }
}

/** Removes omitted properties from `required`, including the lists of parts that could not be merged. */
function withoutRequired(schema: Fields, hidden: ReadonlySet<string>): Fields {
  if (hidden.size === 0) return schema
  const { required, ...rest } = schema
  const left = listOf(required).filter((name) => typeof name === 'string' && !hidden.has(name))
  const parts = rest['allOf']
  return {
    ...rest,
    ...(left.length > 0 && { required: left }),
    ...(Array.isArray(parts) && { allOf: parts.map((part) => withoutRequired(fieldsOf(part), hidden)) }),
  }
}

/** Shortens text at the end, without splitting a character. */
export function clipped(text: string, length: number): string {
  if (text.length <= length) return text
  const start = text.slice(0, length - 1)
  return `${start.isWellFormed() ? start : start.slice(0, -1)}…`
}

function listed(names: ReadonlySet<string>): string {
  const shown = [...names].slice(0, 3).map((name) => clipped(name, 80))
  return names.size > 3 ? `${shown.join(', ')} and ${names.size - 3} more` : shown.join(', ')
}
