/**
 * Validates the JSON Schemas inside workflows: tool parameters and elicitations. The schemas must be valid and within
 * size limits, and defaults must match their schemas.
 */
import { isJsonSchema } from '../generated/meta-schema.js'
import { below, type Violation } from '../validation/violations.ts'
import { type Fields, fieldsOf, isFields } from '../validation/fields.ts'
import { compilePattern, PatternError } from './pattern.ts'
import type { CheckBudget } from './check-budget.ts'
import { patternsOf, schemaCheck } from './schema-check.ts'
import { countSchemas, schemasIn } from './schema-parts.ts'
import { referenceError } from './schema-references.ts'

/** Limits a schema's size, because a shared server compiles and evaluates it. */
const maxBytes = 100 * 1024
const maxSchemas = 500
const maxDepth = 100

function sizeError(schema: Fields): string | undefined {
  if (isTooDeep(schema, 0)) return `nested more than ${maxDepth} levels deep`
  if (JSON.stringify(schema).length > maxBytes) return `larger than ${maxBytes / 1024} KiB`
  return countSchemas(schema) > maxSchemas ? `contains more than ${maxSchemas} schemas` : undefined
}

/** Returns the error in the schema itself, or undefined. */
function schemaError(schema: Fields): string | undefined {
  const { $schema: _, ...plain } = schema
  if (!isJsonSchema(plain)) {
    const error = isJsonSchema.errors?.[0]
    return `${error?.instancePath ?? ''} ${error?.message ?? 'is not a JSON Schema'}`.trim()
  }
  return partError(plain)
}

function isTooDeep(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return depth > maxDepth || Object.values(value).some((inner) => isTooDeep(inner, depth + 1))
}

/**
 * Finds errors that the meta-schema misses and compilation would report: unresolved references and invalid patterns.
 */
function partError(root: Fields): string | undefined {
  for (const schema of schemasIn(root)) {
    const failure = patternError(schema)
    if (failure !== undefined) return failure
  }
  return referenceError(root)
}

function patternError(schema: Fields): string | undefined {
  for (const pattern of patternsOf(schema)) {
    try {
      compilePattern(pattern)
    } catch (error) {
      if (!(error instanceof PatternError)) throw error
      return `the pattern ${JSON.stringify(pattern.slice(0, 80))} cannot be used: ${error.message}`
    }
  }
  return undefined
}

export function parameterViolations(parameters: unknown, path: string, budget: CheckBudget): Violation[] {
  if (parameters === undefined || Object.keys(fieldsOf(parameters)).length === 0) return []
  const { type } = fieldsOf(parameters)
  if (type !== 'object') return [{ path: `${path}.type`, message: 'must be object' }]
  return schemaViolations(fieldsOf(parameters), path, budget)
}

function schemaViolations(schema: Fields, path: string, budget: CheckBudget): Violation[] {
  const failure = sizeError(schema)
  if (failure !== undefined) return [notASchema(path, failure)]
  if (!budget.takeSchema(schema)) return budgetViolations(path, budget)
  const error = schemaError(schema)
  return error === undefined ? defaultViolations(schema, path, budget) : [notASchema(path, error)]
}

function notASchema(path: string, failure: string): Violation {
  return { path, message: `is not a JSON Schema: ${failure}`, rule: 'schema' }
}

function budgetViolations(path: string, budget: CheckBudget): Violation[] {
  const message = budget.takeViolation()
  return message === undefined ? [] : [{ path, message }]
}

/** Budget for checking one default. */
const maxUnits = 20_000

/**
 * Checks that first-level defaults match their schemas. Otherwise, a call without those arguments would be rejected.
 */
function defaultViolations(schema: Fields, path: string, budget: CheckBudget): Violation[] {
  return Object.entries(fieldsOf(schema['properties'])).flatMap(([name, property]) => {
    const value = fieldsOf(property)['default']
    if (value === undefined) return []
    const at = `${below(`${path}.properties`, name)}.default`
    const failure = budget.hasUnits ? defaultError(schema, name, value, budget) : undefined
    if (!budget.hasUnits) return budgetViolations(at, budget)
    return failure === undefined ? [] : [{ path: at, message: failure }]
  })
}

function defaultError(schema: Fields, name: string, value: unknown, budget: CheckBudget): string | undefined {
  let left = maxUnits
  const spend = (units: number) => {
    left -= units
    if (!budget.takeUnits(units) || left < 0) throw new Error('is too expensive to check against its schema')
  }
  const pointer = encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'))
  try {
    const [failure] = schemaCheck(schema).violations(value, spend, `/properties/${pointer}`)
    return failure === undefined ? undefined : `does not match its own schema: ${failure}`
  } catch (error) {
    return error instanceof Error ? error.message : 'cannot be checked against its schema'
  }
}

const primitive: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean'])

/**
 * Checks that the schema is a flat form, an object of primitive properties, because MCP clients support only flat
 * forms.
 */
export function elicitationSchemaViolations(schema: unknown, path: string, budget: CheckBudget): Violation[] {
  if (!isFields(schema) || Object.keys(schema).length === 0) {
    return [{ path, message: 'is required for type elicitation' }]
  }
  if (schema['type'] !== 'object') return [{ path: `${path}.type`, message: 'must be object' }]
  if (JSON.stringify(schema).length > maxBytes)
    return [{ path, message: 'is too large to be shown to a user: more than 100 KiB' }]
  const flat = 'must be a string, number, integer, boolean or list of choices'
  const violations = schemaViolations(schema, path, budget)
  if (violations.some((violation) => violation.path === path)) return violations
  return [
    ...Object.entries(fieldsOf(schema['properties'])).flatMap(([name, property]) =>
      isFlat(fieldsOf(property)) ? [] : [{ path: below(`${path}.properties`, name), message: flat }],
    ),
    ...violations,
  ]
}

function isFlat({ type, items, enum: choices, oneOf }: Readonly<Record<string, unknown>>): boolean {
  if (primitive.has(type)) return true
  if (type === 'array')
    return isFields(items) && (Array.isArray(items['enum']) || Array.isArray(items['anyOf']))
  return type === undefined && (Array.isArray(choices) || Array.isArray(oneOf))
}

/** True for a small, well-formed schema with valid patterns and references, which can be checked within limits. */
export function usableSchema(schema: Fields): boolean {
  return sizeError(schema) === undefined && schemaError(schema) === undefined
}
