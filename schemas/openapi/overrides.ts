/**
 * Applies the operator's changes to a tool: name, texts, annotations and fixed values of parameters.
 *
 * Every mistake in an override skips the operation. A fixed value often limits what clients can reach, such as a
 * tenant, so a tool without this limit must not be offered.
 */
import { headerValueViolation } from '../headers.ts'
import { type Fields, fieldsOf, listOf, own } from '../validation/fields.ts'
import { OperationSkipped } from './failures.ts'
import type { ConversionNotice, OpenApiSettings, OpenApiTool, RequestInput, ToolChange } from './model.ts'
import type { ApiOperation } from './operations.ts'
import { pathValueViolation } from './request/path-value.ts'

export function overrideOf({ id }: ApiOperation, { overrides = {} }: OpenApiSettings): ToolChange {
  return own(overrides, id) ?? {}
}

/** Returns a notice for each override that applies to no selected operation. */
export function unusedOverrides(
  selected: readonly ApiOperation[],
  { overrides = {} }: OpenApiSettings,
): readonly ConversionNotice[] {
  const ids = new Set(selected.map(({ id }) => id))
  return Object.keys(overrides)
    .filter((id) => !ids.has(id))
    .map((id) => ({
      code: 'unused_override',
      message: `the override ${JSON.stringify(id.slice(0, 80))} matches no selected operation`,
    }))
}

/** Throws OperationSkipped if a fixed value is invalid or names no parameter of the operation. */
export function withOverride(tool: OpenApiTool, change: ToolChange): OpenApiTool {
  const { name, title, description, annotations = {}, set = {} } = change
  const changed = Object.entries(set).reduce((one, [key, value]) => withFixedValue(one, key, value), tool)
  const given = Object.entries(annotations).filter(([, value]) => value !== null)
  return {
    ...changed,
    ...(name !== undefined && { name }),
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    annotations: { ...changed.annotations, ...Object.fromEntries(given) },
  }
}

function withFixedValue(tool: OpenApiTool, key: string, value: string): OpenApiTool {
  const [location = ''] = key.split('.', 1)
  const name = key.slice(location.length + 1)
  const index = tool.request.inputs.findIndex((input) => input.in === location && sameName(input, name))
  const input = tool.request.inputs[index]
  if (!input) throw new OperationSkipped('override', `set.${shown(key)} names no parameter of the operation`)
  const { properties, required, ...schema } = tool.inputSchema
  const { [input.argument]: member, ...visible } = fieldsOf(properties)
  const fixed = fixedValue(input, fieldsOf(member), value)
  const stillRequired = listOf(required).filter((argument) => argument !== input.argument)
  return {
    ...tool,
    inputSchema: {
      ...schema,
      properties: visible,
      ...(stillRequired.length > 0 && { required: stillRequired }),
    },
    request: { ...tool.request, inputs: tool.request.inputs.with(index, { ...input, fixed }) },
  }
}

function sameName(input: RequestInput, name: string): boolean {
  return input.in === 'header' ? input.name.toLowerCase() === name.toLowerCase() : input.name === name
}

/** Returns the value as the request needs it. Members of a body are JSON values, unless their schema is a string. */
function fixedValue(input: RequestInput, schema: Fields, value: string): unknown {
  const violation =
    input.in === 'path'
      ? pathValueViolation(value)
      : input.in === 'header'
        ? headerValueViolation(value)
        : undefined
  if (violation !== undefined)
    throw new OperationSkipped('override', `set.${shown(`${input.in}.${input.name}`)}: ${violation}`)
  if (input.in !== 'body' || schema['type'] === undefined || listed(schema['type']).includes('string'))
    return value
  try {
    return JSON.parse(value)
  } catch {
    throw new OperationSkipped('override', `set.${shown(`body.${input.name}`)} is not a JSON value`)
  }
}

function listed(type: unknown): readonly unknown[] {
  return Array.isArray(type) ? type : [type]
}

function shown(key: string): string {
  return key.slice(0, 80)
}
