/**
 * Reads an OpenAPI document and applies the rules that reject the whole document: size, depth, number of values,
 * repeated keys, aliases, versions other than 3.0 and 3.1, and external references.
 *
 * JSON and YAML 1.2 are accepted. The document is not checked against the OpenAPI meta-schema. Real documents often
 * violate it in places that do not matter for tools, so the conversion checks each field that it reads instead and
 * skips at most the affected operation.
 * Source: OpenAPI 3.0.4 and 3.1.1, "OpenAPI Object".
 */
import { exactJson } from '../../json/exact-json.ts'
import { type Fields, fieldsOf, isFields } from '../../validation/fields.ts'
import { below, shapeOf } from '../../validation/violations.ts'
import { readYamlTree } from '../../yaml/index.ts'
import { documentRejected } from '../failures.ts'
import { jsonFault } from './json-keys.ts'

const maxMebibytes = 5
const maxDepth = 100
const maxValues = 1_000_000
/** A document can contain markers in addition to the one before its content, because empty documents are ignored. */
const maxMarkers = 10

export interface OpenApiDocument {
  readonly root: Fields
  readonly title: string
  /** The `openapi` field. */
  readonly version: string
  /** True for 3.0, where keywords next to a `$ref` have no effect. */
  readonly is30: boolean
}

/** Parses and checks the text of a document, or checks a parsed document. Throws INVALID_CONFIG with `data.rule`. */
export function openDocument(source: unknown): OpenApiDocument {
  const root = typeof source === 'string' ? parse(source) : source
  if (!isFields(root))
    throw documentRejected(
      'structure',
      `expected an object with openapi, info and paths, got ${shapeOf(root)}`,
    )
  const version = versionOf(root)
  new BoundsWalk().visit(root, 'document')
  const { title } = fieldsOf(root['info'])
  return {
    root,
    title: typeof title === 'string' ? title.slice(0, 200) : '',
    version,
    is30: version.startsWith('3.0'),
  }
}

function parse(text: string): unknown {
  if (Buffer.byteLength(text) > maxMebibytes * 1024 * 1024)
    throw documentRejected('size', `the document is larger than ${maxMebibytes} MiB`)
  const json = text.replace(/^\uFEFF/, '')
  return /^\s*\{/.test(json) ? parseJson(json) : parseYaml(json)
}

function parseJson(text: string): unknown {
  const fault = jsonFault(text, maxDepth)
  if (fault?.kind === 'duplicate-key')
    throw documentRejected(
      'duplicate-key',
      `line ${fault.line}: the key ${JSON.stringify(fault.key.slice(0, 80))} is repeated`,
    )
  if (fault) throw documentRejected('depth', `line ${fault.line}: nested more than ${maxDepth} levels deep`)
  try {
    return exactJson(text)
  } catch (cause) {
    // A YAML flow map also starts with a brace.
    if (cause instanceof SyntaxError && text.length < 100_000) return parseYaml(text)
    throw documentRejected('syntax', 'the document is not valid JSON')
  }
}

function parseYaml(text: string): unknown {
  // The parser uses a lot of memory for each document.
  if ((text.match(/^---/gm)?.length ?? 0) > maxMarkers)
    throw documentRejected('structure', 'expected one YAML document, got several')
  const { documents, violations } = readYamlTree(text)
  const [first] = violations
  if (first) throw documentRejected(yamlRule(first.message), `${first.path}: ${first.message}`)
  const [only, another] = documents
  if (only === undefined || another !== undefined)
    throw documentRejected('structure', `expected one YAML document, got ${documents.length}`)
  return only.toJS({ maxAliasCount: -1 })
}

function yamlRule(message: string) {
  if (/^the key .* is repeated$/s.test(message)) return 'duplicate-key'
  if (message.includes('alias')) return 'aliases'
  return message.startsWith('is nested') ? 'depth' : 'syntax'
}

function versionOf({ openapi, swagger }: Fields): string {
  const found = typeof openapi === 'string' || typeof openapi === 'number' ? String(openapi) : undefined
  if (found !== undefined && /^3\.[01](\.\d+)?(-[\w.]+)?$/.test(found)) return found
  const shown =
    found === undefined && swagger !== undefined
      ? 'Swagger 2.0'
      : found === undefined
        ? 'a document without a version'
        : `OpenAPI ${found.slice(0, 20)}`
  throw documentRejected(
    'version',
    `expected OpenAPI 3.0 or 3.1, got ${shown}; convert the document, for example with @scalar/openapi-upgrader`,
  )
}

/** Members whose values are data. A `$ref` in such a value is not a reference. */
const dataMembers: ReadonlySet<string> = new Set(['example', 'examples', 'default', 'enum', 'const'])

/** Counts values, limits the depth and rejects references to other documents. */
class BoundsWalk {
  readonly #path: (string | number)[] = []
  #values = 0

  visit(value: unknown, kind: 'document' | 'data'): void {
    this.#values += 1
    if (this.#values > maxValues)
      throw documentRejected('values', `the document has more than ${maxValues} values`)
    if (this.#path.length > maxDepth)
      throw documentRejected('depth', `the document is nested more than ${maxDepth} levels deep`)
    if (Array.isArray(value)) for (const [index, item] of value.entries()) this.#member(index, item, kind)
    else if (isFields(value)) this.#object(value, kind)
  }

  #object(value: Fields, kind: 'document' | 'data'): void {
    const { $ref: reference } = value
    if (kind === 'document' && typeof reference === 'string' && !reference.startsWith('#')) {
      throw documentRejected(
        'external-reference',
        `${this.#path.reduce<string>(below, '')}: the $ref refers to another document; bundle all parts into one document`,
      )
    }
    const hasSchemas = this.#path.at(-1) === 'properties'
    for (const [name, member] of Object.entries(value)) {
      const isData = !hasSchemas && (dataMembers.has(name) || name.startsWith('x-'))
      this.#member(name, member, isData ? 'data' : kind)
    }
  }

  #member(key: string | number, value: unknown, kind: 'document' | 'data'): void {
    this.#path.push(key)
    this.visit(value, kind)
    this.#path.pop()
  }
}
