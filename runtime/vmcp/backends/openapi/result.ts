/**
 * Converts the response of a REST service to the result of a tool.
 *
 * JSON becomes text and structured content. Structured content is always an object, so other values are returned as
 * `{ result: … }`. An unsuccessful response becomes an error result with the status and the beginning of the body,
 * in which the credentials of the request are masked.
 * Source: MCP 2025-11-25, "Tool Result"; docs/guides/openapi.md.
 */
import { exactJson, isFields } from '../../../../schemas/index.ts'
import type { RequestPlan } from '../../../../schemas/openapi/index.ts'
import { type Outcome, resultOutcome, toolErrorOutcome } from '../../model/outcome.ts'
import type { Request } from '../connection.ts'
import { type AnsweredRequest, maskedText } from '../transport/backend-answer.ts'
import type { BackendResponse } from '../transport/http.ts'
import type { OutputCheck } from './output-check.ts'

const maxErrorText = 4_096

export interface ResultParts {
  readonly plan: RequestPlan
  readonly tool: string
  readonly request: Request
  readonly answered: AnsweredRequest
  readonly output: OutputCheck
}

export async function resultOf(response: BackendResponse, parts: ResultParts): Promise<Outcome> {
  const { status, body } = response
  if (status < 200 || status >= 300) return errorResult(response, parts.answered)
  const { plan } = parts
  const type = mediaTypeOf(response)
  const json = body.length > 0 && isJson(type, plan) ? parsed(body) : undefined
  if (json) return structured(json.value, json.text, parts)
  if (body.length > 0 && !isText(type)) return binaryResult(type, body)
  const text = decoded(body, response)
  // A client requires structured content from a tool with an output schema.
  if (plan.response.schema !== undefined) return structured(text === '' ? undefined : text, text, parts)
  return resultOutcome({ content: [{ type: 'text', text }] })
}

/** `value` is undefined for an empty response. */
async function structured(value: unknown, text: string, parts: ResultParts): Promise<Outcome> {
  const { plan, tool, request, output } = parts
  const { fields, isWrapped, schema } = plan.response
  const selected = fields
    ? onlyFields(
        value,
        fields.map((path) => path.split('.')),
      )
    : value
  const shown = fields ? JSON.stringify(selected) : text
  // Without a selection, the JSON text passes through unchanged.
  const inner =
    value === undefined ? 'null' : fields || typeof value === 'string' ? JSON.stringify(selected) : text
  const isBare = isFields(value) && !isWrapped
  const content = isBare ? inner : value === undefined && !isWrapped ? '{}' : `{"result":${inner}}`
  if (schema !== undefined) {
    const mismatches = await output.check(schema, Buffer.from(content), { tool, request })
    if (mismatches.length > 0)
      return toolErrorOutcome(`the response does not match the OpenAPI document: ${mismatches.join('; ')}`)
  }
  const texts = JSON.stringify([{ type: 'text', text: shown }])
  return { kind: 'result', result: Buffer.from(`{"content":${texts},"structuredContent":${content}}`) }
}

function mediaTypeOf({ headers }: BackendResponse): string {
  const type = headers['content-type']
  return typeof type === 'string' ? (type.split(';', 1)[0] ?? '').trim().toLowerCase() : ''
}

/** A response without a type is JSON if the document declares JSON. */
function isJson(type: string, { response }: RequestPlan): boolean {
  return type === 'application/json' || type.endsWith('+json') || (type === '' && response.kind === 'json')
}

function isText(type: string): boolean {
  return (
    type === '' ||
    type.startsWith('text/') ||
    /^application\/(?:json|xml|yaml|x-yaml|javascript|x-ndjson|x-www-form-urlencoded)$/.test(type) ||
    /\+(?:json|xml|yaml)$/.test(type)
  )
}

/** Returns undefined if the body is not JSON. */
function parsed(body: Buffer): { readonly value: unknown; readonly text: string } | undefined {
  const text = body.toString().replace(/^\uFEFF/, '')
  try {
    return { value: exactJson(text), text }
  } catch {
    return undefined
  }
}

function decoded(body: Buffer, { headers }: BackendResponse): string {
  const charset = /;\s*charset="?([\w.:-]+)/i.exec(String(headers['content-type']))?.[1] ?? 'utf-8'
  try {
    return new TextDecoder(charset).decode(body)
  } catch {
    return body.toString()
  }
}

/** MCP has content types for images and audio. Other binary data has no address that a client could use. */
function binaryResult(mimeType: string, body: Buffer): Outcome {
  const [kind = ''] = mimeType.split('/', 1)
  if (kind === 'image' || kind === 'audio')
    return resultOutcome({ content: [{ type: kind, data: body.toString('base64'), mimeType }] })
  return toolErrorOutcome(
    `the response is binary and cannot be returned (${mimeType.slice(0, 100)}, ${body.length} bytes)`,
  )
}

function errorResult(response: BackendResponse, answered: AnsweredRequest): Outcome {
  const { status, body } = response
  if (status >= 300 && status < 400)
    return toolErrorOutcome(`HTTP ${status}: the service redirected the request; redirects are not followed`)
  const type = mediaTypeOf(response)
  if (body.length === 0 || !isText(type)) return toolErrorOutcome(`HTTP ${status}`)
  const text = maskedText(decoded(body, response), answered)
  const shown = text.length > maxErrorText ? `${text.slice(0, maxErrorText)}…` : text
  return toolErrorOutcome(`HTTP ${status}: ${shown.toWellFormed()}`)
}

/** Keeps only the members at `paths`. A path applies to each item of a list. */
function onlyFields(value: unknown, paths: readonly (readonly string[])[]): unknown {
  if (Array.isArray(value)) return value.map((item) => onlyFields(item, paths))
  if (!isFields(value)) return value
  const kept = Object.entries(value).flatMap(([name, member]) => {
    const below = paths.filter(([first]) => first === name).map(([, ...rest]) => rest)
    if (below.length === 0) return []
    return [[name, below.some((rest) => rest.length === 0) ? member : onlyFields(member, below)] as const]
  })
  return Object.fromEntries(kept)
}
