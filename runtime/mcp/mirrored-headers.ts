/**
 * Headers that mirror parts of the body. The header values use the base64 sentinel encoding. A tool uses `x-mcp-header`
 * annotations to request `Mcp-Param-*` headers.
 *
 * Source: MCP 2026-07-28, streamable HTTP, "Request Metadata".
 */
import { isUtf8 } from 'node:buffer'
import { GatehouseError, isFields } from '../../schemas/index.ts'
import type { JsonObject } from './json/object.ts'
import { JsonError } from './json/errors.ts'
import { readString } from './json/bytes.ts'
import { whyUnread } from './message.ts'
import { headerName } from './protocol.ts'

const prefix = '=?base64?'
const suffix = '?='
/** Matches visible ASCII with inner whitespace. Such text is valid in a header without encoding. */
const plainText = /^[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?$/
const headerToken = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const base64Text = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** Encodes a value for a header. A safe value stays unchanged. Any other value becomes base64 in the sentinel. */
export function writeHeaderValue(value: string): string {
  const sentinel = value.startsWith(prefix) && value.endsWith(suffix)
  if (plainText.test(value) && !sentinel) return value
  return `${prefix}${Buffer.from(value).toString('base64')}${suffix}`
}

/** Decodes a header value. Returns undefined if the sentinel does not contain base64-encoded UTF-8. */
export function readHeaderValue(header: string): string | undefined {
  if (!header.startsWith(prefix) || !header.endsWith(suffix)) return header
  const encoded = header.slice(prefix.length, -suffix.length)
  if (!base64Text.test(encoded)) return undefined
  const bytes = Buffer.from(encoded, 'base64')
  return isUtf8(bytes) ? bytes.toString() : undefined
}

/** An argument that a header mirrors, with its path in the arguments, its type, and the header's name. */
export interface MirroredArgument {
  readonly path: readonly string[]
  readonly header: string
  readonly type: 'string' | 'integer' | 'boolean'
}

type Schema = Readonly<Record<string, unknown>>

/**
 * Collects the annotations in an input schema. Throws a RangeError that contains the violated rule. A tool with an
 * invalid annotation must not be offered.
 */
export function mirroredArguments(inputSchema: unknown): MirroredArgument[] {
  const found: MirroredArgument[] = []
  collect(inputSchema, [], { reachable: true }, found, 0)
  const names = new Set(found.map(({ header }) => header.toLowerCase()))
  if (names.size !== found.length) throw new RangeError('two arguments have the same x-mcp-header')
  return found
}

/** Walks the whole schema. An annotation outside of `properties` is an error. */
function collect(
  schema: unknown,
  path: readonly string[],
  { reachable }: { readonly reachable: boolean },
  found: MirroredArgument[],
  depth: number,
): void {
  if (depth > 64) throw new RangeError('the input schema is nested too deeply')
  if (Array.isArray(schema)) {
    for (const part of schema) collect(part, path, { reachable: false }, found, depth + 1)
    return
  }
  if (!isFields(schema)) return
  if (Object.hasOwn(schema, 'x-mcp-header')) found.push(readAnnotation(schema, path, { reachable }))
  for (const [key, value] of Object.entries(schema)) {
    if (key === 'properties') collectProperties(value, path, { reachable }, found, depth)
    else if (!dataKeywords.has(key)) collect(value, path, { reachable: false }, found, depth + 1)
  }
}

/** Keywords whose value is data instead of a schema. An `x-mcp-header` member in such a value is not an annotation. */
const dataKeywords: ReadonlySet<string> = new Set(['default', 'const', 'enum', 'examples', 'x-mcp-header'])

function collectProperties(
  properties: unknown,
  path: readonly string[],
  { reachable }: { readonly reachable: boolean },
  found: MirroredArgument[],
  depth: number,
): void {
  if (!isFields(properties)) return
  for (const [name, schema] of Object.entries(properties)) {
    collect(schema, [...path, name], { reachable }, found, depth + 1)
  }
}

function readAnnotation(
  schema: Schema,
  path: readonly string[],
  { reachable }: { readonly reachable: boolean },
): MirroredArgument {
  const header = schema['x-mcp-header']
  if (typeof header !== 'string' || !headerToken.test(header))
    throw new RangeError('x-mcp-header is not a valid header name')
  if (!reachable || path.length === 0) throw new RangeError('x-mcp-header is only allowed on arguments')
  const { type } = schema
  if (type !== 'string' && type !== 'integer' && type !== 'boolean') {
    throw new RangeError('x-mcp-header requires the type string, integer or boolean')
  }
  return { path, header, type }
}

/**
 * Returns the `Mcp-Param-*` headers for a call's params. Absent and null values do not get a header. Throws
 * INVALID_PARAMS if the arguments cannot be read.
 */
export function argumentHeaders(
  mirrored: readonly MirroredArgument[],
  params: JsonObject,
): Record<string, string> {
  const headers: Record<string, string> = {}
  const args = argumentsIn(params)
  for (const { path, header } of mirrored) {
    const value = textOf(args.raw(path))
    if (value !== undefined) headers[`${headerName.param}${header.toLowerCase()}`] = writeHeaderValue(value)
  }
  return headers
}

/**
 * Arguments, keyed by params. A call's params are inspected several times, but the arguments, which may be large, are
 * read only once.
 */
const argumentsByParams = new WeakMap<JsonObject, Arguments>()

function argumentsIn(params: JsonObject): Arguments {
  const known = argumentsByParams.get(params)
  if (known) return known
  const made = new Arguments(params)
  argumentsByParams.set(params, made)
  return made
}

/** The objects on the paths to the mirrored values. Other values are not decoded. */
class Arguments {
  readonly #objects = new Map<string, JsonObject | undefined>()
  readonly #params: JsonObject

  constructor(params: JsonObject) {
    this.#params = params
  }

  raw(path: readonly string[]): Buffer | undefined {
    return this.#object(path.slice(0, -1))?.raw(path.at(-1) ?? '')
  }

  #object(path: readonly string[]): JsonObject | undefined {
    const key = JSON.stringify(path)
    if (this.#objects.has(key)) return this.#objects.get(key)
    const last = path.at(-1)
    const object =
      last === undefined ? member(this.#params, 'arguments') : member(this.#object(path.slice(0, -1)), last)
    this.#objects.set(key, object)
    return object
  }
}

/**
 * Returns a member if its value is an object. Rejects an object with duplicate members, because the header could differ
 * from the value that the backend reads.
 */
function member(object: JsonObject | undefined, name: string): JsonObject | undefined {
  try {
    return object?.object(name)
  } catch (cause) {
    if (!(cause instanceof JsonError)) throw cause
    const why = whyUnread(cause) ?? 'the object cannot be read'
    throw new GatehouseError('INVALID_PARAMS', { detail: `Invalid params: arguments: ${why}`, cause })
  }
}

/**
 * Returns the header text of a primitive value. Returns undefined for other values, because such values are not
 * mirrored.
 */
function textOf(raw: Buffer | undefined): string | undefined {
  switch (raw?.[0]) {
    case undefined:
    case 0x5b: // [
    case 0x7b: // {
    case 0x6e: // null
      return undefined
    case 0x22:
      return raw && readString(raw, 0, raw.length)
    default:
      return String(JSON.parse(String(raw)))
  }
}

/**
 * Compares a call's `Mcp-Param-*` headers with its arguments. Returns the first header that is missing, malformed or
 * different. Returns undefined if all headers match. Integers are compared as numbers. Throws INVALID_PARAMS.
 */
export function mismatchedHeader(
  mirrored: readonly MirroredArgument[],
  params: JsonObject,
  headers: Readonly<Record<string, string | string[] | undefined>>,
): string | undefined {
  const args = argumentsIn(params)
  for (const { path, header, type } of mirrored) {
    const value = textOf(args.raw(path))
    const sent = headers[`${headerName.param}${header.toLowerCase()}`]
    if (value === undefined) {
      if (sent !== undefined) return header
      continue
    }
    const read = typeof sent === 'string' ? readHeaderValue(sent) : undefined
    if (read === undefined) return header
    const same = type === 'integer' && read !== '' ? Number(read) === Number(value) : read === value
    if (!same) return header
  }
  return undefined
}
