/**
 * Checks what JSON Schema cannot express: CEL rules (`x-kubernetes-validations`) and unique list keys
 * (`x-kubernetes-list-type` map and set). Expects a document with defaults applied, as the rules in the API server do.
 */
import { serviceViolation } from '../addresses.ts'
import { rules } from '../generated/rules.ts'
import { isFields } from './fields.ts'
import { childSchema, eachChild, leadsTo, resolved } from './bundle.ts'
import { below, type Violation } from './violations.ts'
import type { CelRule, Schema } from '../schema.ts'

/**
 * Returns the violations of `value` at `path`. `known` contains the violations from the schema. Skips rules about a
 * field that is already invalid, because such a rule would only repeat the problem.
 */
export function checkRules(
  schema: Schema,
  value: unknown,
  path: string,
  known: readonly Violation[],
): Violation[] {
  const violations: Violation[] = []
  if (isRuledBelow(schema)) visit(schema, value, path, { known, violations, converted: new Map() })
  return violations
}

const isRuledBelow = leadsTo(
  (schema) =>
    schema['x-kubernetes-validations'] !== undefined || schema['x-address'] !== undefined || isKeyed(schema),
)

interface Checking {
  readonly known: readonly Violation[]
  readonly violations: Violation[]
  readonly converted: Converted
}

function visit(reference: Schema, value: unknown, path: string, checking: Checking): void {
  if (value === null || value === undefined) return
  const { known, violations, converted } = checking
  const schema = resolved(reference)
  // Skips a list with too many entries, which is already an error, because evaluating rules for each entry is slow.
  if (hasTooMany(schema, value)) return
  const own = schema['x-kubernetes-validations']
  if (own && isRuled(schema, value)) {
    const self = toCel(schema, value, converted)
    for (const rule of own) {
      const violation = check(rule, self, path, known)
      if (violation) violations.push(violation)
    }
  }
  if (schema['x-address'] && typeof value === 'string') {
    const message = serviceViolation(value)
    if (message !== undefined) violations.push({ path, message })
  }
  if (Array.isArray(value)) violations.push(...duplicates(schema, value, path))
  eachChild(schema, value, (child, childSchema, key) => {
    if (isRuledBelow(childSchema)) visit(childSchema, child, below(path, key), checking)
  })
}

function hasTooMany({ maxItems, maxProperties }: Schema, value: unknown): boolean {
  if (Array.isArray(value)) return maxItems !== undefined && value.length > maxItems
  return maxProperties !== undefined && isFields(value) && Object.keys(value).length > maxProperties
}

/** True when the value has the type that the rules expect. */
function isRuled(schema: Schema, value: unknown): boolean {
  if (schema.type === 'array') return Array.isArray(value)
  return schema.type === 'object' ? isFields(value) : typeof value === schema.type
}

function check(
  rule: CelRule,
  self: unknown,
  path: string,
  known: readonly Violation[],
): Violation | undefined {
  if (known.some((violation) => concerns(rule, path, violation.path))) return undefined
  const problem = {
    path: path + (path === '' ? (rule.fieldPath ?? '').slice(1) : (rule.fieldPath ?? '')),
    message: rule.message,
  }
  try {
    return rules[rule.rule]?.(self) === true ? undefined : problem
  } catch {
    // Fails closed: a rule that cannot be evaluated counts as violated. Reports such a rule only when the value has no
    // other problem.
    return known.length > 0 ? undefined : problem
  }
}

/** True when a known problem concerns the value itself or a field that the rule reads. */
function concerns(rule: CelRule, path: string, problem: string): boolean {
  if (problem === path) return true
  if (!problem.startsWith(path)) return false
  const rest = problem.slice(path.length)
  const field = /^\.?([A-Za-z_][A-Za-z0-9_]*)/.exec(rest)?.[1]
  if (field === undefined) return rest.startsWith('[')
  return new RegExp(`\\bself\\.${field}\\b`).test(rule.rule)
}

/**
 * Cache of converted objects and lists from a document. Rules on an object also read nested objects that have rules.
 */
type Converted = Map<object, unknown>

/**
 * Converts a value to CEL: integers become int, and null members are absent. Names of declared fields are escaped as in
 * Kubernetes, because CEL reserves some words (`namespace` becomes `self.__namespace__`).
 */
function toCel(reference: Schema, value: unknown, converted: Converted): unknown {
  const before = typeof value === 'object' && value !== null ? converted.get(value) : undefined
  if (before !== undefined) return before
  const schema = resolved(reference)
  if (typeof value === 'number') {
    return schema.type === 'integer' && Number.isInteger(value) ? BigInt(value) : value
  }
  if (Array.isArray(value)) {
    const list: unknown[] = value.map((item) => toCel(schema.items ?? {}, item, converted))
    converted.set(value, list)
    return list
  }
  if (!isFields(value)) return value
  const map = new Map<string, unknown>()
  converted.set(value, map)
  // As in the API server, rules cannot read free-form objects.
  if (schema['x-kubernetes-preserve-unknown-fields']) return map
  for (const [key, item] of Object.entries(value)) {
    if (item === null || item === undefined) continue
    const child = childSchema(schema, key)
    map.set(schema.properties && child ? escaped(key) : key, toCel(child ?? {}, item, converted))
  }
  return map
}

const reserved: ReadonlySet<string> = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
)

function escaped(field: string): string {
  if (reserved.has(field)) return `__${field}__`
  if (/^[A-Za-z0-9]+$/.test(field)) return field
  return field
    .replaceAll('__', '__underscores__')
    .replaceAll('.', '__dot__')
    .replaceAll('-', '__dash__')
    .replaceAll('/', '__slash__')
}

function isKeyed(schema: Schema): boolean {
  const kind = schema['x-kubernetes-list-type']
  return kind === 'set' || kind === 'map'
}

function duplicates(schema: Schema, items: readonly unknown[], path: string): Violation[] {
  const kind = schema['x-kubernetes-list-type']
  if (!isKeyed(schema)) return []
  const keys = schema['x-kubernetes-list-map-keys'] ?? []
  const seen = new Map<string, number>()
  const violations: Violation[] = []
  for (const [index, item] of items.entries()) {
    const key = kind === 'set' ? item : isFields(item) ? keys.map((name) => item[name]) : undefined
    if (key === undefined || (Array.isArray(key) && key.includes(undefined))) continue
    const text = JSON.stringify(key)
    const first = seen.get(text)
    if (first === undefined) seen.set(text, index)
    else {
      const what = kind === 'set' ? 'value' : keys.join(' and ')
      violations.push({
        path: below(path, index),
        message: `repeats the ${what} of item ${first}; every ${what} must be unique`,
      })
    }
  }
  return violations
}
