/**
 * Converts a tool result for a script. Uses the structured content or, if there is none, the whole content. The worker
 * parses text items that contain JSON.
 * Source: docs/reference/specification/virtual-server.md#endpoints, "Endpoints" (execute_tool_script).
 */
import { arrayEnd, arrayStart, comma, JsonError, JsonObject, scanElements } from '../../../mcp/index.ts'
import type { Outcome } from '../../model/outcome.ts'
import type { ToolResponse } from './messages.ts'

const unreadable: ToolResponse = { kind: 'error', message: 'the tool returned an invalid result' }

export function responseOf(outcome: Outcome): ToolResponse {
  try {
    if (outcome.kind === 'error')
      return {
        kind: 'error',
        message: new JsonObject(outcome.error).text('message') ?? 'tool execution error',
      }
    return fromResult(new JsonObject(outcome.result))
  } catch (error) {
    if (error instanceof JsonError) return unreadable
    throw error
  }
}

/** Reads only the necessary members of a large result. The worker reads all other members. */
function fromResult(result: JsonObject): ToolResponse {
  const isError = result.raw('isError')?.[0] === 0x74
  const structured = isError ? undefined : result.raw('structuredContent')
  if (structured !== undefined && structured[0] !== 0x6e)
    return { kind: 'json', bytes: copy(unwrapped(structured)) }
  const content = result.raw('content')
  const items = content?.[0] === 0x5b ? scanElements(content) : []
  if (isError) return { kind: 'error', message: errorText(items) }
  const usable = items.filter((item) => item[0] === 0x7b)
  const [only] = usable
  if (!content || !only) return { kind: 'nothing' }
  const text = usable.length === 1 ? rawTextOf(only) : undefined
  if (text) return { kind: 'text', bytes: copy(text) }
  return { kind: 'content', bytes: copy(usable.length === items.length ? content : listOf(usable)) }
}

/** Maximum number of content items in an error message. A script or a model does not need more items. */
const maxErrorItems = 100

function errorText(items: readonly Buffer[]): string {
  const texts = items.slice(0, maxErrorItems).flatMap((item) => textOf(item) || [])
  return texts.join('\n') || 'tool execution error'
}

function listOf(items: readonly Buffer[]): Buffer {
  return Buffer.concat([
    arrayStart,
    ...items.flatMap((item, i) => (i === 0 ? [item] : [comma, item])),
    arrayEnd,
  ])
}

/** Some frameworks wrap a result that is not an object in an object with the single key `result`. */
function unwrapped(structured: Buffer): Buffer {
  if (structured[0] !== 0x7b) return structured
  const object = new JsonObject(structured)
  const names = object.names()
  return (names.length === 1 ? object.raw('result') : undefined) ?? structured
}

/** Returns the raw JSON string of a text item. */
function rawTextOf(item: Buffer): Buffer | undefined {
  if (item[0] !== 0x7b) return undefined
  const object = new JsonObject(item)
  const text = object.text('type') === 'text' ? object.raw('text') : undefined
  return text?.[0] === 0x22 ? text : undefined
}

function textOf(item: Buffer): string | undefined {
  const raw = rawTextOf(item)
  return raw && String(JSON.parse(raw.toString()))
}

/** Copies the bytes, because posting a message transfers the whole underlying buffer. */
function copy(bytes: Buffer): Uint8Array {
  return Uint8Array.from(bytes)
}
