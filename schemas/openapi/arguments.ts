/**
 * Maps the parameters and the body of an operation to one flat object of arguments, and records in the plan where each
 * argument goes.
 */
import { type Fields, fieldsOf, isFields, listOf } from '../validation/fields.ts'
import { OperationSkipped } from './failures.ts'
import { essenceOf, formMedia, jsonEntry } from './media.ts'
import type { ParameterStyle, RequestInput, RequestPlan } from './model.ts'
import type { ApiOperation } from './operations.ts'
import { type RequestParameter, parametersOf } from './parameters.ts'
import type { OperationConversion } from './schema/convert-schema.ts'

/** Maximum length of an argument name, because some clients reject longer names. */
const maxArgumentLength = 64

export interface OperationArguments {
  readonly inputSchema: Fields
  readonly inputs: readonly RequestInput[]
  readonly body: RequestPlan['body']
}

interface Argument {
  readonly input: RequestInput
  readonly schema: Fields
}

/** Throws OperationSkipped when the operation cannot be called safely or without ambiguity. */
export function argumentsOf(operation: ApiOperation, context: OperationConversion): OperationArguments {
  const parameters = parametersOf(operation, context)
  const body = bodyOf(operation, context)
  const named = namedParameters(parameters, new Set())
  const members = body && bodyMembers(body, named)
  const all =
    members === undefined && body
      ? [...namedParameters(parameters, new Set(['body'])), wholeBody(body)]
      : [...named, ...(members ?? [])]
  const required = all.filter(({ input }) => input.required).map(({ input }) => input.argument)
  return {
    inputSchema: {
      type: 'object',
      properties: Object.fromEntries(all.map(({ input, schema }) => [input.argument, schema])),
      ...(required.length > 0 && { required }),
      additionalProperties: false,
    },
    inputs: all.map(({ input }) => input),
    body: body && { mediaType: body.mediaType, encoding: body.encoding, required: body.required },
  }
}

/** Path parameters keep their names. On a collision, the other parameter gets its location as a suffix. */
function namedParameters(parameters: readonly RequestParameter[], taken: Set<string>): readonly Argument[] {
  const order = ['path', 'query', 'header'] as const
  return order
    .flatMap((location) => parameters.filter((one) => one.in === location))
    .map((parameter) => {
      const base = argumentName(parameter.name)
      const argument = taken.has(base) ? `${base}__${parameter.in}` : base
      if (taken.has(argument))
        throw new OperationSkipped('argument_collision', `two parameters map to the argument ${argument}`)
      taken.add(argument)
      const { schema, ...rest } = parameter
      return { input: { argument, ...rest }, schema }
    })
}

/** Returns `tags` for `tags[]`, and `filter_status` for `filter[status]`. Some clients reject other characters. */
function argumentName(name: string): string {
  const words = name.split(/[^A-Za-z0-9_.-]+/).filter((word) => word !== '')
  return words.join('_').slice(0, maxArgumentLength) || '_'
}

interface RequestBody {
  readonly mediaType: string
  readonly encoding: 'json' | 'form'
  readonly required: boolean
  readonly schema: Fields
  /** The `encoding` map of the media type, which describes the fields of a form. */
  readonly members: Fields
}

function bodyOf({ fields, method }: ApiOperation, context: OperationConversion): RequestBody | undefined {
  if (fields['requestBody'] === undefined) return undefined
  const { content, required } = context.references.object(fields['requestBody'], 'the request body')
  if (method === 'GET' || method === 'HEAD') {
    if (required === true) throw new OperationSkipped('body_on_get', `${method} requests have no body`)
    context.note('body_on_get', `the body is left out, because ${method} requests have no body`)
    return undefined
  }
  const entries = fieldsOf(content)
  context.references.limitMembers(entries)
  const json = jsonEntry(entries)
  const form = Object.entries(entries).find(([media]) => essenceOf(media) === formMedia)
  if (!json && !form) {
    const offered = Object.keys(entries).slice(0, 3).join(', ').slice(0, 120)
    throw new OperationSkipped(
      'body_media_type',
      offered === ''
        ? 'the request body has no media types'
        : `the media type of the request body is ${offered}`,
    )
  }
  const fieldsOfMedia = json?.fields ?? fieldsOf(form?.[1])
  return {
    mediaType: json?.media ?? formMedia,
    encoding: json ? 'json' : 'form',
    required: required === true,
    schema: context.schemas.convert(fieldsOfMedia['schema'] ?? {}, 'request', context.note),
    members: fieldsOf(fieldsOfMedia['encoding']),
  }
}

/** Keywords that a flat body may have. Any other keyword describes the body as a whole. */
const flatKeywords: ReadonlySet<string> = new Set([
  'type',
  'properties',
  'required',
  'title',
  'description',
  'deprecated',
  'additionalProperties',
])

/** Returns one argument for each member of the body; undefined when the whole body becomes a single argument. */
function bodyMembers(body: RequestBody, parameters: readonly Argument[]): readonly Argument[] | undefined {
  const { type, properties, required, additionalProperties: extra } = body.schema
  const isFlat =
    isFields(properties) &&
    Object.keys(properties).length > 0 &&
    (type === undefined || type === 'object') &&
    Object.keys(body.schema).every((keyword) => flatKeywords.has(keyword)) &&
    (extra === undefined || extra === false || body.encoding === 'form')
  if (!isFlat) {
    if (body.encoding === 'form')
      throw new OperationSkipped('form_body', 'the form is not an object with properties')
    return undefined
  }
  const taken = new Set(parameters.map(({ input }) => input.argument))
  const members: Argument[] = []
  for (const [name, schema] of Object.entries(properties)) {
    const argument = argumentName(name)
    if (taken.has(argument)) {
      if (body.encoding === 'form')
        throw new OperationSkipped(
          'argument_collision',
          `a form field and a parameter map to the argument ${argument}`,
        )
      return undefined
    }
    taken.add(argument)
    const isRequired = body.required && listOf(required).includes(name)
    const form =
      body.encoding === 'form' ? formStyle(fieldsOf(schema), fieldsOf(body.members[name])) : jsonMember
    members.push({
      input: { argument, in: 'body', name, required: isRequired, allowReserved: false, ...form },
      schema: fieldsOf(schema),
    })
  }
  return members
}

const jsonMember = { style: 'json', explode: false } as const

/** Serializes an object in a form as JSON text, unless the `encoding` map sets a style. */
function formStyle(schema: Fields, { style, explode }: Fields): { style: ParameterStyle; explode: boolean } {
  const styles = ['form', 'spaceDelimited', 'pipeDelimited', 'deepObject'] as const
  const chosen = styles.find((one) => one === style) ?? (schema['type'] === 'object' ? 'json' : 'form')
  return { style: chosen, explode: typeof explode === 'boolean' ? explode : true }
}

function wholeBody(body: RequestBody): Argument {
  return {
    input: {
      argument: 'body',
      in: 'wholeBody',
      name: '',
      required: body.required,
      style: 'json',
      explode: false,
      allowReserved: false,
    },
    schema: body.schema,
  }
}
