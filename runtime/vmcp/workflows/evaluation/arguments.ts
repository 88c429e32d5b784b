/**
 * Arguments of a step's tool: strings of the first level are templates, everything else goes as it is. With nested
 * templates, strings at any depth are; they give text, for which no schema is asked.
 *
 * What a template gives is converted to the type that the tool's input schema asks for. A template that is one action and
 * nothing else hands its value over as it is, and leaves the argument out when there is none, or null where the tool takes none.
 * Source: docs/specification/virtual-server.md#steps, steps, arguments.
 */
import { fieldsOf, isFields, own } from '../../../../schemas/index.ts'
import {
  isJsonType,
  type JsonType,
  maxArgumentDepth,
  parseTemplate,
  type Template,
} from '../../../../schemas/workflow/index.ts'
import {
  type TemplateMeter,
  type TemplateValue,
  type ValueObject,
  valueText,
} from '../../../expr/template/index.ts'
import { fromText, isOfType } from './convert.ts'
import { expandText, guarded, type ExpansionScope, singleValue } from './expansion.ts'

export type ArgumentTemplate =
  | { readonly name: string; readonly template: Template }
  | { readonly name: string; readonly nested: Nested }
  | { readonly name: string; readonly value: TemplateValue }

/** A value with templates in it. */
type Nested =
  | { readonly template: Template }
  | { readonly items: readonly Nested[] }
  | { readonly fields: readonly (readonly [string, Nested])[] }
  | { readonly value: TemplateValue }

/** Types that the schema of a tool names for its arguments; none where it names none. */
export type ArgumentTypes = Readonly<Record<string, readonly string[]>>

/** Throws TemplateError. */
export function compileArguments(
  given: unknown,
  { nested }: { readonly nested: boolean },
): readonly ArgumentTemplate[] {
  return Object.entries(fieldsOf(given)).map(([name, value]) => {
    if (typeof value === 'string') return { name, template: parseTemplate(value) }
    return nested ? { name, nested: compileNested(value, 1) } : { name, value: value as TemplateValue }
  })
}

function compileNested(value: unknown, depth: number): Nested {
  if (depth > maxArgumentDepth) return { value: value as TemplateValue }
  const child = (inner: unknown): Nested =>
    typeof inner === 'string' ? { template: parseTemplate(inner) } : compileNested(inner, depth + 1)
  if (Array.isArray(value)) return { items: value.map(child) }
  if (!isFields(value)) return { value: value as TemplateValue }
  return { fields: Object.entries(value).map(([name, inner]) => [name, child(inner)] as const) }
}

/** The types of the arguments that `names` names, as the input schema of a tool has them. */
export function argumentTypes(inputSchema: unknown, names: readonly string[]): ArgumentTypes {
  const properties = fieldsOf(fieldsOf(inputSchema)['properties'])
  return Object.fromEntries(
    names.flatMap((name) => {
      const types = typesOf(own(properties, name))
      return types.length === 0 ? [] : [[name, types]]
    }),
  )
}

function typesOf(schema: unknown): readonly string[] {
  const { type } = fieldsOf(schema)
  if (typeof type === 'string') return [type]
  return Array.isArray(type) ? type.filter((one): one is string => typeof one === 'string') : []
}

/** Throws StepError, WorkLimitError. */
export function expandArguments(
  args: readonly ArgumentTemplate[],
  scope: ExpansionScope,
  types: ArgumentTypes,
): ValueObject {
  const members: [string, TemplateValue][] = []
  for (const arg of args) {
    if ('value' in arg) members.push([arg.name, arg.value])
    else if ('nested' in arg) {
      members.push([arg.name, expandNested(arg.nested, scope, `argument ${JSON.stringify(arg.name)}`)])
    } else {
      const wanted = own(types, arg.name) ?? []
      const value = expandOne(arg.template, scope, wanted, `argument ${JSON.stringify(arg.name)}`)
      if (value !== undefined) members.push([arg.name, value])
    }
  }
  return Object.fromEntries(members)
}

/** A member without a value is left out of an object, and null in a list. */
function expandNested(nested: Nested, scope: ExpansionScope, where: string): TemplateValue {
  if ('value' in nested) return nested.value
  if ('template' in nested) return expandOne(nested.template, scope, [], where)
  if ('items' in nested) return nested.items.map((item) => expandNested(item, scope, where) ?? null)
  const members = nested.fields.map(([name, inner]) => [name, expandNested(inner, scope, where)] as const)
  return Object.fromEntries(members.filter(([, value]) => value !== undefined))
}

function expandOne(
  template: Template,
  scope: ExpansionScope,
  types: readonly string[],
  where: string,
): TemplateValue {
  const { meter } = scope
  const single = singleValue(template, scope, where)
  const wantsText = types.length === 0 || types.includes('string')
  if (!single) return converted(expandText(template, scope, where), types, wantsText, meter)
  const { value } = single
  if (value === undefined) return undefined
  // A null that the tool does not take is left out: it has no text that would mean it.
  if (value === null) return types.length === 0 || types.includes('null') ? null : undefined
  if (typeof value !== 'string' && !wantsText) {
    if (types.some((type) => isJsonType(type) && isOfType(value, type))) return value
  }
  const text = guarded(where, () => valueText(value, meter))
  return converted(text, types, wantsText, meter)
}

/** A text that cannot be converted stays one: the tool says what it thinks of it. */
function converted(
  text: string,
  types: readonly string[],
  wantsText: boolean,
  meter: TemplateMeter,
): TemplateValue {
  if (wantsText) return text
  for (const type of types.filter((candidate): candidate is JsonType => isJsonType(candidate))) {
    const value = fromText(text, type, meter)
    if (value !== undefined) return value
  }
  return text
}
