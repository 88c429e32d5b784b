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
  if (meta.validateSchema(plain)) return undefined
  const error = meta.errors?.[0]
  return `${error?.instancePath ?? ''} ${error?.message ?? 'is not a JSON Schema'}`.trim()
}

export function parameterProblems(parameters: unknown, path: string): Problem[] {
  if (parameters === undefined || Object.keys(fieldsOf(parameters)).length === 0) return []
  const { type } = fieldsOf(parameters)
  if (type !== 'object') return [{ path: `${path}.type`, message: 'must be object' }]
  const fault = schemaFault(fieldsOf(parameters))
  return fault === undefined ? [] : [{ path, message: `is not a JSON Schema: ${fault}` }]
}

const primitive: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean'])

/** MCP clients are asked flat forms only: an object of primitive properties. */
export function elicitationSchemaProblems(schema: unknown, path: string): Problem[] {
  if (!isFields(schema) || Object.keys(schema).length === 0) {
    return [{ path, message: 'is required for type elicitation' }]
  }
  if (schema['type'] !== 'object') return [{ path: `${path}.type`, message: 'must be object' }]
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
