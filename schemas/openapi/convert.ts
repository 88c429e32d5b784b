/**
 * Converts an OpenAPI document to tools: opens the document, selects operations, and creates a tool with a request plan
 * for each operation.
 *
 * The conversion is synchronous. For the largest documents, it takes several seconds, mostly to parse YAML. Servers
 * must call it in a worker thread; the command line calls it directly. All limits are defined in document/document.ts
 * and schema/convert-schema.ts. The result is plain data and never contains a value of `servers` or `securitySchemes`:
 * the address and the credentials come from configuration only.
 */
import { fieldsOf } from '../validation/fields.ts'
import { argumentsOf } from './arguments.ts'
import { openDocument } from './document/document.ts'
import { References } from './document/references.ts'
import { documentRejected, OperationSkipped, type SkipReason, skipReasons } from './failures.ts'
import type {
  ConversionNotice,
  OpenApiConversion,
  OpenApiSettings,
  OpenApiSummary,
  OpenApiTool,
  PathPart,
  SkippedOperation,
  ApiToolAnnotations,
  UnselectedOperation,
} from './model.ts'
import { type ApiOperation, operationsOf, selectOperations } from './operations.ts'
import { overrideOf, unusedOverrides, withOverride } from './overrides.ts'
import { responseOf } from './response.ts'
import {
  clipped,
  type OperationConversion,
  type ReportNotice,
  SchemaConverter,
} from './schema/convert-schema.ts'

const maxTitleLength = 200
const maxDescriptionLength = 2_000
/** Source: MCP 2025-11-25, "Tool Names". */
const maxNameLength = 128

/**
 * Converts the text of a document or a parsed document. Throws INVALID_CONFIG with `data.rule` when the whole document
 * is rejected. An error in one operation skips only that operation.
 */
export function convertOpenApi(source: unknown, settings: OpenApiSettings = {}): OpenApiConversion {
  const ofTools: ConversionNotice[] = []
  const { notices, ...conversion } = convertEach(source, settings, (tool, own) => {
    ofTools.push(...own)
    return tool
  })
  return { ...conversion, notices: [...notices, ...ofTools] }
}

/**
 * Converts a document like `convertOpenApi`, but keeps only the names of the tools, and only the notices about unused
 * settings. Memory use is therefore independent of the size of the schemas.
 */
export function summarizeOpenApi(source: unknown, settings: OpenApiSettings = {}): OpenApiSummary {
  return convertEach(source, settings, ({ name }) => ({ name }))
}

/** Calls `keep` with each tool and its notices. The result contains only the values that `keep` returns. */
function convertEach<Kept extends { readonly name: string }>(
  source: unknown,
  settings: OpenApiSettings,
  keep: (tool: OpenApiTool, notices: readonly ConversionNotice[]) => Kept,
): Omit<OpenApiConversion, 'tools'> & { readonly tools: readonly Kept[] } {
  const document = openDocument(source)
  const references = new References(document.root)
  const schemas = new SchemaConverter(references, document)
  const operations = operationsOf(document, references)
  const { selected, unselected, unused } = selectOperations(operations, settings)
  const { apiKeyQuery: credential, configuredHeaders: names = [] } = settings
  const configuredHeaders = new Set(
    [...names, ...(credential ? [credential.header] : [])].map((name) => name.toLowerCase()),
  )
  const made: MadeTool<Kept>[] = []
  const skipped: SkippedOperation[] = []
  for (const operation of selected) {
    const own: ConversionNotice[] = []
    const note: ReportNotice = (code, message) => own.push({ operation: operation.label, code, message })
    try {
      const context = { references, schemas, note, credential, configuredHeaders }
      const tool = toolOf(operation, settings, context)
      made.push({ operation, tool: keep(withOverride(tool, overrideOf(operation, settings)), own) })
    } catch (error) {
      if (!(error instanceof OperationSkipped)) throw error
      skipped.push(skippedOperation(operation, error.reason, error.message))
    }
  }
  const { tools, repeated } = withUniqueNames(made)
  skipped.push(...repeated)
  if (tools.length === 0) throw withoutTools(skipped, unselected)
  const { title, version } = document
  const notices = [
    ...unused.map((filter) => ({ code: 'unused_filter', message: `${filter} matches no operation` })),
    ...unusedOverrides(selected, settings),
  ]
  return { title, version, operations: operations.length, tools, skipped, unselected, notices }
}

interface MadeTool<Kept> {
  readonly operation: ApiOperation
  readonly tool: Kept
}

function toolOf(
  operation: ApiOperation,
  settings: OpenApiSettings,
  context: OperationConversion,
): OpenApiTool {
  const { method, fields } = operation
  if (method === 'TRACE') throw new OperationSkipped('trace', 'TRACE is not supported')
  context.references.limitMembers(fields)
  if (context.references.limitMembers(fieldsOf(fields['callbacks'])) > 0)
    throw new OperationSkipped('callbacks', 'the operation sends callbacks')
  const path = pathParts(operation.path)
  const { inputSchema, inputs, body } = argumentsOf(operation, context)
  const { plan: response, outputSchema } = responseOf(operation, settings, context)
  const credential = context.credential?.parameter
  const title = textOf(fields['summary'])
  const description = textOf(fields['description']) ?? title ?? ''
  return {
    name: nameOf(operation),
    ...(title !== undefined && { title: clipped(title, maxTitleLength) }),
    description: clipped(description, maxDescriptionLength),
    annotations: annotationsOf(method),
    inputSchema,
    ...(outputSchema && { outputSchema }),
    request: {
      ...{ method, path, inputs, response },
      ...(body && { body }),
      ...(credential !== undefined && { credential }),
    },
  }
}

function nameOf({ id }: ApiOperation): string {
  if (id.length > maxNameLength)
    throw new OperationSkipped(
      'invalid_name',
      `the name ${JSON.stringify(clipped(id, 40))} is longer than ${maxNameLength} characters`,
    )
  return id.replaceAll(/[^A-Za-z0-9_-]/g, '_')
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined
}

/** Source: RFC 9110, section 9.2; MCP 2025-11-25, "Tool annotations". */
function annotationsOf(method: string): ApiToolAnnotations {
  if (method === 'GET' || method === 'HEAD') return { readOnlyHint: true }
  if (method === 'PUT') return { idempotentHint: true }
  return method === 'DELETE' ? { destructiveHint: true, idempotentHint: true } : {}
}

/** Splits a path template. Throws OperationSkipped if the path could resolve outside the base URL. */
function pathParts(template: string): readonly PathPart[] {
  const parts = template.split(/(\{[^{}]*\})/).filter((part) => part !== '')
  const texts = parts.filter((part) => !part.startsWith('{'))
  const filled = parts.map((part) => (part.startsWith('{') ? 'x' : part)).join('')
  const isSafe =
    texts.every((text) => /^(?:[\w~.!$&'()*+,;=:@/-]|%[\dA-F]{2})*$/i.test(text)) &&
    URL.parse(`http://host${filled}`)?.pathname === filled &&
    !filled.startsWith('//') &&
    !/%(?:2e|2f|5c)/i.test(filled)
  if (!isSafe)
    throw new OperationSkipped(
      'path_template',
      'the path contains characters or segments that are not allowed',
    )
  return parts.map((part) => (part.startsWith('{') ? { parameter: part.slice(1, -1) } : { text: part }))
}

/** Skips all operations that have the same name, because no rule determines which of them keeps it. */
function withUniqueNames<Kept extends { readonly name: string }>(made: readonly MadeTool<Kept>[]) {
  const byName = Map.groupBy(made, ({ tool }) => tool.name)
  const isUnique = ({ tool }: MadeTool<Kept>): boolean => byName.get(tool.name)?.length === 1
  const repeated = made
    .filter((one) => !isUnique(one))
    .map(({ operation, tool }) =>
      skippedOperation(operation, 'equal_names', `another operation also has the name ${tool.name}`),
    )
  return { tools: made.filter(isUnique).map(({ tool }) => tool), repeated }
}

function skippedOperation({ label }: ApiOperation, reason: SkipReason, message: string): SkippedOperation {
  return { operation: label, reason, message, fix: skipReasons[reason] }
}

function withoutTools(skipped: readonly SkippedOperation[], unselected: readonly UnselectedOperation[]) {
  const counts = (reasons: readonly string[]): string =>
    [...Map.groupBy(reasons, (reason) => reason)].map(([reason, all]) => `${all.length} ${reason}`).join(', ')
  const parts = [
    ...(skipped.length > 0 ? [`skipped: ${counts(skipped.map(({ reason }) => reason))}`] : []),
    ...(unselected.length > 0 ? [`not selected: ${counts(unselected.map(({ reason }) => reason))}`] : []),
  ]
  const detail = parts.length > 0 ? parts.join('; ') : 'the document has no operations'
  return documentRejected('no-operations', `no operation becomes a tool (${detail})`, { skipped, unselected })
}
