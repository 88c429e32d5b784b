/**
 * Arguments for a step's tool. Strings at the top level are templates. With `nestedTemplates`, strings at any depth are
 * templates. All other values are sent unchanged.
 *
 * A template's text is converted to a type that the tool's input schema accepts at that location. A template that
 * consists of a single action returns its value unchanged if the schema accepts the value's type or does not restrict
 * types. An argument is left out if its template has no value, or if the value is null and the tool does not accept
 * null.
 * Source: docs/reference/specification/virtual-server.md#steps, steps, arguments.
 */
import {
  acceptedTypes,
  fieldsOf,
  isFields,
  isOfType,
  own,
  type SchemaType,
  type ValuePath,
} from '../../../../../schemas/index.ts'
import { maxArgumentDepth, parseTemplate, type Template } from '../../../../../schemas/workflow/index.ts'
import {
  type TemplateMeter,
  type TemplateValue,
  type ValueObject,
  valueText,
} from '../../../../expr/template/index.ts'
import { fromText } from './convert.ts'
import { expandText, guarded, type ExpansionScope, singleValue } from './expansion.ts'

/** A value in the arguments that may contain templates. */
type ArgumentTemplate =
  | { readonly template: Template; readonly path: ValuePath }
  | { readonly items: readonly ArgumentTemplate[] }
  | { readonly fields: ArgumentTemplates }
  | { readonly value: TemplateValue }

export type ArgumentTemplates = readonly (readonly [name: string, value: ArgumentTemplate])[]

/** The types that a tool accepts for a step's templates, keyed by `pathKey`. */
export type ArgumentTypes = Readonly<Record<string, readonly SchemaType[]>>

function pathKey(path: ValuePath): string {
  return JSON.stringify(path)
}

/** Throws TemplateError. */
export function compileArguments(
  given: unknown,
  { nested }: { readonly nested: boolean },
): ArgumentTemplates {
  return Object.entries(fieldsOf(given)).map(([name, value]) => [
    name,
    nested || typeof value === 'string' ? compile(value, [name]) : { value: value as TemplateValue },
  ])
}

function compile(value: unknown, path: ValuePath): ArgumentTemplate {
  if (typeof value === 'string') return { template: parseTemplate(value), path }
  if (path.length > maxArgumentDepth) return { value: value as TemplateValue }
  if (Array.isArray(value)) return { items: value.map((item, index) => compile(item, [...path, index])) }
  if (!isFields(value)) return { value: value as TemplateValue }
  return {
    fields: Object.entries(value).map(([name, inner]) => [name, compile(inner, [...path, name])] as const),
  }
}

/** Returns the types that an input schema accepts for each template. */
export function argumentTypes(inputSchema: unknown, args: ArgumentTemplates): ArgumentTypes {
  const paths = args.flatMap(([, value]) => templatePaths(value))
  return Object.fromEntries(paths.map((path) => [pathKey(path), acceptedTypes(inputSchema, path)]))
}

function templatePaths(value: ArgumentTemplate): readonly ValuePath[] {
  if ('template' in value) return [value.path]
  if ('items' in value) return value.items.flatMap(templatePaths)
  return 'fields' in value ? value.fields.flatMap(([, inner]) => templatePaths(inner)) : []
}

/** Expands the templates. Omits members without a value. Throws StepError or WorkLimitError. */
export function expandArguments(
  args: ArgumentTemplates,
  scope: ExpansionScope,
  types: ArgumentTypes,
): ValueObject {
  const members = args.map(([name, value]) => [name, expandValue(value, scope, types)] as const)
  return Object.fromEntries(members.filter(([, value]) => value !== undefined))
}

/** A list item without a value becomes null. */
function expandValue(value: ArgumentTemplate, scope: ExpansionScope, types: ArgumentTypes): TemplateValue {
  if ('value' in value) return value.value
  if ('items' in value) return value.items.map((item) => expandValue(item, scope, types) ?? null)
  if ('fields' in value) return expandArguments(value.fields, scope, types)
  const { template, path } = value
  return expandTemplate(
    template,
    scope,
    own(types, pathKey(path)) ?? [],
    `argument ${JSON.stringify(path[0])}`,
  )
}

function expandTemplate(
  template: Template,
  scope: ExpansionScope,
  types: readonly SchemaType[],
  where: string,
): TemplateValue {
  const { meter } = scope
  const single = singleValue(template, scope, where)
  if (!single) return converted(expandText(template, scope, where), types, meter)
  const { value } = single
  if (value === undefined || types.length === 0 || types.some((type) => isOfType(value, type))) return value
  // The tool does not accept null, and no text can represent null.
  if (value === null) return undefined
  return converted(
    guarded(where, () => valueText(value, meter)),
    types,
    meter,
  )
}

/**
 * Returns the converted text. Returns the text itself if no conversion is possible. The tool then reports the error.
 */
function converted(text: string, types: readonly SchemaType[], meter: TemplateMeter): TemplateValue {
  if (types.includes('string')) return text
  for (const type of types) {
    const value = fromText(text, type, meter)
    if (value !== undefined) return value
  }
  return text
}
