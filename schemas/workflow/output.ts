/**
 * Validates a workflow's output: its properties, including nested properties, and their defaults.
 * Source: docs/reference/specification/virtual-server.md#compositeTools, compositeTools, output.
 */
import { fieldsOf, isFields } from '../validation/fields.ts'
import type { CompositeTool, OutputProperty } from '../generated/types.ts'
import { below, oneOf, type Violation, shapeOf } from '../validation/violations.ts'
import { propertyOf } from './templates.ts'
import { booleanIn, integerIn, isJsonType, type JsonType, jsonTypes, numberIn } from './typed-text.ts'

const maxDepth = 10

export function outputViolations({ output }: CompositeTool, path: string): Violation[] {
  if (!output) return []
  const names = Object.keys(output.properties)
  const missing = (output.required ?? []).filter((name) => !names.includes(name))
  return [
    ...(names.length === 0 ? [{ path: `${path}.output.properties`, message: 'must not be empty' }] : []),
    ...missing.map((name) => ({
      path: `${path}.output.required`,
      message: `${JSON.stringify(name.slice(0, 80))} is not one of the properties`,
    })),
    ...Object.entries(output.properties).flatMap(([name, property]) =>
      namedViolations(name, property, `${path}.output.properties`, 1),
    ),
  ]
}

function namedViolations(name: string, property: OutputProperty, parent: string, depth: number): Violation[] {
  const path = below(parent, name)
  return hasControlCharacter(name)
    ? [{ path, message: 'a name must not contain control characters' }]
    : propertyViolations(property, path, depth)
}

function propertyViolations(property: OutputProperty, path: string, depth: number): Violation[] {
  const { type, value, properties } = property
  if (depth > maxDepth) return [{ path, message: `is nested more than ${maxDepth} levels deep` }]
  if (!isJsonType(type)) return [{ path: `${path}.type`, message: `must be one of ${jsonTypes.join(', ')}` }]
  if (value !== undefined && properties !== undefined)
    return [{ path, message: 'has both value and properties' }]
  if (value !== undefined && typeof value !== 'string')
    return [{ path: `${path}.value`, message: 'must be a string' }]
  if (properties === undefined) {
    const own = defaultViolations(property.default, type, path)
    return value === undefined ? [{ path, message: 'needs value or properties' }, ...own] : own
  }
  if (type !== 'object') return [{ path: `${path}.properties`, message: 'is only for type object' }]
  return [
    ...(property.default === undefined
      ? []
      : [{ path: `${path}.default`, message: 'applies only to a property that has a value' }]),
    ...Object.entries(fieldsOf(properties)).flatMap(([name, inner]) =>
      isFields(inner)
        ? namedViolations(name, propertyOf(inner), `${path}.properties`, depth + 1)
        : [{ path: below(`${path}.properties`, name), message: 'must be an object' }],
    ),
  ]
}

/**
 * Checks that a default can be converted to its declared type. The runtime would ignore a default that cannot be
 * converted.
 */
function defaultViolations(value: unknown, type: JsonType, path: string): Violation[] {
  if (value === undefined || value === null || type === 'string' || coercible(value, type)) return []
  const forms = type === 'integer' ? ['a number', 'its text'] : [withArticle(type), 'its text']
  return [{ path: `${path}.default`, message: `must be ${oneOf(forms)}, found ${shapeOf(value)}` }]
}

function coercible(value: unknown, type: JsonType): boolean {
  switch (type) {
    case 'integer':
      return typeof value === 'number' || (typeof value === 'string' && integerIn(value) !== undefined)
    case 'number':
      return typeof value === 'number' || (typeof value === 'string' && numberIn(value) !== undefined)
    case 'boolean':
      return typeof value === 'boolean' || (typeof value === 'string' && booleanIn(value) !== undefined)
    default: {
      const structure = typeof value === 'string' ? parsed(value) : value
      return type === 'object' ? isFields(structure) : Array.isArray(structure)
    }
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function withArticle(type: JsonType): string {
  return /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`
}

/** True when the name contains a line break or another invisible character. */
function hasControlCharacter(name: string): boolean {
  return /[\p{Cc}\p{Zl}\p{Zp}]/u.test(name)
}
