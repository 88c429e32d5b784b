/**
 * Determines the form fields for a JSON Schema. Parts that a form cannot represent become JSON fields, each with the
 * reason.
 *
 * The schema comes from a server, so its depth, references, members and choices are limited.
 */
import { numberText, writeJson } from '../data/json-text.ts'

export interface PlanOption {
  readonly label: string
  readonly value: unknown
}

interface Common {
  readonly title: string | undefined
  readonly description: string | undefined
  /** The rules as text: length, range, format, pattern. */
  readonly rules: readonly string[]
  readonly initial: unknown
}

export type FieldPlan = Common &
  (
    | {
        readonly kind: 'text'
        readonly format: string | undefined
        readonly min: number
        readonly max: number
      }
    | { readonly kind: 'number'; readonly integer: boolean; readonly min: number; readonly max: number }
    | { readonly kind: 'flag' }
    | { readonly kind: 'null' }
    | { readonly kind: 'options'; readonly options: readonly PlanOption[] }
    | { readonly kind: 'many'; readonly options: readonly PlanOption[] }
    | { readonly kind: 'object'; readonly members: readonly ObjectField[] }
    | { readonly kind: 'list'; readonly item: () => FieldPlan; readonly min: number; readonly max: number }
    | {
        readonly kind: 'choice'
        readonly options: readonly { readonly label: string; readonly plan: () => FieldPlan }[]
      }
    | { readonly kind: 'json'; readonly why: Why }
  )

/** The reason's key in texts.ts. */
export type Why = 'any' | 'deep' | 'large' | 'reference' | 'combined' | 'free'

export interface ObjectField {
  readonly name: string
  readonly required: boolean
  readonly plan: () => FieldPlan
}

export type PlanOf<K extends FieldPlan['kind']> = Extract<FieldPlan, { readonly kind: K }>

type Schema = Readonly<Record<string, unknown>>

interface Place {
  readonly root: unknown
  readonly depth: number
  readonly references: number
}

const deepest = 4
const mostReferences = 8
const mostMembers = 100
const mostOptions = 200
const mostChoices = 20

/** Returns the plan for a whole schema. */
export function planOf(schema: unknown): FieldPlan {
  return plan(schema, { root: schema, depth: 0, references: 0 })
}

function plan(given: unknown, from: Place): FieldPlan {
  const found = resolved(given, from)
  if (found === undefined) return jsonPlan(given, 'reference')
  const { schema, place } = found
  if (!isSchema(schema)) return jsonPlan(schema, 'any')
  const common = commonOf(schema)
  if ('const' in schema) return { ...common, kind: 'options', options: [optionOf(schema['const'])] }
  const listed = schema['enum']
  if (Array.isArray(listed))
    return listed.length > mostOptions
      ? jsonPlan(schema, 'large')
      : { ...common, kind: 'options', options: listed.map(optionOf) }
  const alternatives = schema['oneOf'] ?? schema['anyOf']
  if (Array.isArray(alternatives)) return choicePlan(schema, alternatives, place)
  if (Array.isArray(schema['allOf'])) {
    const merged = mergedAll(schema, place)
    return merged ? plan(merged, place) : jsonPlan(schema, 'combined')
  }
  const type = schema['type']
  if (Array.isArray(type))
    return choicePlan(
      schema,
      type.map((one) => ({ ...schema, type: one, title: one })),
      place,
    )
  return typedPlan(schema, typeof type === 'string' ? type : inferredType(schema), place)
}

function typedPlan(schema: Schema, type: string, place: Place): FieldPlan {
  const common = commonOf(schema)
  switch (type) {
    case 'string':
      return {
        ...common,
        kind: 'text',
        format: textOf(schema['format']),
        min: boundOf(schema['minLength'], 0),
        max: boundOf(schema['maxLength'], Number.POSITIVE_INFINITY),
      }
    case 'number':
    case 'integer':
      return {
        ...common,
        kind: 'number',
        integer: type === 'integer',
        min: boundOf(schema['minimum'], Number.NEGATIVE_INFINITY),
        max: boundOf(schema['maximum'], Number.POSITIVE_INFINITY),
      }
    case 'boolean':
      return { ...common, kind: 'flag' }
    case 'null':
      return { ...common, kind: 'null' }
    case 'object':
      return objectPlan(schema, place)
    case 'array':
      return listPlan(schema, place)
    default:
      return jsonPlan(schema, 'any')
  }
}

function objectPlan(schema: Schema, place: Place): FieldPlan {
  const properties = schema['properties']
  if (!isSchema(properties) || Object.keys(properties).length === 0) {
    // For a tool without parameters, the arguments are an empty object.
    const isEmpty = place.depth === 0 || schema['additionalProperties'] === false
    return isEmpty ? { ...commonOf(schema), kind: 'object', members: [] } : jsonPlan(schema, 'free')
  }
  if (place.depth >= deepest) return jsonPlan(schema, 'deep')
  const names = Object.keys(properties)
  if (names.length > mostMembers) return jsonPlan(schema, 'large')
  const required = Array.isArray(schema['required']) ? schema['required'] : []
  const inner = { ...place, depth: place.depth + 1 }
  const members = names.map((name) => ({
    name,
    required: required.includes(name),
    plan: () => plan(properties[name], inner),
  }))
  // Sorts required members first.
  return {
    ...commonOf(schema),
    kind: 'object',
    members: members.toSorted((a, b) => Number(b.required) - Number(a.required)),
  }
}

function listPlan(schema: Schema, place: Place): FieldPlan {
  const items = schema['items']
  if (!isSchema(items) || 'prefixItems' in schema) return jsonPlan(schema, 'free')
  if (place.depth >= deepest) return jsonPlan(schema, 'deep')
  const item = (): FieldPlan => plan(items, { ...place, depth: place.depth + 1 })
  const first = item()
  if (first.kind === 'options' && schema['uniqueItems'] !== false && first.options.length <= 50)
    return { ...commonOf(schema), kind: 'many', options: first.options }
  return {
    ...commonOf(schema),
    kind: 'list',
    item,
    min: boundOf(schema['minItems'], 0),
    max: Math.min(mostMembers, boundOf(schema['maxItems'], mostMembers)),
  }
}

/** Returns the plan for a choice between schemas; constants become a list of options. */
function choicePlan(schema: Schema, alternatives: readonly unknown[], place: Place): FieldPlan {
  const common = commonOf(schema)
  if (alternatives.length > mostOptions) return jsonPlan(schema, 'large')
  if (alternatives.length > 0 && alternatives.every((one) => isSchema(one) && 'const' in one))
    return {
      ...common,
      kind: 'options',
      options: alternatives.map((one) => {
        const { const: value, title } = one as Schema
        return { label: textOf(title) ?? labelOf(value), value }
      }),
    }
  if (alternatives.length === 0 || alternatives.length > mostChoices) return jsonPlan(schema, 'large')
  // Applies the keywords that accompany the alternatives to each alternative.
  const {
    oneOf: _one,
    anyOf: _any,
    title: _title,
    description: _description,
    default: _default,
    ...siblings
  } = schema
  const options = alternatives.map((one, i) => {
    const whole = isSchema(one) && !('$ref' in one) ? { ...siblings, ...one } : one
    return { label: choiceLabel(one, i, place), plan: () => plan(whole, place) }
  })
  const [only] = options
  return options.length === 1 && only ? only.plan() : { ...common, kind: 'choice', options }
}

function choiceLabel(schema: unknown, i: number, place: Place): string {
  const found = resolved(schema, place)?.schema
  if (!isSchema(found)) return String(i + 1)
  const title = textOf(found['title']) ?? textOf(found['type'])
  const reference = isSchema(schema) ? textOf(schema['$ref']) : undefined
  return title ?? reference?.split('/').at(-1) ?? String(i + 1)
}

/** Merges object schemas in `allOf`. Returns undefined when a part is not a plain object schema. */
function mergedAll(schema: Schema, place: Place): Schema | undefined {
  const { allOf, ...own } = schema
  const parts = [own, ...(allOf as readonly unknown[]).map((one) => resolved(one, place)?.schema)]
  let merged: Record<string, unknown> = {}
  for (const part of parts) {
    if (!isSchema(part) || 'oneOf' in part || 'anyOf' in part || 'allOf' in part) return undefined
    const properties = { ...(merged['properties'] as object), ...(part['properties'] as object) }
    const required = [
      ...((merged['required'] as unknown[]) ?? []),
      ...((part['required'] as unknown[]) ?? []),
    ]
    merged = { ...merged, ...part, properties, required }
  }
  return merged
}

/** Follows and counts `$ref`s within the document. */
function resolved(
  given: unknown,
  from: Place,
): { readonly schema: unknown; readonly place: Place } | undefined {
  let schema = given
  let { references } = from
  while (isSchema(schema) && typeof schema['$ref'] === 'string') {
    references += 1
    if (references > mostReferences) return undefined
    const { $ref, ...siblings } = schema
    const target = pointed(from.root, $ref)
    if (target === undefined) return undefined
    schema = isSchema(target) ? { ...target, ...siblings } : target
  }
  return { schema, place: { ...from, references } }
}

/** Resolves a JSON pointer in a fragment. */
function pointed(root: unknown, reference: string): unknown {
  if (reference === '#') return root
  if (!reference.startsWith('#/')) return undefined
  let value: unknown = root
  for (const part of reference.slice(2).split('/')) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~')
    if (!isSchema(value) && !Array.isArray(value)) return undefined
    if (!Object.hasOwn(value, name)) return undefined
    value = (value as Schema)[name]
  }
  return value
}

function commonOf(schema: Schema): Common {
  return {
    title: textOf(schema['title']),
    description: textOf(schema['description']),
    rules: rulesOf(schema),
    initial: schema['default'],
  }
}

const ruleNames = [
  'format',
  'minLength',
  'maxLength',
  'pattern',
  'minimum',
  'exclusiveMinimum',
  'maximum',
  'exclusiveMaximum',
  'multipleOf',
  'minItems',
  'maxItems',
] as const

function rulesOf(schema: Schema): readonly string[] {
  return ruleNames.filter((name) => name in schema).map((name) => `${name} ${labelOf(schema[name])}`)
}

function jsonPlan(schema: unknown, why: Why): FieldPlan {
  return { ...commonOf(isSchema(schema) ? schema : {}), kind: 'json', why }
}

function inferredType(schema: Schema): string {
  if ('properties' in schema) return 'object'
  if ('items' in schema) return 'array'
  return ''
}

function optionOf(value: unknown): PlanOption {
  return { label: labelOf(value), value }
}

function labelOf(value: unknown): string {
  return typeof value === 'string' ? value : writeJson(value)
}

function isSchema(value: unknown): value is Schema {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && numberText(value) === undefined
  )
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

function boundOf(value: unknown, fallback: number): number {
  const text = numberText(value)
  return text === undefined ? fallback : Number(text)
}
