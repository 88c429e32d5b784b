/** Derives the output schema of the tool, and the plan for reading a response, from the successful responses. */
import { type Fields, fieldsOf, isFields, listOf } from '../validation/fields.ts'
import { OperationSkipped } from './failures.ts'
import { essenceOf, isMediaType, isTextMedia, jsonEntry, type MediaEntry } from './media.ts'
import type { OpenApiSettings, ResponsePlan } from './model.ts'
import type { ApiOperation } from './operations.ts'
import type { OperationConversion } from './schema/convert-schema.ts'

export interface OperationResponse {
  readonly plan: ResponsePlan
  readonly outputSchema?: Fields
}

/** Returns no output schema if the response has no usable schema. The operation still becomes a tool. */
export function responseOf(
  { fields, method }: ApiOperation,
  { response = {} }: OpenApiSettings,
  context: OperationConversion,
): OperationResponse {
  const responses = fieldsOf(fields['responses'])
  context.references.limitMembers(responses)
  const contents = method === 'HEAD' ? [] : successContents(responses, context)
  const json = contents.map(jsonEntry).find((entry) => entry !== undefined)
  if (!json) return { plan: planWithoutJson(contents) }
  const selected = response.fields?.length ? { fields: response.fields } : {}
  const plan = { kind: 'json', accept: json.media, isWrapped: false, ...selected } as const
  const found = outputOf(json, response, context)
  if (found === undefined) return { plan }
  const isWrapped = found['type'] !== 'object'
  const { output = 'warn' } = response
  if (output === 'off') return { plan: { ...plan, isWrapped } }
  const schema = isWrapped ? wrapped(found) : found
  return {
    plan: { ...plan, isWrapped, schema },
    outputSchema: output === 'enforce' ? schema : { ...descriptionOf(schema), type: 'object' },
  }
}

const typeNames: ReadonlySet<unknown> = new Set(['array', 'boolean', 'integer', 'number', 'object', 'string'])

/**
 * Returns a schema that describes the same members but accepts every value. Clients reject a result that does not match
 * the output schema, and responses of real services often differ from their documents.
 */
function descriptionOf(schema: Fields): Fields {
  const { title, description, type, properties, items } = schema
  const isNested = isFields(properties) || isFields(items)
  const text = description ?? (!isNested && typeNames.has(type) ? type : undefined)
  return {
    ...(title !== undefined && { title }),
    ...(text !== undefined && { description: text }),
    ...(isFields(properties) && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([name, member]) => [name, descriptionOf(fieldsOf(member))]),
      ),
    }),
    ...(isFields(items) && { items: descriptionOf(items) }),
  }
}

function planWithoutJson(contents: readonly Fields[]): ResponsePlan {
  const media = contents.flatMap((content) => Object.keys(content)).find(isMediaType)
  if (media === undefined) return { kind: 'empty', isWrapped: false }
  return { kind: isTextMedia(media) ? 'text' : 'binary', accept: essenceOf(media), isWrapped: false }
}

/**
 * Returns the `content` maps of the successful responses, lowest status first; of `default` if no 2xx status exists.
 */
function successContents(responses: Fields, { references, note }: OperationConversion): readonly Fields[] {
  const statuses = Object.keys(responses).filter((status) => /^2(\d\d|XX)$/i.test(status))
  const ordered = statuses.length > 0 ? statuses.toSorted() : ['default']
  return ordered.flatMap((status) => {
    if (responses[status] === undefined) return []
    try {
      const { content } = references.object(responses[status], `the response ${status}`)
      if (!isFields(content)) return []
      references.limitMembers(content)
      return [content]
    } catch (error) {
      if (!(error instanceof OperationSkipped)) throw error
      note('response', error.message)
      return []
    }
  })
}

function outputOf(
  { fields: { schema } }: MediaEntry,
  { fields = [] }: NonNullable<OpenApiSettings['response']>,
  { schemas, note }: OperationConversion,
): Fields | undefined {
  if (schema === undefined) return undefined
  try {
    const converted = asObject(schemas.convert(schema, 'response', note))
    return fields.length > 0
      ? onlyFields(
          converted,
          fields.map((path) => path.split('.')),
        )
      : converted
  } catch (error) {
    if (!(error instanceof OperationSkipped)) throw error
    note('output_schema', `the tool has no output schema: ${error.message}`)
    return undefined
  }
}

/** Adds the type that a schema with properties implies, because MCP requires it. */
function asObject(schema: Fields): Fields {
  const hasChoice = ['anyOf', 'oneOf', 'type'].some((keyword) => schema[keyword] !== undefined)
  return isFields(schema['properties']) && !hasChoice ? { type: 'object', ...schema } : schema
}

function wrapped(schema: Fields): Fields {
  return { type: 'object', properties: { result: schema }, required: ['result'] }
}

/**
 * Keeps only the members at `paths`. A path applies to each item of a list. Leaves schemas without properties
 * unchanged.
 */
function onlyFields(schema: Fields, paths: readonly (readonly string[])[]): Fields {
  const { properties, required, items } = schema
  if (isFields(items)) return { ...schema, items: onlyFields(items, paths) }
  if (!isFields(properties)) return schema
  const kept = Object.entries(properties).flatMap(([name, member]) => {
    const below = paths.filter(([first]) => first === name).map(([, ...rest]) => rest)
    if (below.length === 0) return []
    const isWhole = below.some((rest) => rest.length === 0)
    return [[name, isWhole ? member : onlyFields(fieldsOf(member), below)] as const]
  })
  const names = new Set<unknown>(kept.map(([name]) => name))
  return {
    ...schema,
    properties: Object.fromEntries(kept),
    required: listOf(required).filter((one) => names.has(one)),
  }
}
