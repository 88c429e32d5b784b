/**
 * Arguments of a step's tool: strings of the first level are templates, everything else goes as it is.
 *
 * What a template gives is converted to the type that the tool's input schema asks for. A template that is one action and
 * nothing else hands its value over as it is, and leaves the argument out when there is none, or null where the tool takes none.
 * Source: spec document 3, steps, arguments.
 */
import { fieldsOf } from '../../../../schemas/index.ts'
import { parseTemplate, type Template } from '../../../../schemas/workflow/index.ts'
import { type TemplateValue, type ValueObject, valueText } from '../../../expr/template/index.ts'
import { fromText, isJsonType, isOfType, type JsonType } from '../convert.ts'
import { expandText, guarded, singleValue } from '../expansion.ts'

export type Argument =
  | { readonly name: string; readonly template: Template }
  | { readonly name: string; readonly value: TemplateValue }

export function compileArguments(given: unknown): readonly Argument[] {
  return Object.entries(fieldsOf(given)).map(([name, value]) =>
    typeof value === 'string'
      ? { name, template: parseTemplate(value) }
      : { name, value: value as TemplateValue },
  )
}

/** `schema` is the input schema of the tool. Throws StepError. */
export function expandArguments(
  args: readonly Argument[],
  data: TemplateValue,
  schema: unknown,
): ValueObject {
  const properties = fieldsOf(fieldsOf(schema)['properties'])
  const members: [string, TemplateValue][] = []
  for (const arg of args) {
    if ('value' in arg) members.push([arg.name, arg.value])
    else {
      const property = Object.hasOwn(properties, arg.name) ? properties[arg.name] : undefined
      const value = expandOne(arg.template, data, typesOf(property), `argument ${JSON.stringify(arg.name)}`)
      if (value !== undefined) members.push([arg.name, value])
    }
  }
  return Object.fromEntries(members)
}

function expandOne(
  template: Template,
  data: TemplateValue,
  types: readonly string[],
  where: string,
): TemplateValue {
  const single = singleValue(template, data, where)
  const wantsText = types.length === 0 || types.includes('string')
  if (!single) return converted(expandText(template, data, where), types, wantsText)
  const { value } = single
  if (value === undefined) return undefined
  // A null that the tool does not take is left out: it has no text that would mean it.
  if (value === null) return types.length === 0 || types.includes('null') ? null : undefined
  if (typeof value !== 'string' && !wantsText) {
    const fits = types.some((type) =>
      type === 'null' ? value === null : isJsonType(type) && isOfType(value, type),
    )
    if (fits) return value
  }
  return converted(
    guarded(where, () => valueText(value)),
    types,
    wantsText,
  )
}

/** A text that cannot be converted stays one: the tool says what it thinks of it. */
function converted(text: string, types: readonly string[], wantsText: boolean): TemplateValue {
  if (wantsText) return text
  for (const type of types.filter((candidate): candidate is JsonType => isJsonType(candidate))) {
    const value = fromText(text, type)
    if (value !== undefined) return value
  }
  return text
}

/** Types that a schema names; empty when it names none. */
function typesOf(schema: unknown): readonly string[] {
  const { type } = fieldsOf(schema)
  if (typeof type === 'string') return [type]
  return Array.isArray(type) ? type.filter((one): one is string => typeof one === 'string') : []
}
