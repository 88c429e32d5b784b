/**
 * Converts errors from the compiled validators to violations with messages for users. There is one violation per error,
 * with the path, the shape of the value and the allowed values. Values are quoted only in fields that cannot contain a
 * secret.
 */
import { isFields } from './fields.ts'
import { childSchema, resolved } from './bundle.ts'
import { below, count, nearest, oneOf, type Violation, shapeOf } from './violations.ts'
import type { Schema, SchemaError } from '../schema.ts'

interface Place {
  readonly path: string
  readonly schema: Schema
  readonly value: unknown
}

/** Maximum number of reported errors. */
const most = 1000

/** Returns the violations for the validator's errors on `document`, whose schema is `root`. */
export function violationsOf(root: Schema, document: unknown, errors: readonly SchemaError[]): Violation[] {
  const violations: Violation[] = []
  const reportedPaths = new Set<string>()
  for (const error of [...errors].sort((a, b) => rank(a) - rank(b))) {
    if (violations.length >= most) {
      violations.push({ path: '', message: `has more than ${most} errors; further errors are not shown` })
      break
    }
    const place = placeOf(root, document, error.instancePath)
    const violation = say(error, place)
    // Reports one error per path, because a value of the wrong type also violates the enum, and an empty string also
    // violates the pattern.
    if (reportedPaths.has(violation.path)) continue
    reportedPaths.add(violation.path)
    violations.push(violation)
  }
  return violations
}

const ranks = ['type', 'required', 'additionalProperties', 'enum', 'minLength', 'maxLength', 'format']

function rank(error: SchemaError): number {
  const index = ranks.indexOf(error.keyword)
  return index < 0 ? ranks.length : index
}

function placeOf(root: Schema, document: unknown, pointer: string): Place {
  let path = ''
  let schema = resolved(root)
  let value = document
  for (const token of pointer.split('/').slice(1)) {
    const name = token.replaceAll('~1', '/').replaceAll('~0', '~')
    const key = Array.isArray(value) ? Number(name) : name
    path = below(path, key)
    schema = resolved(childSchema(schema, key) ?? {})
    value = memberOf(value, key)
  }
  return { path, schema, value }
}

function memberOf(value: unknown, key: string | number): unknown {
  if (Array.isArray(value)) return value[Number(key)]
  return isFields(value) ? value[key] : undefined
}

function say(error: SchemaError, place: Place): Violation {
  const { path, schema, value } = place
  switch (error.keyword) {
    case 'required':
      return missing(place, String(error.detail))
    case 'additionalProperties':
      return unknown(place, String(error.detail))
    case 'type':
      return { path, message: wrongType(schema, value) }
    case 'enum':
      return { path, message: wrongWord(schema, value, path) }
    case 'minimum':
    case 'maximum':
      return { path, message: `expected ${expected(schema)}, found ${String(value)}` }
    case 'minItems':
      return { path, message: `needs at least ${count(Number(error.detail), 'item')}` }
    default:
      return { path, message: wrongText(error.keyword, place, Number(error.detail)) }
  }
}

function missing({ path, schema }: Place, field: string): Violation {
  const child = childSchema(schema, field)
  return {
    path: below(path, field),
    message: child ? `is required: expected ${expected(resolved(child))}` : 'is required',
  }
}

function unknown({ path, schema, value }: Place, field: string): Violation {
  const known = Object.keys(schema.properties ?? {})
  const free = isFields(value) ? known.filter((name) => !Object.hasOwn(value, name)) : known
  const guess = nearest(field, free) ?? nearest(field, known)
  const hint = guess === undefined ? '' : `; did you mean "${guess}"?`
  const allowed = known.length === 0 ? '; no fields are allowed here' : `; allowed here: ${known.join(', ')}`
  return { path: below(path, field), message: `unknown field${hint}${guess === undefined ? allowed : ''}` }
}

function wrongType(schema: Schema, value: unknown): string {
  const message = `expected ${expected(schema)}, found ${shapeOf(value)}`
  const scalar = typeof value === 'number' || typeof value === 'boolean'
  if (schema.type === 'string' && scalar) return `${message}; put it in quotes`
  if (schema.type === 'integer' && typeof value === 'string' && /^\d+$/.test(value))
    return `${message}; remove the quotes`
  if (schema.type === 'boolean' && typeof value === 'string' && /^(true|false)$/i.test(value)) {
    return `${message}; remove the quotes`
  }
  if (schema.type === 'array' && isFields(value)) return `${message}; start each item with "- "`
  return message
}

function wrongWord(schema: Schema, value: unknown, path: string): string {
  const words = (schema.enum ?? []).map(String)
  const guess = typeof value === 'string' ? nearest(value, words) : undefined
  const hint = guess === undefined || words.length === 1 ? '' : `; did you mean "${guess}"?`
  return `expected ${expected(schema)}, found ${found(value, path)}${hint}`
}

function wrongText(keyword: string, { path, schema, value }: Place, limit: number): string {
  switch (keyword) {
    case 'minLength':
      return value === ''
        ? `must not be empty: expected ${expected(schema)}`
        : `needs at least ${count(limit, 'character')}`
    case 'maxLength':
      return `expected at most ${count(limit, 'character')}, found ${shapeOf(value)}`
    case 'maxItems':
      return `expected at most ${count(limit, 'item')}, found ${shapeOf(value)}`
    case 'maxProperties':
      return `expected at most ${limit} entries, found ${isFields(value) ? Object.keys(value).length : 0}`
    case 'format':
      return `expected ${expected(schema)}, found ${typeof value === 'number' ? String(value) : shapeOf(value)}`
    default:
      return `expected ${expected(schema)}, found ${found(value, path)}`
  }
}

/** Describes the values that a field accepts. */
export function expected(schema: Schema): string {
  if (schema.enum) {
    const words = schema.enum.map((word) => JSON.stringify(word))
    return words.length === 1 ? (words[0] ?? '') : `one of ${oneOf(words)}`
  }
  if (schema['x-expects'] !== undefined) return schema['x-expects']
  switch (schema.type) {
    case 'integer':
    case 'number':
      return `a whole number${range(schema)}`
    case 'boolean':
      return 'true or false'
    case 'array':
      return 'a list'
    case 'object':
      return schema.required?.length ? `an object with ${schema.required.join(', ')}` : 'an object'
    case 'string':
      return schema.format === 'date-time' ? 'an RFC 3339 date and time' : 'a string'
    default:
      return 'a value'
  }
}

function range({ minimum, maximum, format }: Schema): string {
  if (minimum !== undefined && maximum !== undefined) return ` from ${minimum} to ${maximum}`
  if (minimum !== undefined) return ` of at least ${minimum}`
  if (maximum !== undefined) return ` of at most ${maximum}`
  return format === 'int32' ? ' of 32 bits' : ''
}

const secretField = /secret|password|token|key|credential|header|value|env|param|claim|statement|polic/i

/**
 * Returns the quoted value when the value is short, plain and in a field that cannot contain a secret. Otherwise,
 * returns the shape of the value.
 */
function found(value: unknown, path: string): string {
  if (typeof value !== 'string' || value === '' || secretField.test(path)) return shapeOf(value)
  const plain = /^[A-Za-z0-9][A-Za-z0-9 _./:-]{0,47}$/.test(value)
  const random = /[A-Za-z0-9_-]{20,}/.test(value) && /\d/.test(value)
  return plain && !random ? JSON.stringify(value) : shapeOf(value)
}
