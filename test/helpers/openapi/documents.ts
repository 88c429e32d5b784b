/** Small OpenAPI documents for tests. */
import { convertOpenApi, type OpenApiSettings, type OpenApiTool } from '../../../schemas/openapi/index.ts'

/** Returns a document with one operation. `path` defaults to the names of its path parameters. */
export function documentWith(
  operation: object,
  { at = 'get /things', version = '3.0.3', schemas = {}, item = {}, ...rest }: DocumentParts = {},
): object {
  const [method = '', path = ''] = at.split(' ')
  return {
    openapi: version,
    info: { title: 'Things', version: '1' },
    paths: { [path]: { ...item, [method]: operation } },
    components: { schemas },
    ...rest,
  }
}

export interface DocumentParts {
  /** Method and path, such as `get /things`. */
  readonly at?: string
  readonly version?: string
  readonly schemas?: object
  /** Other members of the path item. */
  readonly item?: object
  readonly webhooks?: object
}

/** Selects every method. */
export const everyMethod: OpenApiSettings = {
  operations: {
    include: [{ methods: ['get', 'head', 'post', 'put', 'patch', 'delete', 'options', 'trace'] }],
  },
}

/** Converts a document with one operation, next to a second operation that always becomes a tool. */
export function outcomeOf(
  operation: object,
  parts: DocumentParts = {},
  settings: OpenApiSettings = everyMethod,
) {
  const document = documentWith(operation, parts) as { paths: object }
  const other = { '/other': { get: { operationId: 'other', responses: {} } } }
  const conversion = convertOpenApi({ ...document, paths: { ...document.paths, ...other } }, settings)
  const tool = conversion.tools.find(({ name }) => name !== 'other')
  return { ...conversion, tool, reason: conversion.skipped[0]?.reason }
}

/** Returns the tool of the only operation. Fails when there is none. */
export function toolFor(operation: object, parts?: DocumentParts, settings?: OpenApiSettings): OpenApiTool {
  const { tool, skipped } = outcomeOf(operation, parts, settings)
  if (!tool) throw new Error(`no tool: ${JSON.stringify(skipped)}`)
  return tool
}

export const json = (schema: unknown): object => ({ content: { 'application/json': { schema } } })

export const query = (name: string, more: object = {}): object => ({
  name,
  in: 'query',
  schema: { type: 'string' },
  ...more,
})
