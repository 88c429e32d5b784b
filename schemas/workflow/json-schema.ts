/**
 * JSON Schemas inside workflows: the parameters of the tool, and what an elicitation asks for. They are checked against
 * the meta-schema and never compiled.
 */
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { Problem } from '../problems.ts'
import { fieldsOf, isFields } from '../fields.ts'

let meta: Ajv2020 | undefined

/** What is wrong with the schema itself; undefined when it is one. */
function schemaFault(schema: object): string | undefined {
  meta ??= new Ajv2020({ strict: false, logger: false })
  const { $schema: _, ...plain } = schema as { $schema?: unknown }
  if (meta.validateSchema(plain)) return partFault(plain, plain, 0)
  const error = meta.errors?.[0]
  return `${error?.instancePath ?? ''} ${error?.message ?? 'is not a JSON Schema'}`.trim()
}

/** Deepest nesting of a schema. */
const maxDepth = 100

/** What the meta-schema cannot say, and compiling would find: references that lead nowhere, and broken patterns. */
function partFault(root: object, part: unknown, depth: number): string | undefined {
  if (depth > maxDepth) return 'it is nested too deep'
  if (Array.isArray(part)) return firstFault(root, part, depth)
  if (!isFields(part)) return undefined
  const { $ref: ref, pattern } = part
  if (typeof ref === 'string' && !leadsSomewhere(root, ref))
    return `the reference ${JSON.stringify(ref.slice(0, 80))} must lead to a part of the same schema`
  if (typeof pattern === 'string' && !isPattern(pattern)) return 'a pattern is not a regular expression'
  return firstFault(root, Object.values(part), depth)
}

function firstFault(root: object, parts: readonly unknown[], depth: number): string | undefined {
  for (const part of parts) {
    const fault = partFault(root, part, depth + 1)
    if (fault !== undefined) return fault
  }
  return undefined
}

/** JSON pointers into the schema, and names of anchors. */
function leadsSomewhere(root: object, ref: string): boolean {
  if (ref === '#') return true
  if (!ref.startsWith('#/')) return ref.startsWith('#') && hasAnchor(root, ref.slice(1), 0)
  let part: unknown = root
  for (const escaped of ref.slice(2).split('/')) {
    const key = decoded(escaped).replaceAll('~1', '/').replaceAll('~0', '~')
    const next: unknown = Array.isArray(part) ? part[Number(key)] : fieldsOf(part)[key]
    if (next === undefined || (isFields(part) && !Object.hasOwn(part, key))) return false
    part = next
  }
  return true
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function hasAnchor(part: unknown, name: string, depth: number): boolean {
  if (depth > maxDepth || typeof part !== 'object' || part === null) return false
  if (fieldsOf(part)['$anchor'] === name) return true
  return Object.values(part).some((inner) => hasAnchor(inner, name, depth + 1))
}

function isPattern(text: string): boolean {
  try {
    return new RegExp(text, 'u') instanceof RegExp
  } catch {
    return false
  }
}

export function parameterProblems(parameters: unknown, path: string): Problem[] {
  if (parameters === undefined || Object.keys(fieldsOf(parameters)).length === 0) return []
  const { type } = fieldsOf(parameters)
  if (type !== 'object') return [{ path: `${path}.type`, message: 'must be object' }]
  const fault = schemaFault(fieldsOf(parameters))
  return fault === undefined ? [] : [{ path, message: `is not a JSON Schema: ${fault}` }]
}

/** Size of what a user is asked. */
const maxBytes = 100 * 1024

const primitive: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean'])

/** MCP clients are asked flat forms only: an object of primitive properties. */
export function elicitationSchemaProblems(schema: unknown, path: string): Problem[] {
  if (!isFields(schema) || Object.keys(schema).length === 0) {
    return [{ path, message: 'is required for type elicitation' }]
  }
  if (schema['type'] !== 'object') return [{ path: `${path}.type`, message: 'must be object' }]
  if (JSON.stringify(schema).length > maxBytes)
    return [{ path, message: 'is too large to be shown to a user: more than 100 KiB' }]
  const fault = schemaFault(schema)
  if (fault !== undefined) return [{ path, message: `is not a JSON Schema: ${fault}` }]
  return Object.entries(fieldsOf(schema['properties'])).flatMap(([name, property]) =>
    isFlat(fieldsOf(property))
      ? []
      : [
          {
            path: `${path}.properties.${name}`,
            message: 'must be a string, number, integer, boolean or list of choices',
          },
        ],
  )
}

function isFlat({ type, items, enum: choices, oneOf }: Readonly<Record<string, unknown>>): boolean {
  if (primitive.has(type)) return true
  if (type === 'array')
    return isFields(items) && (Array.isArray(items['enum']) || Array.isArray(items['anyOf']))
  return type === undefined && (Array.isArray(choices) || Array.isArray(oneOf))
}
