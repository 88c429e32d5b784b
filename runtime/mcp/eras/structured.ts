/**
 * Structured content for session-era clients. Session-era clients accept only an object, while the stateless era allows
 * any JSON value. Any other value is added to the content as text, unless there is other content.
 * Source: MCP 2025-11-25 and 2026-07-28, server/tools ("Structured Content").
 */
import { isNull } from '../json/bytes.ts'
import { JsonObject } from '../json/object.ts'
import { readMembers } from '../json/read.ts'
import { JsonError } from '../json/errors.ts'
import { joined, largeBytes, type TurnWork } from '../json/turns.ts'

const memberName = Buffer.from('"structuredContent"')

/** Maximum size of the text created from structured content. The text is created in one event loop turn. */
const maxTextBytes = 8 * 1024 * 1024

/**
 * Returns the result with its structured content as an object. Returns the same buffer if the content is already an
 * object or if there is no structured content.
 */
export function* withStructuredObject(result: Buffer): TurnWork<Buffer> {
  if (result.length < largeBytes && isObjectEverywhere(result)) return result
  yield* readMembers(result)
  const read = new JsonObject(result)
  const structured = read.raw('structuredContent')
  if (!structured || structured[0] === 0x7b) return result
  const content = read.raw('content')
  const isEmpty = content?.[0] !== 0x5b || !content.includes('{')
  if (isEmpty && structured.length > maxTextBytes)
    throw new JsonError('structured content too large to convert to text', maxTextBytes)
  const text =
    isEmpty && !isNull(structured) ? JSON.stringify([{ type: 'text', text: structured.toString() }]) : content
  return yield* joined(read.parts({ structuredContent: undefined, content: text ?? '[]' }))
}

/** True if every value that could belong to the member is an object. Avoids parsing a large result. */
function isObjectEverywhere(result: Buffer): boolean {
  if (result.includes('\\u')) return false
  for (
    let at = result.indexOf(memberName);
    at >= 0;
    at = result.indexOf(memberName, at + memberName.length)
  ) {
    const colon = skipBlanks(result, at + memberName.length)
    if (result[colon] === 0x3a && result[skipBlanks(result, colon + 1)] !== 0x7b) return false
  }
  return true
}

function skipBlanks(text: Buffer, at: number): number {
  let i = at
  while (text[i] === 0x20 || text[i] === 0x0a || text[i] === 0x0d || text[i] === 0x09) i++
  return i
}
