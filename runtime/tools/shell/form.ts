/**
 * Defines the fields of an elicitation form, and converts typed text to field values. No I/O.
 * Source: MCP 2025-11-25, elicitation, "Requested Schema".
 */
import {
  acceptedTypes,
  exactInteger,
  isFields,
  isRawJson,
  roundedNumber,
  type SchemaType,
} from '../../../schemas/index.ts'
import type { JsonObject } from '../../mcp/index.ts'

export interface FormOption {
  readonly value: string
  readonly title: string | undefined
}

export interface Field {
  readonly name: string
  readonly title: string
  readonly description: string | undefined
  readonly kind: 'text' | 'number' | 'integer' | 'yes or no' | 'one of' | 'some of'
  readonly required: boolean
  readonly byDefault: unknown
  /** Allowed values. Empty when any value is allowed. */
  readonly options: readonly FormOption[]
  readonly min: number | undefined
  readonly max: number | undefined
}

/** Maximum size of a form that a person can fill in. */
const maxFields = 100

export function fieldsOf(schema: JsonObject | undefined): readonly Field[] {
  const required: unknown = schema?.value('required')
  const names: readonly unknown[] = Array.isArray(required) ? required : []
  const properties = schema?.object('properties')?.entries() ?? []
  const root: unknown = schema && JSON.parse(schema.bytes.toString())
  return properties.slice(0, maxFields).flatMap(([name, raw]) => {
    const property: unknown = JSON.parse(raw.toString())
    if (!isFields(property)) return []
    // A user leaves an optional field empty instead of sending null.
    const types = acceptedTypes(root, [name]).filter((type) => type !== 'null')
    return [fieldOf(name, property, types.length === 1 ? types[0] : undefined, names.includes(name))]
  })
}

function fieldOf(
  name: string,
  property: Readonly<Record<string, unknown>>,
  type: SchemaType | undefined,
  required: boolean,
): Field {
  const items = isFields(property['items']) ? property['items'] : {}
  const many = type === 'array'
  const options = optionsOf(many ? items : property)
  const [least, most] = many
    ? ['minItems', 'maxItems']
    : type === 'string'
      ? ['minLength', 'maxLength']
      : ['minimum', 'maximum']
  return {
    name,
    title: textOf(property['title']) ?? name,
    description: textOf(property['description']),
    kind: kindOf(type, many, options.length > 0),
    required,
    byDefault: property['default'],
    options,
    min: numberOf(property[least]),
    max: numberOf(property[most]),
  }
}

function kindOf(type: SchemaType | undefined, many: boolean, chosen: boolean): Field['kind'] {
  if (many) return 'some of'
  if (chosen) return 'one of'
  if (type === 'number' || type === 'integer') return type
  return type === 'boolean' ? 'yes or no' : 'text'
}

/** Returns the options of `enum` with `enumNames`, or of `oneOf` and `anyOf` with titled constants. */
function optionsOf(property: Readonly<Record<string, unknown>>): readonly FormOption[] {
  const listed = property['oneOf'] ?? property['anyOf']
  if (Array.isArray(listed)) {
    return listed.flatMap((option: unknown) => {
      const value = isFields(option) ? textOf(option['const']) : undefined
      return value === undefined
        ? []
        : [{ value, title: isFields(option) ? textOf(option['title']) : undefined }]
    })
  }
  const values: unknown = property['enum']
  const titles: unknown = property['enumNames']
  if (!Array.isArray(values)) return []
  return values.flatMap((value: unknown, index) => {
    const title: unknown = Array.isArray(titles) ? titles[index] : undefined
    return typeof value === 'string' ? [{ value, title: textOf(title) }] : []
  })
}

export interface FormValue {
  readonly value?: unknown
  /** Reason why the text is invalid. */
  readonly problem?: string
}

/**
 * Converts typed text to a value for the field. An empty text selects the default value, or no value if the field has
 * no default.
 */
export function valueFor(field: Field, text: string): FormValue {
  if (text === '') {
    if (field.byDefault !== undefined) return { value: field.byDefault }
    return field.required ? { problem: 'a value is required' } : {}
  }
  switch (field.kind) {
    case 'number':
    case 'integer':
      return numberFor(field, text)
    case 'yes or no':
      if (/^(y(es)?|true)$/i.test(text)) return { value: true }
      return /^(no?|false)$/i.test(text) ? { value: false } : { problem: 'answer yes or no' }
    case 'some of':
      return someOf(field, text)
    case 'one of':
      return optionValue(field, text)
    case 'text':
      return rangeProblem(field, text.length, 'characters') ?? { value: text }
  }
}

function numberFor(field: Field, text: string): FormValue {
  const value = Number(text)
  if (!Number.isFinite(value)) return { problem: 'must be a number' }
  if (field.kind === 'integer' && !Number.isInteger(value)) return { problem: 'must be a whole number' }
  if (isRawJson(exactInteger(value, text.replace(/^\+/, '')))) return { problem: roundedNumber(text) }
  return rangeProblem(field, value, '') ?? { value }
}

function someOf(field: Field, text: string): FormValue {
  const parts = text.split(',').map((part) => part.trim())
  const wrong = parts.map((part) => optionValue(field, part)).find(({ problem }) => problem !== undefined)
  return wrong ?? rangeProblem(field, parts.length, 'values') ?? { value: parts }
}

function optionValue({ options }: Field, text: string): FormValue {
  if (options.length === 0 || options.some(({ value }) => value === text)) return { value: text }
  return { problem: 'must be exactly one of the values above' }
}

function rangeProblem({ min, max }: Field, size: number, unit: string): FormValue | undefined {
  if (min !== undefined && size < min) return { problem: `at least ${min} ${unit}`.trim() }
  return max !== undefined && size > max ? { problem: `at most ${max} ${unit}`.trim() } : undefined
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}
