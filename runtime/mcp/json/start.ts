/**
 * Classifies a body by its first bytes, for a reader that forwards the body without parsing it.
 *
 * The next parser may be more tolerant than RFC 8259. Such a parser may skip a byte order mark, control characters or
 * Unicode spaces, or decode another charset. The search for a batch therefore skips all characters that a tolerant
 * parser could skip. A JSON body must begin like JSON text in UTF-8.
 */
import { openArray, openObject, quoteByte, skipWhitespace } from './bytes.ts'

/**
 * True if the first byte that parsers do not skip opens an array. An array indicates a batch, even if the array is
 * malformed.
 */
export function isBatch(body: Buffer): boolean {
  return body[skipTolerated(body)] === openArray
}

/**
 * True if the body begins like JSON text that is not an array. Such text is an object, a string, a number or a literal.
 */
export function startsAsJson(body: Buffer): boolean {
  const first = body[skipWhitespace(body, 0)]
  return first !== undefined && (first === openObject || first === quoteByte || isAlphanumeric(first))
}

function isAlphanumeric(c: number): boolean {
  return (c >= 0x30 && c <= 0x39) || (c >= 0x41 && c <= 0x5a) || (c >= 0x61 && c <= 0x7a)
}

/** Returns the index after all leading control characters, spaces and byte order marks. */
function skipTolerated(body: Buffer): number {
  let i = 0
  for (let width = toleratedAt(body, i); width > 0; width = toleratedAt(body, i)) i += width
  return i
}

/** Returns the length of the character at `i` if some parsers skip the character. Returns 0 otherwise. */
function toleratedAt(body: Buffer, i: number): number {
  const c = body[i]
  if (c === undefined) return 0
  if (c <= 0x20 || c === 0x7f) return 1
  if (c < 0x80) return 0
  // U+0085 and U+00A0 in Latin-1, and the byte order marks of UTF-16.
  if (c === 0x85 || c === 0xa0 || c >= 0xfe) return 1
  const second = body[i + 1] ?? 0
  const third = body[i + 2] ?? 0
  if (c === 0xc2) return second === 0x85 || second === 0xa0 ? 2 : 0
  const isSpace =
    (c === 0xef && second === 0xbb && third === 0xbf) ||
    (c === 0xe1 && second === 0x9a && third === 0x80) ||
    (c === 0xe1 && second === 0xa0 && third === 0x8e) ||
    (c === 0xe2 && second === 0x80 && (third <= 0x8f || third >= 0xa8)) ||
    (c === 0xe2 && second === 0x81 && third >= 0x9f && third <= 0xaf) ||
    (c === 0xe3 && second === 0x80 && third === 0x80)
  return isSpace ? 3 : 0
}
