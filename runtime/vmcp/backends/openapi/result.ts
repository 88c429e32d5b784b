/**
 * Converts the response of a REST service to the result of a tool.
 *
 * JSON becomes text and structured content. Structured content is always an object, so other values are returned as
 * `{ result: … }`. An unsuccessful response becomes an error result with the status and the beginning of the body,
 * in which the credentials of the request are masked.
 * Source: MCP 2025-11-25, "Tool Result"; docs/guides/openapi.md.
 */
import { isUtf8 } from 'node:buffer'
import type { RequestPlan } from '../../../../schemas/openapi/index.ts'
import { emptyObjectBytes, objectEnd, openObject, workOn } from '../../../mcp/index.ts'
import { type Outcome, resultOutcome, toolErrorOutcome } from '../../model/outcome.ts'
import type { Request } from '../connection.ts'
import { maskedText, type SentHeaders } from '../transport/backend-answer.ts'
import type { BackendResponse } from '../transport/http.ts'
import { fieldTree, isJsonValue, quoted, withOnly } from './json-text.ts'
import type { OutputCheck } from './output-check.ts'

const maxErrorText = 4_096
const mark = Buffer.from('\uFEFF')
const blank = 0x20

export interface ResultParts {
  readonly plan: RequestPlan
  readonly tool: string
  readonly request: Request
  /** The headers whose values are masked in an unsuccessful response. */
  readonly secrets: SentHeaders
  readonly output: OutputCheck
}

export async function resultOf(response: BackendResponse, parts: ResultParts): Promise<Outcome> {
  const { status, body } = response
  if (status < 200 || status >= 300) return errorResult(response, parts.secrets)
  const { plan } = parts
  const type = mediaTypeOf(response)
  const bytes = utf8Of(body)
  if (bytes.length > 0 && isJson(type, plan) && (await workOn(bytes, isJsonValue(bytes))))
    return structured(bytes, parts)
  if (body.length > 0 && !isText(type)) return binaryResult(type, body)
  const text = decoded(body, response)
  // A client requires structured content from a tool with an output schema.
  if (plan.response.schema !== undefined) return structured(text === '' ? undefined : text, parts)
  return resultOutcome({ content: [{ type: 'text', text }] })
}

/** `value` is JSON, or text that is not JSON; undefined for an empty response. */
async function structured(value: Buffer | string | undefined, parts: ResultParts): Promise<Outcome> {
  const { plan, tool, request, output } = parts
  const { fields, isWrapped, schema } = plan.response
  const json = Buffer.isBuffer(value)
    ? fields
      ? await workOn(value, withOnly(value, fieldTree(fields)))
      : value
    : undefined
  const text = json?.toString() ?? String(value ?? '')
  const string = await workOn(json ?? Buffer.from(text), quoted(text))
  const inner = json ?? (value === undefined ? Buffer.from('null') : string)
  const isObject = json?.[json.findIndex((byte) => byte > blank)] === openObject
  const isEmpty = value === undefined && !isWrapped
  const content =
    isObject && !isWrapped
      ? inner
      : Buffer.concat(isEmpty ? [emptyObjectBytes] : [Buffer.from('{"result":'), inner, objectEnd])
  if (schema !== undefined) {
    const mismatches = await output.check(schema, Buffer.from(content), { tool, request })
    if (mismatches.length > 0)
      return toolErrorOutcome(`the response does not match the OpenAPI document: ${mismatches.join('; ')}`)
  }
  const pieces = ['{"content":[{"type":"text","text":', string, '}],"structuredContent":', content, '}']
  const bytes = pieces.map((piece) => Buffer.from(piece))
  return { kind: 'result', result: Buffer.concat(bytes) }
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

/** Returns the body without a byte order mark, and with U+FFFD for bytes that are not UTF-8. */
function utf8Of(body: Buffer): Buffer {
  const text = body.subarray(0, mark.length).equals(mark) ? body.subarray(mark.length) : body
  return isUtf8(text) ? text : Buffer.from(text.toString())
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

function errorResult(response: BackendResponse, secrets: SentHeaders): Outcome {
  const { status, body } = response
  if (status >= 300 && status < 400)
    return toolErrorOutcome(`HTTP ${status}: the service redirected the request; redirects are not followed`)
  const type = mediaTypeOf(response)
  if (body.length === 0 || !isText(type)) return toolErrorOutcome(`HTTP ${status}`)
  const text = maskedText(decoded(body, response), secrets)
  const shown = text.length > maxErrorText ? `${text.slice(0, maxErrorText)}…` : text
  return toolErrorOutcome(`HTTP ${status}: ${shown.toWellFormed()}`)
}
