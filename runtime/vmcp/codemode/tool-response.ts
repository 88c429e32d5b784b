/**
 * What a script gets of a tool's result: the structured content, or else all of the content. Texts are parsed when they
 * are JSON, which the worker finds out.
 * Source: docs/specification/virtual-server.md#endpoints, "Endpoints" (execute_tool_script).
 */
import { JsonError, JsonObject, scanElements } from '../../mcp/index.ts'
import type { Outcome } from '../pipeline/operation.ts'
import type { ToolResponse } from './messages.ts'

const UNREADABLE: ToolResponse = { kind: 'error', message: 'the tool gave an unusable result' }

export function responseOf(outcome: Outcome): ToolResponse {
  try {
    if (outcome.kind === 'error')
      return {
        kind: 'error',
        message: new JsonObject(outcome.error).text('message') ?? 'tool execution error',
      }
    return fromResult(new JsonObject(outcome.result))
  } catch (error) {
    if (error instanceof JsonError) return UNREADABLE
    throw error
  }
}

function fromResult(result: JsonObject): ToolResponse {
  const content = result.raw('content')
  const items = content?.[0] === 0x5b ? scanElements(content) : []
  if (result.value('isError') === true) {
    const texts = items.flatMap((item) => textOf(item) || [])
    return { kind: 'error', message: texts.join('\n') || 'tool execution error' }
  }
  const structured = result.raw('structuredContent')
  if (structured !== undefined && structured.toString() !== 'null')
    return { kind: 'json', bytes: copy(unwrapped(structured)) }
  const usable = items.filter((item) => item[0] === 0x7b)
  const [only] = usable
  if (!only) return { kind: 'nothing' }
  const text = usable.length === 1 ? textOf(only) : undefined
  return text === undefined
    ? { kind: 'content', bytes: copy(listOf(usable)) }
    : { kind: 'text', bytes: copy(Buffer.from(text)) }
}

function listOf(items: readonly Buffer[]): Buffer {
  return Buffer.concat([OPEN, ...items.flatMap((item, i) => (i === 0 ? [item] : [COMMA, item])), CLOSE])
}

const OPEN = Buffer.from('[')
const COMMA = Buffer.from(',')
const CLOSE = Buffer.from(']')

/** Frameworks put a result that is no object into one with the single key `result`. */
function unwrapped(structured: Buffer): Buffer {
  if (structured[0] !== 0x7b) return structured
  const object = new JsonObject(structured)
  const names = object.names()
  return (names.length === 1 ? object.raw('result') : undefined) ?? structured
}

function textOf(item: Buffer): string | undefined {
  if (item[0] !== 0x7b) return undefined
  const object = new JsonObject(item)
  return object.text('type') === 'text' ? object.text('text') : undefined
}

/** Bytes of their own: a message takes all of the memory that its bytes lie in. */
function copy(bytes: Buffer): Uint8Array {
  return Uint8Array.from(bytes)
}
