/**
 * Reads the parameters of an operation: path, query and header. Parameters of the path item and of the operation are
 * merged by location and name. The parameters of the operation take precedence.
 * Source: OpenAPI 3.0.4 and 3.1.1, "Parameter Object".
 */
import { isHeaderName, isRestrictedHeader } from '../headers.ts'
import { type Fields, fieldsOf, isFields, listOf } from '../validation/fields.ts'
import { OperationSkipped } from './failures.ts'
import { isJsonMedia } from './media.ts'
import type { ParameterLocation, ParameterStyle } from './model.ts'
import type { ApiOperation } from './operations.ts'
import { mayMean } from './request/serialize.ts'
import { clipped, type OperationConversion } from './schema/convert-schema.ts'

const maxDescriptionLength = 1_000

export interface RequestParameter {
  readonly in: ParameterLocation
  readonly name: string
  readonly required: boolean
  readonly style: ParameterStyle
  readonly explode: boolean
  readonly allowReserved: boolean
  /** The converted schema, with the description of the parameter. */
  readonly schema: Fields
}

/** Styles that OpenAPI defines for each location. The first style is the default. */
const stylesOf: Readonly<Record<ParameterLocation, readonly ParameterStyle[]>> = {
  path: ['simple', 'label', 'matrix'],
  query: ['form', 'spaceDelimited', 'pipeDelimited', 'deepObject'],
  header: ['simple'],
}

/** Header parameters that OpenAPI ignores, because other parts of the document describe these headers. */
const ignoredHeaders: ReadonlySet<string> = new Set(['accept', 'content-type', 'authorization'])

/** Headers with which some servers replace the method, the path or the host of a request. */
const rewritingHeaders: ReadonlySet<string> = new Set([
  'x-host',
  'x-http-host-override',
  'x-http-method',
  'x-http-method-override',
  'x-method-override',
  'x-original-url',
  'x-rewrite-url',
])

/** Throws OperationSkipped if a parameter cannot be serialized safely, or if OpenAPI does not define its style. */
export function parametersOf(
  operation: ApiOperation,
  context: OperationConversion,
): readonly RequestParameter[] {
  const merged = new Map<string, Fields>()
  const own = listOf(operation.fields['parameters'])
  context.references.limitMembers(own)
  context.references.limitMembers(operation.commonParameters)
  for (const value of [...operation.commonParameters, ...own]) {
    const fields = context.references.object(value, 'a parameter')
    const { in: location, name } = fields
    if (typeof name !== 'string' || name === '' || typeof location !== 'string')
      throw new OperationSkipped('parameter', 'a parameter has no name or no location (in)')
    const key = location === 'header' ? name.toLowerCase() : name
    merged.set(`${location} ${key}`, fields)
  }
  const templated = new Set(templateNames(operation.path))
  const parameters = [...merged.values()].flatMap((fields) => {
    const location = usableLocation(fields, context)
    if (location === undefined) return []
    const parameter = parameterOf(location, fields, context)
    return location === 'path' && !templated.has(parameter.name) ? [] : [parameter]
  })
  for (const name of templated) {
    if (!parameters.some((one) => one.in === 'path' && one.name === name))
      throw new OperationSkipped(
        'path_template',
        `the path contains {${clipped(name, 80)}}, but no path parameter has this name`,
      )
  }
  return parameters
}

/** Returns the names in braces. */
function templateNames(path: string): readonly string[] {
  return [...path.matchAll(/\{([^{}]*)\}/g)].map(([, name = '']) => name)
}

/** Returns the location of a parameter; undefined if the parameter is left out. */
function usableLocation(
  fields: Fields,
  { note, credential, configuredHeaders }: OperationConversion,
): ParameterLocation | undefined {
  const { in: location, required } = fields
  const name = String(fields['name'])
  const shown = clipped(name, 80)
  if (location === 'query' && credential && mayMean(name, new Set([credential.parameter.toLowerCase()])))
    return undefined
  if (location === 'path' || location === 'query') return location
  if (location === 'cookie') {
    if (required === true) throw new OperationSkipped('cookie_parameter', `the cookie ${shown} is required`)
    note('cookie_parameter', `the cookie ${shown} cannot be set`)
    return undefined
  }
  if (location !== 'header')
    throw new OperationSkipped('parameter', `the parameter ${shown} has an unknown location`)
  const lower = name.toLowerCase()
  if (ignoredHeaders.has(lower) || configuredHeaders.has(lower)) return undefined
  if (!isHeaderName(name)) throw new OperationSkipped('parameter', `${shown} is not a valid header name`)
  if (rewritingHeaders.has(lower)) {
    const message = `the header ${shown} can change the method or the address of a request`
    if (required === true) throw new OperationSkipped('restricted_header', message)
    note('restricted_header', message)
    return undefined
  }
  if (!isRestrictedHeader(name, 'passedThrough')) return location
  if (required === true)
    throw new OperationSkipped('restricted_header', `the header ${shown} is set by the gateway`)
  note('restricted_header', `the header ${shown} is set by the gateway`)
  return undefined
}

function parameterOf(
  location: ParameterLocation,
  fields: Fields,
  context: OperationConversion,
): RequestParameter {
  const { content, style, explode, allowReserved, required, description } = fields
  const name = String(fields['name'])
  const shown = clipped(name, 80)
  if (location === 'path' && allowReserved === true)
    throw new OperationSkipped('path_reserved', `the path parameter ${shown} has allowReserved`)
  if (isFields(content)) context.references.limitMembers(content)
  const shape = isFields(content) ? contentSchema(shown, content) : fields['schema']
  const converted = context.schemas.convert(shape ?? {}, 'request', context.note)
  const chosen = isFields(content) ? 'json' : styleOf(location, shown, style)
  return {
    in: location,
    name,
    required: location === 'path' || required === true,
    style: chosen,
    explode: typeof explode === 'boolean' ? explode : chosen === 'form' || chosen === 'deepObject',
    allowReserved: location === 'query' && allowReserved === true,
    schema: described(converted, description),
  }
}

function contentSchema(name: string, content: Fields): unknown {
  const found = Object.entries(content).find(([media]) => isJsonMedia(media))
  if (!found)
    throw new OperationSkipped('parameter_media_type', `the parameter ${name} has content other than JSON`)
  return fieldsOf(found[1])['schema']
}

function styleOf(location: ParameterLocation, name: string, style: unknown): ParameterStyle {
  const styles = stylesOf[location]
  const chosen = style === undefined ? styles[0] : styles.find((one) => one === style)
  if (chosen === undefined)
    throw new OperationSkipped(
      'parameter_style',
      `OpenAPI does not define the style of the ${location} parameter ${name}`,
    )
  return chosen
}

function described(schema: Fields, description: unknown): Fields {
  if (typeof description !== 'string' || description === '') return schema
  return { ...schema, description: clipped(description, maxDescriptionLength) }
}
