/**
 * The output of a workflow. Converts the templates of the output's properties to values of the declared types.
 *
 * Without an output block, the workflow returns the output of the last finished step (execution.ts).
 * Source: docs/reference/specification/virtual-server.md#compositeTools, compositeTools, output.
 */
import {
  fieldsOf,
  isFields,
  isOfType,
  type OutputProperty,
  type WorkflowOutput,
} from '../../../../../schemas/index.ts'
import {
  type JsonType,
  parseTemplate,
  propertyOf,
  type Template,
} from '../../../../../schemas/workflow/index.ts'
import {
  defaultLimits,
  TemplateMeter,
  noValue,
  type TemplateValue,
  type ValueObject,
  valueText,
} from '../../../../expr/template/index.ts'
import { StepError, WorkflowError } from '../errors.ts'
import { fromText } from './convert.ts'
import { expandText, guarded, type ExpansionScope, singleValue } from './expansion.ts'

export interface OutputField {
  readonly name: string
  readonly type: JsonType
  readonly isRequired: boolean
  readonly source: { readonly template: Template } | { readonly fields: readonly OutputField[] }
  /** Used if the template does not produce a value. Undefined if the property has no default. */
  readonly fallback: TemplateValue
}

export function compileOutput({ properties, required = [] }: WorkflowOutput): readonly OutputField[] {
  return Object.entries(properties).map(([name, property]) =>
    compileField(name, property, { isRequired: required.includes(name) }),
  )
}

function compileField(
  name: string,
  property: OutputProperty,
  { isRequired }: { readonly isRequired: boolean },
): OutputField {
  const { type, value, properties } = property
  const nested = Object.entries(fieldsOf(properties)).flatMap(([inner, more]) =>
    isFields(more) ? [compileField(inner, propertyOf(more), { isRequired: false })] : [],
  )
  return {
    name,
    type,
    isRequired,
    source: value === undefined ? { fields: nested } : { template: parseTemplate(value) },
    fallback: asType(property.default as TemplateValue, type),
  }
}

/** Converts a default to the property's type. Truncates fractions, parses text, and converts any value to text. */
function asType(value: TemplateValue, type: JsonType): TemplateValue {
  if (value === undefined || value === null) return undefined
  // Configuration is already bounded in size.
  const meter = new TemplateMeter(defaultLimits)
  if (type === 'string') return valueText(value, meter)
  if (type === 'integer' && typeof value === 'number') return Math.trunc(value)
  if (isOfType(value, type)) return value
  return typeof value === 'string' ? fromText(value, type, meter) : undefined
}

/** Builds the output. Throws a WorkflowError with the property's name, or a WorkLimitError. */
export function buildOutput(fields: readonly OutputField[], scope: ExpansionScope): ValueObject {
  return build(fields, scope, '')
}

function build(fields: readonly OutputField[], scope: ExpansionScope, parent: string): ValueObject {
  return Object.fromEntries(
    fields.map((field) => {
      const path = parent + field.name
      return [
        field.name,
        'fields' in field.source ? build(field.source.fields, scope, `${path}.`) : one(field, scope, path),
      ]
    }),
  )
}

function one(field: OutputField, scope: ExpansionScope, path: string): TemplateValue {
  const { type, source, fallback, isRequired } = field
  if (!('template' in source)) return undefined
  const found = attempt(source.template, scope, type)
  if (found.value !== undefined) return found.value
  if (fallback !== undefined) return fallback
  if (found.isMissing && type === 'string' && !isRequired) return noValue
  const why = found.isMissing
    ? 'the template has no value'
    : (found.why ?? `the value is not of type ${type}`)
  throw new WorkflowError(`output construction failed: property ${JSON.stringify(path)}: ${why}`)
}

interface Attempt {
  readonly value?: TemplateValue
  readonly isMissing?: boolean
  readonly why?: string
}

/** Returns a value of the right type unchanged, unless the type is string. */
function attempt(template: Template, scope: ExpansionScope, type: JsonType): Attempt {
  try {
    const single = singleValue(template, scope, 'value')
    if (single && type !== 'string' && isOfType(single.value, type)) return { value: single.value }
    const text = single
      ? guarded('value', () => valueText(single.value, scope.meter))
      : expandText(template, scope, 'value')
    return text === noValue ? { isMissing: true } : { value: fromText(text, type, scope.meter) }
  } catch (error) {
    if (error instanceof StepError) return { why: error.message }
    throw error
  }
}

/** Returns the JSON Schema of the output, for the tool list. */
export function outputSchema({ properties, required }: WorkflowOutput): Readonly<Record<string, unknown>> {
  return {
    type: 'object',
    properties: Object.fromEntries(
      Object.entries(properties).map(([name, property]) => [name, schemaOf(property)]),
    ),
    ...(required && required.length > 0 ? { required } : {}),
  }
}

function schemaOf({ type, description, properties }: OutputProperty): Readonly<Record<string, unknown>> {
  const nested = Object.entries(fieldsOf(properties)).flatMap(([name, inner]) =>
    isFields(inner) ? [[name, schemaOf(propertyOf(inner))] as const] : [],
  )
  return {
    type,
    ...(description === undefined ? {} : { description }),
    ...(properties === undefined ? {} : { properties: Object.fromEntries(nested) }),
  }
}
